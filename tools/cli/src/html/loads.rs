//! The pages of `load`, `crr` and `bulk`.

use super::bars::{Bar, bars};
use super::curves::curves;
use super::distribution::{Curve, distribution};
use super::figure::figure;
use super::hue::SeriesColor;
use super::markup::escaped;
use super::node::Node;
use super::page::{captioned, page, section, side_by_side};
use super::scale::round_up;
use super::table::{Cell, table};
use super::timeline::{TimelineSeries, most, timeline};

/// The page of `whimbrel.load/1` and of `whimbrel.crr/1`.
pub(crate) fn load(root: &Node<'_>) -> String {
    let (summary, latency) = (root.at("summary"), root.at("latency_corrected"));
    let held = summary.at("held").items();
    let hindrance =
        |it: &Node<'_>| format!("of connections' time held up: {}", it.at("cause").text());
    let causes: Vec<_> = held.iter().map(hindrance).collect();
    let first =
        held.iter().zip(&causes).map(|(it, cause)| (it.at("percent"), "percent", cause.as_str()));
    let figures = [
        (summary.at("rate").at("mean"), "per_second", "responses per second, mean"),
        (summary.at("answered"), "count", "answered"),
        (summary.at("failed"), "count", "failed"),
        (latency.at("p50"), "s", "half took at most"),
        (latency.at("p99"), "s", "99 % took at most"),
        (latency.at("max"), "s", "the slowest took"),
    ];
    let mut sections = vec![numbers(&first.chain(figures).collect::<Vec<_>>())];
    let drawn = [strips(root), tails(root)].concat();
    sections.push(section("times", "Over time, and durations", &side_by_side(&drawn)));
    sections.push(section("phases", "Phases of a request", &phases(root)));
    if root.at("runs").items().len() > 1 {
        sections.push(section("runs", "Each run", &runs(root)));
    }
    sections.push(section("from", "What was run", &from(root)));
    finish(root, "A load of ", &sections)
}

/// The page of `whimbrel.bulk/1`.
pub(crate) fn bulk(root: &Node<'_>) -> String {
    let summary = root.at("summary");
    let big = [
        (summary.at("sent_rate"), "bit/s", "sent"),
        (summary.at("received_rate"), "bit/s", "received"),
        (summary.at("sent"), "octets", "sent"),
        (summary.at("received"), "octets", "received"),
        (summary.at("retransmits"), "count", "segments sent again"),
        (summary.at("duration"), "s", "it took"),
    ];
    let big: Vec<_> =
        big.into_iter().filter(|(node, ..)| node.number().is_some_and(|it| it > 0.0)).collect();
    let series = root.at("series");
    let windows: Vec<_> =
        ["window", "cwnd"].iter().filter_map(|name| series.find("name", name)).collect();
    let mut drawn = strips(root);
    if !windows.is_empty() {
        let all = windows.iter().flat_map(|it| it.at("values").numbers()).fold(4096.0, f64::max);
        let drawing = curves(&windows, [1024.0, round_up(all)], "window and cwnd over time");
        drawn.push(captioned(
            &drawing,
            "The receiver's <i>window</i> and <i>cwnd</i> of the first \
                                        stream: data in flight stays below both.",
        ));
    }
    let mut sections = vec![numbers(&big), section("times", "Over time", &side_by_side(&drawn))];
    sections.push(section("limits", "Limits of the sender", &limits(root)));
    sections.push(section("from", "What was run", &from(root)));
    finish(root, "A transfer to ", &sections)
}

fn finish(root: &Node<'_>, what: &str, sections: &[String]) -> String {
    let title = format!("{what}{}", root.at("target").text());
    let over = root.at("env").at("wire").text();
    let lead = format!(
        "<p class=\"lead\">Over <code>{}</code>, {} time.</p>\n",
        escaped(over),
        escaped(root.at("env").at("clock").text())
    );
    page(&title, &lead, sections, root.at("tool").text(), root.at("command").text())
}

/// The most important figures.
fn numbers(figures: &[(Node<'_>, &str, &str)]) -> String {
    let one = |(node, unit, what): &(Node<'_>, &str, &str)| {
        format!(
            "<article class=\"card\"><div class=\"pair\"><div class=\"big\">{}</div></div><p \
             class=\"what\">{}</p></article>\n",
            figure(node, unit),
            escaped(what)
        )
    };
    let all: String = figures.iter().map(one).collect();
    format!("<section class=\"plain\"><div class=\"cards few\">\n{all}</div></section>\n")
}

fn strips(root: &Node<'_>) -> Vec<String> {
    let named = [
        ("responses/s", "responses per second"),
        ("failed", "failed"),
        ("rate", "bits per second"),
    ];
    let strip = |(name, title): &(&str, &str)| {
        let series = root.at("series").find("name", name)?;
        let values = series.at("values");
        let has_some = values.numbers().iter().any(|value| *value > 0.0);
        has_some.then(|| TimelineSeries {
            title: (*title).to_owned(),
            most: most([values.clone()]),
            unit: series.at("unit").text().into(),
            step: series.at("step").number().unwrap_or(1.0),
            values,
            limit: None,
        })
    };
    let strips: Vec<_> = named.iter().filter_map(strip).collect();
    if strips.is_empty() {
        return Vec::new();
    }
    vec![captioned(
        &timeline(&strips, &[], SeriesColor::Own, "over time"),
        "Each step is an interval.",
    )]
}

fn tails(root: &Node<'_>) -> Vec<String> {
    let named = [("response", "Response times"), ("opening", "Connect times")];
    let drawing = |(name, title): &(&str, &str)| {
        let of = root.at("distributions").find("name", name)?;
        let has_some = !of.at("classes").items().is_empty();
        let curve = Curve { hue: SeriesColor::Own, of };
        let curves = std::slice::from_ref(&curve);
        has_some.then(|| captioned(&distribution(curves, curves, &[], title), title))
    };
    named.iter().filter_map(drawing).collect()
}

fn phases(root: &Node<'_>) -> String {
    let names = [
        ("connect", "connect: from SYN to open"),
        ("ttfb", "first byte: from request to answer"),
        ("body", "body: from its first byte to its last"),
        ("close", "close: from there to the end of the connection"),
    ];
    let row = |(name, about): &(&str, &str)| {
        let times = root.at("phases").at(name);
        let some = times.at("count").number().is_some_and(|count| count > 0.0);
        let figures = ["mean", "p50", "p99", "max"].map(|key| Cell::figure(&times.at(key), "s"));
        some.then(|| (None, [vec![Cell::words(about)], figures.to_vec()].concat()))
    };
    let rows: Vec<_> = names.iter().filter_map(row).collect();
    table(&["phase", "mean", "median", "99 %", "slowest"], &rows)
}

fn runs(root: &Node<'_>) -> String {
    let row = |run: &Node<'_>| {
        let cells = [
            Cell::figure(&run.at("rate").at("mean"), "per_second"),
            Cell::figure(&run.at("answered"), "count"),
            Cell::figure(&run.at("failed"), "count"),
            Cell::figure(&run.at("duration"), "s"),
        ];
        (None, cells.to_vec())
    };
    let rows: Vec<_> = root.at("runs").items().iter().map(row).collect();
    table(&["responses per second", "answered", "failed", "took"], &rows)
}

/// Seconds that senders waited for each.
fn limits(root: &Node<'_>) -> String {
    let names = [
        ("app", "the application: there was nothing to send"),
        ("cwnd", "the network: cwnd was used up"),
        ("rwnd", "the receiver: its window was used up"),
        ("sndbuf", "its own send buffer"),
    ];
    let of_stream = |stream: &Node<'_>| {
        let bar = |(key, name): &(&str, &str)| Bar {
            name: (*name).to_owned(),
            hue: if *key == "cwnd" { SeriesColor::Own } else { SeriesColor::Other },
            value: stream.at("limited").at(key),
        };
        let all: Vec<_> = names.iter().map(bar).collect();
        captioned(
            &bars(&all, "s", None, "limits of the sender"),
            &escaped(stream.at("local").text()),
        )
    };
    let drawings: Vec<_> =
        root.at("streams").items().iter().take(MOST_STREAMS).map(of_stream).collect();
    side_by_side(&drawings)
}

/// Configuration and machine of the run.
fn from(root: &Node<'_>) -> String {
    let of = |key: &str| {
        let entries = root.at(key).entries();
        let rows = entries.into_iter().filter_map(|(name, value)| {
            let cell = match (value.number(), value.text()) {
                (Some(_), _) => Cell::figure(&value, "plain"),
                (None, "") => return None,
                (None, text) => Cell::words(text),
            };
            Some((None, vec![Cell::words(&name.replace('_', " ")), cell]))
        });
        rows.collect::<Vec<_>>()
    };
    let rows = [of("config"), of("env")].concat();
    table(&["what", "value"], &rows)
}

const MOST_STREAMS: usize = 6;
