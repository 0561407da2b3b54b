//! The packets of a connection between two hosts, with the rule by which the receiver judged each.

use super::figure::{attributes, show, time};
use super::hue::Hue;
use super::markup::{Anchor, Drawing, escaped};
use super::node::Node;
use super::timeline::WIDTH;

/// The packets of a witness, as `lab --json` has it.
pub(crate) fn sequence(witness: &Node<'_>, hue: Hue, title: &str) -> String {
    let packets = witness.at("packets").items();
    let shown = &packets[..packets.len().min(MOST)];
    let height = TOP + shown.len() as f64 * EACH + FOOT;
    let mut drawing = Drawing::new("chart sequence", [WIDTH, height], title);
    drawing.text("name", [CLIENT, 12.0], Anchor::Middle, "client");
    drawing.text("name", [SERVER, 12.0], Anchor::Middle, "server");
    let bottom = height - FOOT + 8.0;
    for x in [CLIENT, SERVER] {
        drawing.line("life", [x, 20.0], [x, bottom]);
    }
    bands(&mut drawing, shown, bottom);
    let mut before = None;
    for (place, packet) in shown.iter().enumerate() {
        let y = TOP + place as f64 * EACH;
        let since = packet.at("since").number();
        one(&mut drawing, packet, hue, y, is_later(before, since));
        before = since;
    }
    if packets.len() > shown.len() {
        let text = "and so on: the rest is in the document and in the capture";
        drawing.text("note", [WIDTH / 2.0, height - 4.0], Anchor::Middle, text);
    }
    drawing.finish()
}

/// Whether somebody waited before it.
fn is_later(before: Option<f64>, since: Option<f64>) -> bool {
    since.zip(before).is_some_and(|(since, before)| since - before > 0.1)
}

/// Where a host is in TIME-WAIT, its line is thick.
fn bands(drawing: &mut Drawing, packets: &[Node<'_>], bottom: f64) {
    for (side, x) in [("client", CLIENT), ("server", SERVER)] {
        let mut from = None;
        for (place, packet) in packets.iter().enumerate() {
            let y = TOP + place as f64 * EACH + 10.0;
            if packet.at("from").text() == side {
                // Whoever opens on the same ports has let go of what was there.
                if packet.at("flags").text() == "SYN"
                    && let Some(begun) = from.take()
                {
                    band(drawing, x, [begun, y - 10.0]);
                }
                continue;
            }
            let is_waiting = packet.at("verdict").at("after").text() == WAITING;
            match (from, is_waiting) {
                (None, true) => from = Some(y),
                (Some(begun), false) if !packet.at("verdict").is_nothing() => {
                    band(drawing, x, [begun, y]);
                    from = None;
                }
                _ => {}
            }
        }
        if let Some(begun) = from {
            band(drawing, x, [begun, bottom]);
        }
    }
}

fn band(drawing: &mut Drawing, x: f64, [from, until]: [f64; 2]) {
    drawing.rect("wait", [x - 4.0, from], [8.0, until - from], "");
}

/// An arrow, with the time, what it says, and what became of it.
fn one(drawing: &mut Drawing, packet: &Node<'_>, hue: Hue, y: f64, is_later: bool) {
    let is_clients = packet.at("from").text() == "client";
    let is_earlier = packet.at("since").number().is_some_and(|since| since < 0.0);
    let [from, to] = if is_clients { [CLIENT, SERVER] } else { [SERVER, CLIENT] };
    let [from, to] = if is_clients { [from + 6.0, to - 7.0] } else { [from - 6.0, to + 7.0] };
    let since = packet.at("since");
    let at = since.number().unwrap_or_default();
    let told = if at < 0.0 { format!("−{}", time(-at)) } else { time(at) };
    let class = if is_later { "tick later" } else { "tick" };
    drawing.marked(class, Anchor::End.at([CLIENT - 12.0, y + 4.0]), &attributes(&since), &told);
    let dropped = packet.at("verdict").at("dropped").text();
    let colour = match (is_earlier, dropped.is_empty()) {
        (true, _) => "earlier",
        (false, false) => "dropped",
        (false, true) => "taken",
    };
    drawing.line(&format!("arrow {colour}"), [from, y], [to, y + 10.0]);
    let tip = if is_clients { -1.0 } else { 1.0 };
    let head = format!(
        "M{:.1} {:.1}L{to:.1} {:.1}L{:.1} {:.1}Z",
        to + tip * 7.0,
        y + 5.2,
        y + 10.0,
        to + tip * 7.4,
        y + 12.8
    );
    drawing.path(&format!("tip {colour}"), "", &head);
    let middle = (CLIENT + SERVER) / 2.0;
    drawing.marked("packet", Anchor::Middle.at([middle, y - 3.0]), "", &says(packet));
    let verdict = verdict(packet);
    if !is_earlier && !verdict.is_empty() {
        let class = format!("verdict {}", if dropped.is_empty() { "own" } else { hue_of(hue) });
        drawing.text(&class, [middle, y + 24.0], Anchor::Middle, &verdict);
    }
}

const fn hue_of(hue: Hue) -> &'static str {
    match hue {
        Hue::Own => "quiet",
        Hue::Old | Hue::Other => "old",
    }
}

/// Its flags, and its number relative to RCV.NXT.
fn says(packet: &Node<'_>) -> String {
    let mut text = escaped(&packet.at("flags").text().replace(',', "+"));
    let len = packet.at("len");
    if len.number().is_some_and(|len| len > 0.0) {
        let bytes = show("count", len.number().unwrap_or_default());
        text += &format!(", <tspan{}>{bytes}</tspan> bytes", attributes(&len));
    }
    let beyond = packet.at("beyond");
    if let Some(number) = beyond.number().filter(|it| *it != 0.0) {
        let sign = if number > 0.0 { "+" } else { "" };
        let number = show("count", number);
        text += &format!(", number <tspan{}>{sign}{number}</tspan>", attributes(&beyond));
    }
    text
}

/// What the receiver made of it, and by which rule.
fn verdict(packet: &Node<'_>) -> String {
    let verdict = packet.at("verdict");
    let rules = verdict.at("rules").entries();
    // Of the rule that judged, and of what was answered: the former.
    let rule = rules.last().map(|(key, value)| format!("{key}={}", value.text()));
    let is_opening = verdict.at("before").text() == "SYN-SENT";
    match (verdict.at("dropped").text(), rule) {
        ("", None) => String::new(),
        ("", Some(rule)) if packet.at("flags").text().contains("RST") => {
            format!("✓ ends TIME-WAIT by {rule}")
        }
        ("", Some(rule)) => format!("✓ let in by {rule}"),
        (_, Some(_)) if is_opening => "✕ no answer to the SYN: reset".into(),
        (_, Some(rule)) => format!("✕ refused by {rule}"),
        (reason, None) => format!("✕ {reason}"),
    }
}

const WAITING: &str = "TIME-WAIT";
/// Where the lines of the hosts are.
const CLIENT: f64 = 76.0;
const SERVER: f64 = 318.0;
const TOP: f64 = 40.0;
const EACH: f64 = 46.0;
const FOOT: f64 = 26.0;
/// The most packets that are drawn.
const MOST: usize = 15;
