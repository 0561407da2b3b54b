//! The document `whimbrel.lab/1`, and the same as a table with commas. Of one seed both are the same to the
//! byte.

use std::slice;
use std::time::Duration;

use serde_json::{Map, Value, json};
use whimbrel_apps::load::Finished;
use whimbrel_apps::record::Phase;
use whimbrel_base::Instant;
use whimbrel_lab::{
    Advice, Bound, CASES, Case, Column, Evidence, Figure, Measured, Moment, PacketVerdict,
    Parameter, Picture, Role, SeenPacket, Series, Setup, Side, TimelineSeries, Unit, Verdict,
};
use whimbrel_stack::Profile;
use whimbrel_tcp::tunables::TunableInfo;
use whimbrel_tcp::{Counters, TUNABLES, Tunables};

use super::{Row, ablation, table, vary_words};
use crate::runs::{Outcome, json as runs};
use crate::{output, series};

/// Every case that was run, and its rows; `command` is what runs them again.
pub(super) fn document(rows: &[Row<'_>], command: &str) -> Value {
    let rows_of =
        |case: &'static Case| rows.iter().filter(move |row| row.setup.case.name == case.name);
    let cases = CASES.into_iter().filter(|case| rows_of(case).next().is_some());
    let case = |case: &'static Case| {
        json!({
            "name": case.name,
            "about": case.about,
            "advice": advice(&case.advice),
            "story": case.story,
            "glance": glance(case, rows_of(case).map(|row| row.setup)),
            "picture": picture(case.picture),
            "strips": case.strips.iter().map(strip).collect::<Vec<_>>(),
            "terms": terms(case),
            "columns": case.columns.iter().map(column).collect::<Vec<_>>(),
            "distribution": case.distribution,
            "steps": case.steps.iter().map(|(at, name)| json!({ "at": at, "name": name })).collect::<Vec<_>>(),
            "parameters": case.parameters.iter().map(parameter).collect::<Vec<_>>(),
            "rows": rows_of(case).map(row).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": "whimbrel.lab/1",
        "tool": concat!("whimbrel ", env!("CARGO_PKG_VERSION")),
        "command": command,
        "summary": {
            "rows": rows.len(),
            "wrong": rows.iter().filter(|row| !row.is_right()).count(),
        },
        "cases": cases.map(case).collect::<Vec<_>>(),
    })
}

/// The document, with the paths of captures replaced by `link`.
pub(super) fn with_links(mut document: Value, link: &dyn Fn(&str) -> String) -> Value {
    let rows = document["cases"].as_array_mut().into_iter().flatten();
    let rows = rows.filter_map(|case| case["rows"].as_array_mut()).flatten();
    for row in rows {
        if let Some(path) = row["capture"].as_str() {
            row["capture"] = link(path).into();
        }
    }
    document
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
    let ablation = ablation::is_trial(row.setup).then(|| ablation::document(row.setup));
    let values = values.iter().map(|(it, value)| (it.name.to_owned(), typed(it.unit, value)));
    let settings = settings.iter().map(|(key, value)| (key.clone(), value.clone().into()));
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.into(), value);
    put("label", table::label(row.setup).into());
    put("profile", (*profile).into());
    put("about", Profile::by_name(profile).map(|it| it.help).into());
    put("command", command_of(row.setup).into());
    put("capture", row.capture.clone().into());
    put("settings", settings.collect::<Map<_, _>>().into());
    put("seed", (*seed).into());
    put("ablation", ablation.into());
    put("rules", changed(rules));
    put("changes", changes(row.setup));
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

/// The measured values.
fn results(measured: &Measured) -> Map<String, Value> {
    let Measured {
        figures,
        notes,
        series: all,
        distributions,
        runs,
        moments,
        counters,
        marks,
        evidence,
    } = measured;
    let mark = |(at, name): &(Duration, String)| json!({ "at": at.as_secs_f64(), "name": name });
    let figure =
        |it: &Figure| (it.name.to_owned(), json!({ "value": it.value, "unit": unit(it.unit) }));
    let of_series = |it: &Series| series::series(it.name, unit(it.unit), it.step, &it.values);
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.into(), value);
    put("figures", figures.iter().map(figure).collect::<Map<_, _>>().into());
    put("notes", notes.clone().into());
    put("series", all.iter().map(of_series).collect());
    put("distributions", distributions.iter().map(series::distribution).collect());
    put("marks", marks.iter().map(mark).collect());
    put("runs", runs.iter().map(run).collect());
    put("moments", moments.iter().map(moment).collect());
    put("counters", counters.iter().map(counts).collect());
    put("witness", evidence.as_ref().map(of_witness).into());
    map
}

/// A run of a load: what `load --json` has of it.
fn run(run: &Finished) -> Value {
    let (record, left, earlier) = (run.record.clone(), run.close, Vec::new());
    let outcome = Outcome { record, left, target: None, earlier };
    let mut map = Map::new();
    map.insert("summary".into(), runs::summary(&outcome));
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
        "repeated": moment.repeated,
    })
}

fn counts(counters: &Counters) -> Value {
    let some = counters.iter().filter(|(_, _, value)| *value > 0);
    some.map(|(name, _, value)| (name.to_owned(), value.into())).collect::<Map<_, _>>().into()
}

fn of_witness(evidence: &Evidence) -> Value {
    let first = evidence.packets.iter().find(|packet| packet.flags() == "SYN");
    let began = first.map_or(Instant::ZERO, |packet| packet.at);
    json!({
        "shows": evidence.shows.about(),
        "port": evidence.port,
        "packets": evidence.packets.iter().map(|it| packet(it, began)).collect::<Vec<_>>(),
    })
}

/// A packet of a connection whose first SYN was sent at `began`.
fn packet(packet: &SeenPacket, began: Instant) -> Value {
    let (view, len) = packet.header().unzip();
    json!({
        "at": packet.at.since(Instant::ZERO).as_secs_f64(),
        "since": match packet.at < began {
            true => -began.since(packet.at).as_secs_f64(),
            false => packet.at.since(began).as_secs_f64(),
        },
        "from": match packet.from {
            Side::Client => "client",
            Side::Server => "server",
        },
        "flags": packet.flags(),
        "seq": view.map(|view| view.seq.raw()),
        "ack": view.filter(|view| view.flags.is_ack()).map(|view| view.ack.raw()),
        "len": len,
        // Distance from RCV.NXT of the receiver.
        "beyond": packet.beyond,
        "newer": packet.newer.map(|newer| newer.as_secs_f64()),
        "outcome": packet.outcome(),
        "verdict": packet.ruling.as_ref().map(ruling),
        "text": packet.to_string().split_once("  ").map(|(_, text)| text.trim().to_owned()),
    })
}

/// The receiver's verdict on a packet.
fn ruling(ruling: &PacketVerdict) -> Value {
    let rules = ruling.rules.iter().map(|(key, value)| ((*key).to_owned(), value.clone().into()));
    let [before, after] = ruling.states.map(|state| state.map(|state| state.to_string()));
    json!({
        "at": ruling.at.since(Instant::ZERO).as_secs_f64(),
        "before": before,
        "after": after,
        "dropped": ruling.dropped.map(|reason| reason.name()),
        "why": ruling.dropped.map(|reason| reason.help()),
        "rules": rules.collect::<Map<_, _>>(),
        "counted": ruling.counted.iter().map(|(name, about)| json!({ "name": name, "about": about })).collect::<Vec<_>>(),
    })
}

/// The summary of a case in a minute, with its rows; with other settings, the first row that is not the
/// default and the first that is.
fn glance<'s>(case: &Case, rows: impl Iterator<Item = &'s Setup>) -> Value {
    let rows: Vec<_> = rows.collect();
    let place_of = |place: &usize| {
        let wanted = case.rows.get(*place)?;
        let is_it = |it: &&Setup| {
            let settings = it.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            it.profile == wanted.profile && settings.eq(wanted.settings.iter().copied())
        };
        rows.iter().position(is_it)
    };
    let own = case.glance.rows.map(|place| place_of(&place));
    let first = |is_default: bool| rows.iter().position(|it| (it.profile == DEFAULT) == is_default);
    let [old, default] = [own[0].or_else(|| first(false)), own[1].or_else(|| first(true))];
    json!({
        "title": case.glance.title,
        "because": in_a_line(case.glance.because),
        "cure": in_a_line(case.glance.cure),
        "why": in_a_line(case.glance.why),
        "figure": case.glance.figure,
        "what": case.glance.what,
        "old": old,
        "default": default,
        "bars": case.glance.bars.iter().filter_map(place_of).collect::<Vec<_>>(),
        "limit": case.glance.limit.map(|(value, name)| json!({ "value": value, "name": name })),
    })
}

fn advice(advice: &Advice) -> Value {
    let line =
        |(head, text): (&str, String)| json!({ "head": head.trim_end_matches(':'), "text": text });
    table::advice(advice).map(line).to_vec().into()
}

fn strip(strip: &TimelineSeries) -> Value {
    let limit = strip.limit.map(|(figure, name)| json!({ "figure": figure, "name": name }));
    let TimelineSeries { series, title, says, .. } = strip;
    json!({ "series": series, "title": title, "says": in_a_line(says), "limit": limit })
}

/// Explanation of each figure that has a bound.
fn terms(case: &Case) -> Value {
    let columns = case.columns.iter().map(|column| (column.figure, column.about));
    let all = columns.chain(case.terms.iter().copied());
    all.map(|(figure, about)| (figure.to_owned(), about.into())).collect::<Map<_, _>>().into()
}

fn column(column: &Column) -> Value {
    json!({ "figure": column.figure, "head": column.head, "about": column.about })
}

fn in_a_line(text: &str) -> String {
    text.replace('\n', " ")
}

fn picture(picture: Picture) -> Value {
    match picture {
        Picture::Line(name) => json!({ "series": name }),
        Picture::Bar(name) => json!({ "figure": name }),
    }
}

/// The command that measures a row again.
fn command_of(setup: &Setup) -> String {
    if setup.settings.iter().any(|(key, _)| key == "clock") {
        return format!("whimbrel lab run {} --real", setup.case.name);
    }
    let mut text = format!("whimbrel lab run {} --profile {}", setup.case.name, setup.profile);
    if ablation::is_trial(setup) {
        text += " --ablate";
    }
    for (key, value) in &setup.settings {
        text += &format!(" {}", vary_words(key, slice::from_ref(value)));
    }
    if setup.seed != 1 {
        text += &format!(" --seed {}", setup.seed);
    }
    text
}

/// Differences from this stack's settings: each with the default and the source for the other stack.
fn changes(setup: &Setup) -> Value {
    let own = Tunables::default();
    let profile = Profile::by_name(setup.profile);
    let change = |info: &TunableInfo| {
        let typed = |(key, _): &&(String, String)| {
            Tunables::named(key).iter().any(|named| named.field == info.field)
        };
        let by_profile = || profile?.setting_of(info).map(|setting| setting.source);
        let source = match setup.settings.iter().any(|setting| typed(&setting)) {
            true => Some("set for this measurement"),
            false => by_profile(),
        };
        json!({
            "name": info.name.text,
            "value": info.value(&setup.rules),
            "default": info.value(&own),
            "help": info.help,
            "source": source,
            // Whether the case turns on it.
            "decides": setup.case.turns_on(info.field),
        })
    };
    let differs = |info: &&TunableInfo| info.value(&setup.rules) != info.value(&own);
    TUNABLES.iter().filter(differs).map(change).collect()
}

/// Differences from this stack's settings.
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
        "default": typed(parameter.unit, parameter.default),
    })
}

/// Value of a parameter: a number, or the word of a choice.
fn typed(unit: Unit, value: f64) -> Value {
    if let Unit::Choice(_) = unit { unit.type_of(value).into() } else { value.into() }
}

fn bound(bound: &Bound) -> Value {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    json!({ "figure": bound.figure, "least": finite(bound.least), "most": finite(bound.most) })
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Report => "report",
        Role::Better => "better",
        Role::Works => "works",
        Role::Inferred => "inferred",
        Role::Cure => "cure",
        Role::Trial => "trial",
        Role::Expectation => "expectation",
    }
}

const fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "reproduced",
        Verdict::AsInferred => "as inferred",
        Verdict::Cured => "cured",
        Verdict::StillFails => "still fails",
        Verdict::FailsNoMore => "fails no more",
        Verdict::AsExpected => "as expected",
        Verdict::Wrong(_) => "wrong",
        Verdict::NotMeasured { .. } => "not measured",
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
        Unit::Choice(_) => "choice",
    }
}

/// The profile that is this stack's own.
const DEFAULT: &str = "whimbrel";
