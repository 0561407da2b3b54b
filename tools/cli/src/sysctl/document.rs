//! The rules for programs: `whimbrel.sysctl/1`.

use serde_json::{Value, json};
use whimbrel_base::tunables::Unit;
use whimbrel_stack::{PROFILES, Profile};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::TunableInfo;

use super::{View, cases, explanation, table};

/// A view as a document.
pub(super) fn of(view: &View) -> Value {
    let tunables: Vec<_> = view.shown.iter().map(|info| tunable(view, info)).collect();
    json!({
        "schema": SCHEMA,
        "tool": TOOL,
        "profile": view.rules.profile.name,
        "locking": view.rules.profile.locking().described().0,
        "diff": view.other.as_ref().map(|(other, _)| other.name),
        "tunables": tunables,
    })
}

/// Every profile, with its own settings.
pub(super) fn of_profiles() -> Value {
    let settings = |profile: &Profile| {
        let each = profile.settings.iter().map(|setting| {
            json!({"name": setting.name, "value": setting.value, "source": setting.source})
        });
        each.collect::<Vec<_>>()
    };
    let profiles = PROFILES.iter().map(|profile| {
        json!({
            "name": profile.name,
            "help": profile.help,
            "base": profile.base.map(|base| base.name),
            "locking": profile.locking().described().0,
            "settings": settings(profile),
        })
    });
    json!({"schema": SCHEMA, "tool": TOOL, "profiles": profiles.collect::<Vec<_>>()})
}

fn tunable(view: &View, info: &TunableInfo) -> Value {
    let range = info.range();
    let choices = match info.unit {
        Unit::Choice(choices) => choices.iter().map(|choice| choice.name).collect(),
        _ => Vec::new(),
    };
    let mut tunable = json!({
        "name": info.name.text,
        "value": info.value(&view.rules.tunables),
        "unit": table::unit(info),
        "default": info.value(&Tunables::default()),
        "least": range.as_ref().map(|(least, _)| least),
        "most": range.as_ref().map(|(_, most)| most),
        "choices": choices,
        "source": view.source(info),
        "help": info.help,
        "rfc": info.rfc,
        "also": explanation::other_names(info),
        "cases": cases::of(info),
    });
    if let Some((_, other)) = &view.other {
        tunable["other"] = info.value(other).into();
        tunable["other_source"] = view.other_source(info).into();
    }
    tunable
}

const SCHEMA: &str = "whimbrel.sysctl/1";
const TOOL: &str = concat!("whimbrel ", env!("CARGO_PKG_VERSION"));
