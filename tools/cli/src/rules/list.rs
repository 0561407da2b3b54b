//! `-S help`: every tunable with its value, its range, and a line of description.

use std::fmt::Write;

use whimbrel_base::tunables::Unit;
use whimbrel_io::rules::Rules;
use whimbrel_tcp::TUNABLES;
use whimbrel_tcp::tunables::TunableInfo;

use crate::wrap::{WIDTH, first_clause, wrap};

/// The list, as these rules have the values.
pub(super) fn text(rules: &Rules) -> String {
    let mut text = String::from(HEADING);
    for info in TUNABLES {
        let value = info.value(&rules.tunables);
        let rule = format!("{}={value}", info.name.text);
        let _ = write!(text, "\n{rule}");
        let values = values(info);
        // Both share a line where they fit, with room for longer ones.
        let (width, room) = (rule.chars().count(), WIDTH.saturating_sub(values.chars().count()));
        match width + 2 <= room {
            true => {
                let gap = room.min(GAP).max(width + 2) - width;
                let _ = writeln!(text, "{}{values}", " ".repeat(gap));
            }
            false => _ = writeln!(text, "\n    {values}"),
        }
        let help = format!("    {}\n", first_clause(info.help, WIDTH - 4));
        text += &wrap(&help, 4);
    }
    text
}

/// The valid values of a tunable, in few words.
pub(crate) fn values(info: &TunableInfo) -> String {
    let range = info.range().map(|(least, most)| format!("{least} to {most}"));
    let range = range.unwrap_or_default();
    match info.unit {
        Unit::Bytes => format!("{range} bytes"),
        Unit::Time | Unit::Nanos => range,
        Unit::Count(of) => format!("{range} {of}"),
        Unit::Port => format!("port {range}"),
        Unit::Ports => "ports and ranges of them, or none".into(),
        Unit::Switch => "on, off".into(),
        Unit::Choice(choices) => {
            choices.iter().map(|choice| choice.name).collect::<Vec<_>>().join(", ")
        }
        Unit::Schedule => "a factor (x1 to x10), or times (1s,1s,2s)".into(),
    }
}

const HEADING: &str = "\
Tunables: name=value, what the value may be, and what it is for. Set one by
-S NAME=VALUE; docs/reference/tunables.md says more, and what other systems
call them.
";
/// Start of the second column.
const GAP: usize = 44;
