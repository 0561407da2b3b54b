//! All information on a tunable.

use whimbrel_base::tunables::{Name, Reading, Unit};
use whimbrel_stack::{PROFILES, Profile};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::{TUNABLE_GROUPS, TunableInfo};

use super::{View, cases};
use crate::rules::values;
use crate::wrap::wrap;

/// Each tunable that is shown, one after the other.
pub(super) fn of(view: &View) -> String {
    let texts: Vec<_> = view.shown.iter().map(|info| of_one(view, info)).collect();
    texts.join("\n")
}

fn of_one(view: &View, info: &TunableInfo) -> String {
    let mut text = format!("{}\n", info.name.text);
    put(&mut text, "", info.help);
    let source = view.source(info).unwrap_or_else(|| "the default".into());
    put(&mut text, "value", &format!("{} ({source})", info.value(&view.rules.tunables)));
    put(&mut text, "default", &info.value(&Tunables::default()));
    put(&mut text, "may be", &values(info));
    if let Unit::Choice(choices) = info.unit {
        for choice in choices {
            text += &wrap(&format!("             {}: {}\n", choice.name, choice.help), 15);
        }
    }
    for (label, told) in [("too low", info.too_low), ("too high", info.too_high)] {
        put(&mut text, label, told);
    }
    put(&mut text, "also", &other_names(info).join(", "));
    put(&mut text, "see", info.rfc);
    put(&mut text, "cases", &cases::of(info).join(", "));
    for profile in PROFILES {
        put_profile(&mut text, profile, info);
    }
    text
}

/// A profile's value of a tunable, unless it is its base's.
fn put_profile(text: &mut String, profile: &Profile, info: &TunableInfo) {
    let (own, base) = (profile.setting_of(info), profile.base.and_then(|it| it.setting_of(info)));
    let Some(setting) = own.filter(|own| Some(*own) != base) else { return };
    let value = profile.tunables().map_or_else(|_| String::new(), |it| info.value(&it));
    *text += &wrap(&format!("    {:24} {value} ({})\n", profile.name, setting.source), 29);
}

/// A line, unless its text is empty.
fn put(text: &mut String, label: &str, told: &str) {
    if told.is_empty() {
        return;
    }
    let (line, indent) = match label {
        "" => (format!("    {told}\n"), 4),
        label => (format!("    {label:9}{told}\n"), 13),
    };
    *text += &wrap(&line, indent);
}

/// Other names of a tunable, single or with others, and how their values are read.
pub(super) fn other_names(info: &TunableInfo) -> Vec<String> {
    let groups = TUNABLE_GROUPS.iter().filter(|group| group.fields.contains(&info.field));
    let field = Some(info.field).filter(|field| *field != info.name.text).map(str::to_owned);
    let own = info.aliases.iter().map(name_and_reading);
    field
        .into_iter()
        .chain(own)
        .chain(groups.flat_map(|group| group.names).map(name_and_reading))
        .collect()
}

fn name_and_reading(name: &Name) -> String {
    let reading = match name.reading {
        Reading::Same | Reading::Words(_) => return name.text.to_owned(),
        Reading::Seconds => "s",
        Reading::Millis => "ms",
        Reading::Micros => "us",
        Reading::MillisAndEighth => "ms, to which an eighth is added",
        Reading::TwiceMillis => "ms, twice this",
        Reading::Twice => "twice this",
    };
    format!("{} ({reading})", name.text)
}
