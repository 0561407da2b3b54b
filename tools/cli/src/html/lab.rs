//! The page of `lab run`: all cases at a glance, then each with its story, figures and drawings.

use super::curves::curves;
use super::drawn::{DrawnRow, drawn_rows};
use super::figure::attributes;
use super::glance::cards;
use super::markup::{escaped, prose};
use super::narrative::{LEAD, WORDS, advice, narrative};
use super::node::Node;
use super::outcome::figures;
use super::page::{captioned, page as whole, part, section, side_by_side};
use super::rules::rules;
use super::scale::round_up;
use super::sequence::sequence;
use super::timeline::{Limit, TimelineSeries, most, timeline};
use super::waits::times;

/// The page of `whimbrel.lab/1`.
pub(crate) fn page(root: &Node<'_>) -> String {
    let cases = root.at("cases").items();
    let title = match cases.as_slice() {
        [one] => one.at("glance").at("title").text().to_owned(),
        _ => "Known TCP failures, and their cures".to_owned(),
    };
    let mut sections = vec![format!(
        "<section class=\"plain\">\n{}{}{WORDS}</section>\n",
        contents(&cases),
        cards(&cases)
    )];
    // The title of a single case is that of the page.
    let headings = cases.iter().map(|case| match cases.len() {
        1 => "Cause and cure",
        _ => case.at("glance").at("title").text(),
    });
    sections.extend(cases.iter().zip(headings).map(|(it, heading)| case(it, heading)));
    whole(&title, LEAD, &sections, root.at("tool").text(), root.at("command").text())
}

/// Links to the cases, if there are several.
fn contents(cases: &[Node<'_>]) -> String {
    let link = |case: &Node<'_>| {
        let [name, title] =
            [case.at("name"), case.at("glance").at("title")].map(|it| escaped(it.text()));
        format!("<li><a href=\"#{name}\">{title}</a></li>\n")
    };
    match cases {
        [_] => String::new(),
        _ => format!(
            "<nav class=\"contents\" aria-label=\"Contents\">\n<ol>\n{}</ol>\n</nav>\n",
            cases.iter().map(link).collect::<String>()
        ),
    }
}

fn case(case: &Node<'_>, heading: &str) -> String {
    let rows = drawn_rows(case);
    let name = case.at("name").text();
    let mut body =
        format!("<p class=\"soft\">{}: {}.</p>\n", escaped(name), escaped(case.at("about").text()));
    body +=
        &format!("<div class=\"why\"><p>{}</p></div>\n", prose(case.at("glance").at("why").text()));
    body += &advice(case);
    body += &narrative(case);
    body += &figures(case);
    body += &timelines(case, &rows);
    body += &transfers(&rows);
    body += &times(case, &rows);
    body += &packets(&rows);
    body += &rules(&rows);
    body += &commands(case);
    section(name, heading, &body).replacen("<section ", "<section class=\"case\" ", 1)
}

/// Held and sent bytes over time, of each row on the same axes, with descriptions.
fn timelines<'d>(case: &Node<'d>, rows: &[DrawnRow<'d>]) -> String {
    let of = |row: &Node<'d>, name: &str| row.at("series").find("name", name);
    // A series that is zero in every row shows nothing; if one row has some, zero is worth showing.
    let is_told = |name: &str| {
        let values = rows.iter().filter_map(|it| Some(of(&it.row, name)?.at("values").numbers()));
        values.flatten().any(|value| value > 0.0)
    };
    let all = case.at("strips").items();
    let shown: Vec<_> = all.iter().filter(|it| is_told(it.at("series").text())).collect();
    if shown.is_empty() {
        return String::new();
    }
    let drawing = |drawn: &DrawnRow<'d>| {
        let strip = |strip: &&Node<'d>| {
            let name = strip.at("series").text();
            let series = of(&drawn.row, name)?;
            let figure = strip.at("limit").at("figure").text();
            let limit = drawn.row.at("figures").at(figure).at("value");
            let bound = limit.number().unwrap_or_default();
            let values = rows.iter().filter_map(|it| Some(of(&it.row, name)?.at("values")));
            let name = strip.at("limit").at("name").text();
            Some(TimelineSeries {
                title: strip.at("title").text().to_owned(),
                values: series.at("values"),
                unit: series.at("unit").text().into(),
                step: series.at("step").number().unwrap_or(1.0),
                most: round_up(most(values).max(bound)),
                limit: (bound > 0.0).then(|| Limit { name: name.to_owned(), value: limit }),
            })
        };
        let strips: Vec<_> = shown.iter().filter_map(strip).collect();
        let title = format!("{} over time", drawn.row.at("label").text());
        let drawing = timeline(&strips, &drawn.row.at("marks").items(), drawn.hue, &title);
        captioned(&drawing, &drawn.caption())
    };
    let says = shown.iter().map(|strip| {
        let [title, says] = ["title", "says"].map(|key| prose(strip.at(key).text()));
        format!("<li><b>{title}</b>: {says}</li>\n")
    });
    let says = format!("<ul class=\"says\">\n{}</ul>\n", says.collect::<String>());
    part("Over time", &(says + &side_by_side(&rows.iter().map(drawing).collect::<Vec<_>>())))
}

/// Window, cwnd and queue, where there are some.
fn transfers<'d>(rows: &[DrawnRow<'d>]) -> String {
    let of = |row: &Node<'d>| -> Vec<_> {
        CURVES.iter().filter_map(|name| row.at("series").find("name", name)).collect()
    };
    let values: Vec<_> =
        rows.iter().flat_map(|it| of(&it.row)).flat_map(|it| it.at("values").numbers()).collect();
    if values.is_empty() {
        return String::new();
    }
    let ends = [1024.0, round_up(values.iter().copied().fold(4096.0, f64::max))];
    let drawing = |drawn: &DrawnRow<'d>| {
        let title = format!(
            "{}: window, cwnd, text in flight and queue over time",
            drawn.row.at("label").text()
        );
        captioned(&curves(&of(&drawn.row), ends, &title), &drawn.caption())
    };
    let about = "<p>The <i>window</i> is the receiver's free space, <i>cwnd</i> the sender's \
                 estimate of the network's capacity; data <i>in flight</i> stays below both. Data \
                 in flight divided by the round trip is the rate. Packets wait in the \
                 <i>queue</i> until the line is free.</p>\n";
    let drawings: Vec<_> = rows.iter().map(drawing).collect();
    part(
        "Limits of data in flight, and data in flight",
        &(about.to_owned() + &side_by_side(&drawings)),
    )
}

/// A connection of each row.
fn packets(rows: &[DrawnRow<'_>]) -> String {
    let drawing = |drawn: &DrawnRow<'_>| {
        let evidence = drawn.row.at("witness");
        if evidence.is_nothing() {
            return None;
        }
        let label = drawn.row.at("label").text();
        let drawing =
            sequence(&evidence, drawn.hue, &format!("{label}: the packets of a connection"));
        let port = evidence.at("port");
        let caption = format!(
            "{}<br>{}, from port <data{}>{}</data>",
            drawn.caption(),
            escaped(evidence.at("shows").text()),
            attributes(&port),
            port.number().unwrap_or_default()
        );
        Some(captioned(&drawing, &caption))
    };
    let drawings: Vec<_> = rows.iter().filter_map(drawing).collect();
    if drawings.is_empty() {
        return String::new();
    }
    part(
        "One connection of each row, packet by packet",
        &(PACKETS.to_owned() + &side_by_side(&drawings)),
    )
}

/// Commands that repeat each row, and its packets.
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
    let lines = format!("<pre><code>{}</code></pre>\n{captures}", lines.join("\n"));
    part("Run it yourself", &lines)
}

/// A path as a link.
fn link(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~+=,".contains(&byte);
    let letter = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.bytes().map(letter).collect()
}

const CURVES: [&str; 4] = ["window", "cwnd", "in flight", "queue"];
const PACKETS: &str = "<p>Time runs down. Grey shows the end of the previous connection on the \
same port; the line of a host in TIME-WAIT is orange. Then a SYN opens a new connection. Next to it \
stands the distance of its timestamp or sequence number to the last on this port, if that decides. \
Below it stands its outcome, with the rule that decided (name and value, as below). Each run has \
different ports; the page shows its first connection that matches the caption.</p>\n";

#[cfg(test)]
mod tests;
