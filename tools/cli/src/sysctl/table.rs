//! The rules as a table for people: a line for each, and below it where that is from.

use whimbrel_base::tunables::Unit;
use whimbrel_stack::Profile;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::TunableInfo;

use super::View;
use crate::wrap::{WIDTH, wrap};

/// A view as a table.
pub(super) fn of(view: &View) -> String {
    let compared = view.other.as_ref().map_or("default", |(other, _)| other.name);
    let value = if view.other.is_some() { view.rules.profile.name } else { "value" };
    let heads = ["key", value, compared, "unit"].map(str::to_owned);
    let rows: Vec<_> = view.shown.iter().map(|info| row(view, info)).collect();
    let columns = Columns::of(&[std::slice::from_ref(&heads), &rows].concat());
    let mut text = String::new();
    if !rows.is_empty() {
        columns.put(&mut text, &heads);
    }
    for (row, info) in rows.iter().zip(&view.shown) {
        columns.put(&mut text, row);
        for source in [view.source(info), view.other_source(info)].into_iter().flatten() {
            text += &wrap(&format!("    {source}\n"), 8);
        }
    }
    text + &locking(view)
}

/// A tunable: its name, its value, the value to compare with, and its unit.
fn row(view: &View, info: &TunableInfo) -> [String; 4] {
    let compared = match &view.other {
        Some((_, other)) => info.value(other),
        None => info.value(&Tunables::default()),
    };
    [info.name.text.into(), info.value(&view.rules.tunables), compared, unit(info).into()]
}

/// The profiles, and which stack each imitates.
pub(super) fn of_profiles(profiles: &[Profile]) -> String {
    let line = |profile: &Profile| wrap(&format!("{:24} {}\n", profile.name, profile.help), 25);
    profiles.iter().map(line).collect()
}

/// The unit of a tunable's values, in a word.
pub(super) const fn unit(info: &TunableInfo) -> &'static str {
    match info.unit {
        Unit::Bytes => "bytes",
        Unit::Time | Unit::Nanos => "time",
        Unit::Count(of) => of,
        Unit::Port => "port",
        Unit::Ports => "ports",
        Unit::Switch => "switch",
        Unit::Choice(_) => "policy",
        Unit::Schedule => "times",
    }
}

/// Sharing of connections by threads, where a profile sets it.
fn locking(view: &View) -> String {
    let other = view.other.as_ref().map(|(other, _)| other.locking());
    let (ours, others) = (view.rules.profile.locking(), other.unwrap_or_default());
    if ours == others {
        return match view.shown.is_empty() {
            true => format!("{} has no differences.\n", view.rules.profile.name),
            false => String::new(),
        };
    }
    let (name, help) = ours.described();
    wrap(&format!("Locking: {name}: {help}. Only for the lab; not a tunable.\n"), 4)
}

/// Starts of the columns. A value longer than its column moves the rest to the next line.
struct Columns([usize; 4]);

impl Columns {
    /// The width that these rows need, within a line.
    fn of(rows: &[[String; 4]]) -> Self {
        let widest = |column: usize, most| {
            let widths = rows.iter().map(|row| row[column].chars().count());
            widths.filter(|width| *width <= most).max().unwrap_or(0)
        };
        let (value, compared) = (widest(1, LONGEST_VALUE) + 2, widest(2, LONGEST_VALUE) + 2);
        let room = WIDTH - value - compared - widest(3, WIDTH) - 2;
        let name = widest(0, room) + 2;
        Self([0, name, name + value, name + value + compared])
    }

    fn put(&self, text: &mut String, row: &[String; 4]) {
        let mut at = 0;
        for (cell, begin) in row.iter().zip(self.0) {
            let width = cell.chars().count();
            let begin = begin.min(WIDTH.saturating_sub(width));
            if at > 0 && at >= begin {
                text.push('\n');
                at = 0;
            }
            text.extend(std::iter::repeat_n(' ', begin - at));
            text.push_str(cell);
            at = begin + width;
        }
        text.push('\n');
    }
}

/// Width of a column of values: the longest of a policy's, with room for names of profiles.
const LONGEST_VALUE: usize = 18;
