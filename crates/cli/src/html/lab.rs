//! The page of `lab run`: all cases at a glance, then each with its story, figures and drawings.

use super::curves::curves;
use super::distribution::{Curve, distribution};
use super::figure::{attributes, tick};
use super::glance::{cards, compared};
use super::hue::Hue;
use super::markup::escaped;
use super::node::Node;
use super::page::{beside, captioned, page as whole, section};
use super::scale::round_up;
use super::sequence::sequence;
use super::table::{Cell, table};
use super::timeline::{Strip, most, timeline};

/// The page of `whimbrel.lab/1`.
pub(crate) fn page(root: &Node<'_>) -> String {
    let cases = root.at("cases").items();
    let title = match cases.as_slice() {
        [one] => one.at("glance").at("title").text().to_owned(),
        _ => "Where TCP failed people, and what cures it".to_owned(),
    };
    let mut sections =
        vec![format!("<section class=\"plain\">\n{}{WORDS}</section>\n", cards(&cases))];
    sections.extend(cases.iter().map(case));
    whole(&title, LEAD, &sections, root.at("tool").text(), root.at("command").text())
}

/// A row that is drawn, whose it is, and how it is called.
struct Told<'d> {
    hue: Hue,
    row: Node<'d>,
}

impl Told<'_> {
    fn caption(&self) -> String {
        format!(
            "<span class=\"{}-ink\" aria-hidden=\"true\">{}</span> <b>{}</b> <span class=\"soft\">{}</span>",
            self.hue.class(),
            self.hue.mark(),
            escaped(self.row.at("label").text()),
            self.hue.word()
        )
    }
}

/// A row of each profile: where it fails, what somebody changed of that, and the default.
fn told<'d>(case: &Node<'d>) -> Vec<Told<'d>> {
    let chosen = compared(case);
    let mut told: Vec<Told<'d>> = Vec::new();
    for row in case.at("rows").items() {
        let profile = row.at("profile").text();
        let is_known = told.iter().any(|it| it.row.at("profile").text() == profile);
        if is_known || !row.at("error").is_nothing() {
            continue;
        }
        let own = chosen.iter().find(|(_, it)| it.at("profile").text() == profile);
        let row = own.map_or(row, |(_, it)| it.clone());
        told.push(Told { hue: hue(&row, case), row });
    }
    // What fails stands beside the default.
    told.sort_by_key(|it| it.hue);
    told
}

/// Whose a row is.
fn hue(row: &Node<'_>, case: &Node<'_>) -> Hue {
    let old = case.at("glance").at("old").number();
    let failing = old.map(|place| case.at("rows").at(place as usize).at("profile").text());
    match row.at("profile").text() {
        DEFAULT => Hue::Own,
        profile if Some(profile) == failing => Hue::Old,
        _ => Hue::Other,
    }
}

fn case(case: &Node<'_>) -> String {
    let rows = told(case);
    let name = case.at("name").text();
    let mut body =
        format!("<p class=\"soft\">{}: {}.</p>\n", escaped(name), escaped(case.at("about").text()));
    body += &format!(
        "<div class=\"why\"><p>{}</p></div>\n",
        escaped(case.at("glance").at("why").text())
    );
    body += "<h3>What came of it</h3>\n";
    body += &figures(case);
    body += &timelines(&rows);
    body += &transfers(&rows);
    body += &times(case, &rows);
    body += &packets(&rows);
    body += &story(case);
    body += &rules(&rows);
    body += &commands(case);
    let heading = case.at("glance").at("title").text();
    section(name, heading, &body).replacen("<section ", "<section class=\"case\" ", 1)
}

fn story(case: &Node<'_>) -> String {
    let paragraphs = case.at("story").text().split("\n\n");
    let paragraphs = paragraphs.map(|it| format!("<p>{}</p>\n", escaped(&it.replace('\n', " "))));
    format!(
        "<h3>The whole story</h3>\n<div class=\"story\">\n{}</div>\n",
        paragraphs.collect::<String>()
    )
}

/// Every row, with its figures and its verdict.
fn figures(case: &Node<'_>) -> String {
    let columns = case.at("columns").items();
    let mut heads = vec!["rules"];
    heads.extend(columns.iter().map(|column| column.at("head").text()));
    heads.push("verdict");
    let row = |row: &Node<'_>| {
        let hue = hue(row, case);
        let label = format!("{} {}", hue.mark(), row.at("label").text());
        let mut cells = vec![Cell::words(&label)];
        cells.extend(columns.iter().map(|column| {
            let value = row.at("figures").at(column.at("figure").text());
            Cell::figure(&value.at("value"), value.at("unit").text())
        }));
        cells.push(Cell::words(match row.at("verdict").text() {
            "reproduced" => "as reported",
            "cured" => "does not fail",
            "wrong" => "not as expected",
            _ => "–",
        }));
        (Some(hue), cells)
    };
    let rows: Vec<_> = case.at("rows").items().iter().map(row).collect();
    let notes = case.at("rows").items().into_iter().flat_map(|row| {
        let label = escaped(row.at("label").text());
        let errors = [row.at("error")].into_iter().filter(|it| !it.is_nothing());
        let notes = row.at("notes").items().into_iter().chain(errors);
        notes
            .map(move |note| {
                format!("<p class=\"soft\"><b>{label}</b>: {}</p>\n", escaped(note.text()))
            })
            .collect::<Vec<_>>()
    });
    table(&heads, &rows) + &notes.collect::<String>()
}

/// What is held and sent over time, of each row on the same axes.
fn timelines<'d>(rows: &[Told<'d>]) -> String {
    let of = |row: &Node<'d>, name: &str| row.at("series").find("name", name);
    let all = |name: &str| most(rows.iter().filter_map(|it| Some(of(&it.row, name)?.at("values"))));
    let has_some = |row: &Node<'d>, name: &str| {
        of(row, name).is_some_and(|it| it.at("values").numbers().iter().any(|value| *value > 0.0))
    };
    // That no port is left is worth being seen.
    let is_shown = |(name, _): &&(&str, &str)| {
        rows.iter().any(|it| has_some(&it.row, name))
            || *name == "ports free" && rows.iter().any(|it| of(&it.row, name).is_some())
    };
    let shown: Vec<_> = STRIPS.iter().filter(is_shown).collect();
    if shown.is_empty() {
        return String::new();
    }
    let drawing = |told: &Told<'d>| {
        let strip = |(name, title): &&(&str, &str)| {
            let series = of(&told.row, name)?;
            Some(Strip {
                title: (*title).to_owned(),
                values: series.at("values"),
                unit: series.at("unit").text().into(),
                step: series.at("step").number().unwrap_or(1.0),
                most: all(name),
            })
        };
        let strips: Vec<_> = shown.iter().filter_map(strip).collect();
        let title = format!("{} over time", told.row.at("label").text());
        captioned(&timeline(&strips, told.hue, &title), &told.caption())
    };
    format!("<h3>Over time</h3>\n{}", beside(&rows.iter().map(drawing).collect::<Vec<_>>()))
}

/// Window, cwnd and queue, where there are some.
fn transfers<'d>(rows: &[Told<'d>]) -> String {
    let of = |row: &Node<'d>| -> Vec<_> {
        CURVES.iter().filter_map(|name| row.at("series").find("name", name)).collect()
    };
    let values: Vec<_> =
        rows.iter().flat_map(|it| of(&it.row)).flat_map(|it| it.at("values").numbers()).collect();
    if values.is_empty() {
        return String::new();
    }
    let ends = [1024.0, round_up(values.iter().copied().fold(4096.0, f64::max))];
    let drawing = |told: &Told<'d>| {
        let title = format!(
            "{}: window, cwnd, text in flight and queue over time",
            told.row.at("label").text()
        );
        captioned(&curves(&of(&told.row), ends, &title), &told.caption())
    };
    format!(
        "<h3>What may be on the way, and what is</h3>\n<p>The <i>window</i> is what the receiver has room for, <i>cwnd</i> what \
         the sender thinks the network carries: what is <i>in flight</i> stays below both. What is in flight, divided \
         by the round trip, is the rate. What the line cannot take yet waits in the <i>queue</i>.</p>\n{}",
        beside(&rows.iter().map(drawing).collect::<Vec<_>>())
    )
}

/// How long things took.
fn times<'d>(case: &Node<'d>, rows: &[Told<'d>]) -> String {
    let name = case.at("distribution").text();
    let curve = |told: &Told<'d>| {
        let of = told.row.at("distributions").find("name", name)?;
        Some((Curve { hue: told.hue, of }, told.caption()))
    };
    let curves: Vec<_> = rows.iter().filter_map(curve).collect();
    if curves.is_empty() {
        return String::new();
    }
    let steps = case.at("steps").items();
    let all: Vec<_> = curves.iter().map(|(curve, _)| curve.clone()).collect();
    let drawing = |(curve, caption): &(Curve<'_>, String)| {
        let title = format!("How many of all took longer than a time: {name}");
        captioned(&distribution(std::slice::from_ref(curve), &all, &steps, &title), caption)
    };
    let heading = if name == "opening" {
        "How long connections took to open"
    } else {
        "How long responses took"
    };
    let named = steps.iter().map(|step| {
        let at = step.at("at");
        let time = tick("s", at.number().unwrap_or_default());
        format!(
            "<li><data{}>{time}</data>: {}</li>",
            attributes(&at),
            escaped(step.at("name").text())
        )
    });
    let named: String = named.collect();
    let named = if named.is_empty() {
        named
    } else {
        format!("<p>The times that stand out:</p>\n<ul>{named}</ul>\n")
    };
    let drawings: Vec<_> = curves.iter().map(drawing).collect();
    format!(
        "<h3>{heading}</h3>\n<p>Read it as: so many of all took longer than the time below. A flat piece that ends in a step is \
         a wait that many share.</p>\n{}{named}",
        beside(&drawings)
    )
}

/// A connection of each row.
fn packets(rows: &[Told<'_>]) -> String {
    let drawing = |told: &Told<'_>| {
        let witness = told.row.at("witness");
        if witness.is_nothing() {
            return None;
        }
        let label = told.row.at("label").text();
        let drawing =
            sequence(&witness, told.hue, &format!("{label}: the packets of a connection"));
        let mut caption = format!(
            "{}<br>{}, from port {}",
            told.caption(),
            escaped(witness.at("shows").text()),
            port(&witness)
        );
        for note in told.row.at("notes").items().iter().filter(|_| told.hue != Hue::Own) {
            caption += &format!("<br><span class=\"soft\">{}</span>", escaped(note.text()));
        }
        Some(captioned(&drawing, &caption))
    };
    let drawings: Vec<_> = rows.iter().filter_map(drawing).collect();
    if drawings.is_empty() {
        return String::new();
    }
    format!(
        "<h3>One connection, packet by packet</h3>\n<p>Time runs down, from the first SYN of the connection; what is dotted is the \
         end of the one before it on the same port. Where a host keeps a closed connection in TIME-WAIT, its line is thick. \
         Behind a SYN or a reset stands how far its number is beyond what the receiver expected (RCV.NXT); below a packet, by \
         which rule it was judged.</p>\n{}",
        beside(&drawings)
    )
}

fn port(witness: &Node<'_>) -> String {
    let port = witness.at("port");
    format!("<data{}>{}</data>", attributes(&port), port.number().unwrap_or_default())
}

/// What each profile changes: first what decides the case.
fn rules(rows: &[Told<'_>]) -> String {
    let mut text = "<h3>What each changes of the default</h3>\n".to_owned();
    for told in rows {
        let changes = told.row.at("changes").items();
        let is_deciding = |change: &Node<'_>| change.at("decides").is_true();
        let (deciding, other): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_deciding);
        text += &format!("<p>{}</p>\n", told.caption());
        let (none, open) = match told.hue {
            Hue::Own => ("Nothing.", " open"),
            Hue::Old => ("Nothing that this case turns on.", " open"),
            Hue::Other => ("Nothing that this case turns on.", ""),
        };
        text += &match deciding.is_empty() {
            true => format!("<p>{none}</p>\n"),
            false => folded("Rules that this case turns on", open, &deciding),
        };
        if !other.is_empty() {
            text += &folded("Other rules that differ", "", &other);
        }
    }
    text
}

/// A table of changes that can be opened.
fn folded(summary: &str, open: &str, changes: &[Node<'_>]) -> String {
    let row = |change: &Node<'_>| {
        let code = |key: &str| format!("<code>{}</code>", escaped(change.at(key).text()));
        let cell = |key: &str| Cell::marked(code(key));
        let about = format!(
            "{} <span class=\"soft\">Source: {}</span>",
            escaped(change.at("help").text()),
            escaped(change.at("source").text())
        );
        (None, vec![cell("name"), cell("value"), cell("default"), Cell::marked(about)])
    };
    let rows: Vec<_> = changes.iter().map(row).collect();
    let table = table(&["rule", "here", "default", "what it is"], &rows);
    format!("<details{open}><summary>{summary}</summary>\n{table}</details>\n")
}

/// What runs each row again, and its packets.
fn commands(case: &Node<'_>) -> String {
    let rows = case.at("rows").items();
    let lines: Vec<_> = rows.iter().map(|row| escaped(row.at("command").text())).collect();
    let captures = rows.iter().filter(|row| !row.at("capture").is_nothing()).map(|row| {
        let label = escaped(row.at("label").text());
        format!("<li><a href=\"{}\">{label}</a></li>\n", link(row.at("capture").text()))
    });
    let captures: String = captures.collect();
    let captures = match captures.as_str() {
        "" => String::new(),
        some => {
            format!("<p>The packets of a connection of each row (pcapng):</p>\n<ul>\n{some}</ul>\n")
        }
    };
    format!("<h3>Run it yourself</h3>\n<pre><code>{}</code></pre>\n{captures}", lines.join("\n"))
}

/// A path as a link.
fn link(path: &str) -> String {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || b"/._-~+=,".contains(&octet);
    let letter = |octet: u8| match plain(octet) {
        true => char::from(octet).to_string(),
        false => format!("%{octet:02X}"),
    };
    path.bytes().map(letter).collect()
}

const DEFAULT: &str = "whimbrel";
/// Series over time, and how they are called.
const STRIPS: [(&str, &str); 7] = [
    ("requests/s", "requests answered per second"),
    ("TIME-WAIT, server", "connections the server keeps in TIME-WAIT"),
    ("TIME-WAIT, client", "connections the client keeps in TIME-WAIT"),
    ("ports free", "ports the client has free"),
    ("segments sent again/s", "packets sent again per second"),
    ("Mb/s", "Mb/s"),
    ("rate", "rate"),
];
const CURVES: [&str; 4] = ["window", "cwnd", "in flight", "queue"];
const LEAD: &str = "<p class=\"lead\">Each case is run by the rules of the system that failed, and the same by Whimbrel's own rules: \
the same load over the same network, packet by packet.</p>\n\
<ul class=\"key\"><li class=\"old-ink\"><b>✕ broken line</b>: the rules that failed</li>\
<li class=\"other-ink\"><b>△ dotted line</b>: what somebody changed of them</li>\
<li class=\"own-ink\"><b>✓ whole line</b>: Whimbrel by default</li></ul>\n";
const WORDS: &str = "<h3>Words that are needed</h3>\n<dl class=\"words\">\n\
<div><dt>Connection and port</dt><dd>A connection is known by two addresses and two ports. The side that opens it takes a free port for \
its end; to one server it has only some ten thousands.</dd></div>\n\
<div><dt>SYN</dt><dd>The packet that asks to open a connection. If nothing comes back, it is sent again after a while, \
and then after ever longer ones.</dd></div>\n\
<div><dt>TIME-WAIT</dt><dd>After the end of a connection, the side that closed first remembers it for some time, so that a late packet is \
not taken for one of a new connection on the same ports.</dd></div>\n\
<div><dt>Sequence number</dt><dd>Each byte has one. A connection begins at a number of its own; one that is lower than expected \
looks like an old packet.</dd></div>\n\
<div><dt>Timestamp</dt><dd>Most packets carry the sender's clock. It tells new from old where sequence numbers cannot.</dd></div>\n\
<div><dt>Window</dt><dd>How much the receiver has room for. A sender sends no more than that without an answer.</dd></div>\n</dl>\n";
