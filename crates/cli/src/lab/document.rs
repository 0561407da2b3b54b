//! The document `whimbrel.lab/1`, and the same as a table with commas. Of one seed both are the same to the
//! octet.

use serde_json::{Map, Value, json};
use whimbrel_apps::load::Finished;
use whimbrel_apps::record::Phase;
use whimbrel_base::Instant;
use whimbrel_sim::lab::{
    Bound, CASES, Case, Figure, Measured, Moment, Parameter, Role, SeenPacket, Series, Setup, Side,
    Unit, Verdict, Witness,
};
use whimbrel_tcp::tunables::TunableInfo;
use whimbrel_tcp::{Counters, TUNABLES, Tunables};

use super::Row;
use crate::load::json as load;
use crate::output;

/// Every case that was run, and its rows.
pub(super) fn document(rows: &[Row<'_>]) -> Value {
    let rows_of =
        |case: &'static Case| rows.iter().filter(move |row| row.setup.case.name == case.name);
    let cases = CASES.into_iter().filter(|case| rows_of(case).next().is_some());
    let case = |case: &'static Case| {
        json!({
            "name": case.name,
            "about": case.about,
            "story": case.story,
            "parameters": case.parameters.iter().map(parameter).collect::<Vec<_>>(),
            "rows": rows_of(case).map(row).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": "whimbrel.lab/1",
        "tool": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
        "summary": {
            "rows": rows.len(),
            "wrong": rows.iter().filter(|row| !row.is_right()).count(),
        },
        "cases": cases.map(case).collect::<Vec<_>>(),
    })
}

/// A line for each figure.
pub(super) fn csv(rows: &[Row<'_>]) -> String {
    let mut text = String::from("case,profile,settings,seed,figure,value,unit,verdict\n");
    for row in rows {
        let Setup { case, profile, settings, seed, .. } = row.setup;
        let settings: Vec<_> =
            settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let settings = settings.join(" ");
        let figures = row.measured.as_ref().map_or(&[][..], |measured| &measured.figures);
        for figure in figures {
            let (name, unit, verdict) = (figure.name, unit(figure.unit), verdict(&row.verdict));
            let value = figure.value;
            text += &format!(
                "{},{profile},\"{settings}\",{seed},{name},{value},{unit},{verdict}\n",
                case.name
            );
        }
    }
    text
}

fn row(row: &Row<'_>) -> Value {
    let Setup { profile, settings, rules, values, seed, role, bounds, .. } = row.setup;
    let values = values.iter().map(|(parameter, value)| (parameter.name.to_owned(), value.into()));
    let settings = settings.iter().map(|(key, value)| (key.clone(), value.clone().into()));
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.into(), value);
    put("profile", (*profile).into());
    put("settings", settings.collect::<Map<_, _>>().into());
    put("seed", (*seed).into());
    put("rules", changed(rules));
    put("values", values.collect::<Map<_, _>>().into());
    put("role", role.map(role_name).into());
    put("verdict", verdict(&row.verdict).into());
    put("bounds", bounds.iter().map(bound).collect());
    put("error", row.measured.as_ref().err().cloned().into());
    if let Ok(measured) = &row.measured {
        map.extend(results(measured));
    }
    map.into()
}

/// What was measured.
fn results(measured: &Measured) -> Map<String, Value> {
    let Measured { figures, notes, series, runs, moments, counters, witness } = measured;
    let figure =
        |it: &Figure| (it.name.to_owned(), json!({ "value": it.value, "unit": unit(it.unit) }));
    let of_series = |it: &Series| json!({ "name": it.name, "step": it.step.as_secs_f64(), "values": it.values });
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.into(), value);
    put("figures", figures.iter().map(figure).collect::<Map<_, _>>().into());
    put("notes", notes.clone().into());
    put("series", series.iter().map(of_series).collect());
    put("runs", runs.iter().map(run).collect());
    put("moments", moments.iter().map(moment).collect());
    put("counters", counters.iter().map(counts).collect());
    put("witness", witness.as_ref().map(of_witness).into());
    map
}

/// A run of a load: what `load --json` has of it.
fn run(run: &Finished) -> Value {
    let outcome =
        crate::load::Outcome { record: run.record.clone(), left: run.close, earlier: Vec::new() };
    let mut map = Map::new();
    map.insert("summary".into(), load::summary(&outcome));
    map.insert("connects".into(), output::encode(run.record.phase(Phase::Connect)).into());
    map.insert("latency".into(), output::encode(&run.record.corrected).into());
    map.into()
}

fn moment(moment: &Moment) -> Value {
    json!({
        "at": moment.at.since(Instant::ZERO).as_secs_f64(),
        "answered": moment.answered,
        "time_wait": { "client": moment.time_wait[0], "server": moment.time_wait[1] },
        "ports_in_use": moment.ports_in_use,
        "syns_repeated": moment.syns_repeated,
    })
}

fn counts(counters: &Counters) -> Value {
    let some = counters.iter().filter(|(_, _, value)| *value > 0);
    some.map(|(name, _, value)| (name.to_owned(), value.into())).collect::<Map<_, _>>().into()
}

fn of_witness(witness: &Witness) -> Value {
    json!({
        "shows": witness.shows.about(),
        "port": witness.port,
        "packets": witness.packets.iter().map(packet).collect::<Vec<_>>(),
    })
}

fn packet(packet: &SeenPacket) -> Value {
    json!({
        "at": packet.at.since(Instant::ZERO).as_secs_f64(),
        "from": match packet.from {
            Side::Client => "client",
            Side::Server => "server",
        },
        // Beyond what the server expected of the earlier connection (RCV.NXT).
        "beyond": packet.beyond,
        "text": packet.to_string().split_once("  ").map(|(_, text)| text.trim().to_owned()),
    })
}

/// What differs from this stack's own rules.
fn changed(rules: &Tunables) -> Value {
    let own = Tunables::default();
    let differs = |info: &&TunableInfo| info.value(rules) != info.value(&own);
    let rule = |info: &TunableInfo| (info.name.text.to_owned(), info.value(rules).into());
    TUNABLES.iter().filter(differs).map(rule).collect::<Map<_, _>>().into()
}

fn parameter(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "about": parameter.about,
        "unit": unit(parameter.unit),
        "default": parameter.default,
    })
}

fn bound(bound: &Bound) -> Value {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    json!({ "figure": bound.figure, "least": finite(bound.least), "most": finite(bound.most) })
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Report => "report",
        Role::Cure => "cure",
    }
}

const fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::Cured => "cured",
        Verdict::Wrong(_) => "wrong",
        Verdict::Open => "none",
    }
}

const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::PerSecond => "per_second",
        Unit::Bytes => "octets",
        Unit::Time => "s",
        Unit::Percent => "percent",
        Unit::Megabits => "Mbit/s",
    }
}
