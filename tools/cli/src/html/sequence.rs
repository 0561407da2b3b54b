//! The packets of a connection between two hosts, with the rule by which the receiver judged each.

use super::figure::{attributes, show, time};
use super::hue::SeriesColor;
use super::markup::{Anchor, Drawing, escaped, width};
use super::node::Node;
use super::timeline::WIDTH;

/// The packets of a witness in `lab --json`.
pub(crate) fn sequence(evidence: &Node<'_>, hue: SeriesColor, title: &str) -> String {
    let packets = evidence.at("packets").items();
    let shown = &packets[..packets.len().min(MOST)];
    let (places, bottom) = places(shown);
    let height = bottom + FOOT;
    let mut drawing = Drawing::new("chart sequence", [WIDTH, height], title);
    drawing.text("name", [CLIENT, 12.0], Anchor::Middle, "client");
    drawing.text("name", [SERVER, 12.0], Anchor::Middle, "server");
    for x in [CLIENT, SERVER] {
        drawing.line("life", [x, 20.0], [x, bottom]);
    }
    bands(&mut drawing, shown, &places, bottom);
    let mut before = None;
    let mut told = String::new();
    for (packet, y) in shown.iter().zip(&places) {
        let since = packet.at("since").number();
        let is_later = is_later(before, since);
        if is_later {
            pause(&mut drawing, *y);
        }
        time_of(&mut drawing, packet, *y, &mut told, is_later);
        one(&mut drawing, packet, hue, *y);
        before = since;
    }
    if packets.len() > shown.len() {
        let text = "more packets: use --json, or a capture by --pcap-dir";
        drawing.text("note", [WIDTH / 2.0, height - 4.0], Anchor::Middle, text);
    }
    drawing.finish()
}

/// Position of each packet's start, and of the end of all.
fn places(packets: &[Node<'_>]) -> (Vec<f64>, f64) {
    let mut y = TOP;
    let mut places = Vec::new();
    for packet in packets {
        places.push(y);
        y += if says_more(packet) { EACH + WORDS } else { EACH };
    }
    (places, y)
}

/// True if the outcome of a packet is written below it.
fn says_more(packet: &Node<'_>) -> bool {
    !is_earlier(packet) && !packet.at("outcome").text().is_empty()
}

/// True if it belongs to the connection before.
fn is_earlier(packet: &Node<'_>) -> bool {
    packet.at("since").number().is_some_and(|since| since < 0.0)
}

/// True if it was dropped, or refuses.
fn is_refused(packet: &Node<'_>) -> bool {
    let is_reset = packet.at("flags").text().contains("RST");
    let refuses = is_reset && packet.at("from").text() == "server";
    refuses || !packet.at("verdict").at("dropped").text().is_empty()
}

/// When it left, unless that reads as the one before.
fn time_of(drawing: &mut Drawing, packet: &Node<'_>, y: f64, told: &mut String, is_later: bool) {
    let since = packet.at("since");
    let at = since.number().unwrap_or_default();
    let text = if at < 0.0 { format!("−{}", time(-at)) } else { time(at) };
    if text != *told {
        let class = if is_later { "tick later" } else { "tick" };
        drawing.marked(class, Anchor::End.at([CLIENT - 9.0, y + 4.0]), &attributes(&since), &text);
        *told = text;
    }
}

/// A break in both lines marks time that is not drawn.
fn pause(drawing: &mut Drawing, y: f64) {
    let y = y - 14.0;
    for x in [CLIENT, SERVER] {
        let [left, right] = [x - 5.0, x + 5.0];
        let slants =
            [y, y + 4.0].map(|y| format!("M{left:.1} {:.1}L{right:.1} {:.1}", y + 2.0, y - 2.0));
        drawing.path("pause", "", &slants.concat());
    }
}

/// True if a wait precedes it.
fn is_later(before: Option<f64>, since: Option<f64>) -> bool {
    since.zip(before).is_some_and(|(since, before)| since - before > 0.1)
}

/// Draws a host's line thick during TIME-WAIT.
fn bands(drawing: &mut Drawing, packets: &[Node<'_>], places: &[f64], bottom: f64) {
    for (side, x) in [("client", CLIENT), ("server", SERVER)] {
        let mut from = None;
        for (packet, y) in packets.iter().zip(places) {
            let y = *y + FALL;
            if packet.at("from").text() == side {
                // A client that reopens the same ports has released the old connection.
                if packet.at("flags").text() == "SYN"
                    && let Some(begun) = from.take()
                {
                    band(drawing, x, [begun, y - FALL]);
                }
                continue;
            }
            let is_waiting = packet.at("verdict").at("after").text() == WAITING;
            match (from, is_waiting) {
                (None, true) => from = Some(y),
                (Some(begun), false) if !packet.at("verdict").is_nothing() => {
                    // Where nothing was left when it came, the end is seen to lie before it.
                    let is_forgotten = packet.at("verdict").at("before").text().is_empty();
                    let until = if is_forgotten { y - EACH / 2.0 } else { y };
                    band(drawing, x, [begun, until]);
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

/// A host remembers the connection before.
fn band(drawing: &mut Drawing, x: f64, [from, until]: [f64; 2]) {
    drawing.rect("wait", [x - 4.0, from], [8.0, until - from], "");
    let name = "remembers";
    if until - from > width(name) + 4.0 && x == SERVER {
        let (x, y) = (x + 8.0, f64::midpoint(from, until.min(from + MOST_BAND)));
        let turned = format!(" transform=\"rotate(90 {x:.1} {y:.1})\"");
        drawing.marked("note", Anchor::Middle.at([x, y]), &turned, name);
    }
}

/// An arrow with its text, and below it the outcome.
fn one(drawing: &mut Drawing, packet: &Node<'_>, hue: SeriesColor, y: f64) {
    let is_clients = packet.at("from").text() == "client";
    let [from, to] =
        if is_clients { [CLIENT + 6.0, SERVER - 7.0] } else { [SERVER - 6.0, CLIENT + 7.0] };
    let is_dropped = is_refused(packet);
    let colour = match (is_earlier(packet), is_dropped, hue) {
        (true, ..) => "earlier",
        (_, true, _) => "dropped",
        (_, _, SeriesColor::Other) => "taken other",
        (..) => "taken",
    };
    drawing.line(&format!("arrow {colour}"), [from, y], [to, y + FALL]);
    let tip = if is_clients { -1.0 } else { 1.0 };
    let head = format!(
        "M{:.1} {:.1}L{to:.1} {:.1}L{:.1} {:.1}Z",
        to + tip * 7.0,
        y + FALL - 4.8,
        y + FALL,
        to + tip * 7.4,
        y + FALL + 2.8
    );
    drawing.path(&format!("tip {colour}"), "", &head);
    let middle = f64::midpoint(CLIENT, SERVER);
    drawing.marked("packet", Anchor::Middle.at([middle, y - 3.0]), "", &says(packet, is_dropped));
    if says_more(packet) {
        let class = match (is_dropped, hue) {
            (false, SeriesColor::Other) => "verdict other",
            (false, _) => "verdict own",
            (true, SeriesColor::Own) => "verdict quiet",
            (true, _) => "verdict old",
        };
        let at = [middle, y + FALL + 12.0];
        drawing.text(class, at, Anchor::Middle, &outcome(packet, is_dropped));
    }
}

/// Its flags, and the value that decides: the distance of its timestamp, or of its number from the
/// receiver's expectation.
fn says(packet: &Node<'_>, is_dropped: bool) -> String {
    let flags = packet.at("flags").text();
    let mut text = escaped(&flags.replace(',', "+"));
    let len = packet.at("len");
    if len.number().is_some_and(|len| len > 0.0) {
        let bytes = show("count", len.number().unwrap_or_default());
        text += &format!(", <tspan{}>{bytes}</tspan> bytes", attributes(&len));
    }
    let (newer, beyond) = (packet.at("newer"), packet.at("beyond"));
    let is_judged_by_port = packet.at("verdict").at("rules").at("tw.syn").text() == "never";
    let number = beyond.number().filter(|it| *it != 0.0 && !is_judged_by_port);
    match (newer.number().filter(|_| flags == "SYN" && !is_dropped), number) {
        (Some(seconds), _) => {
            let told = time(seconds);
            text += &format!(", timestamp <tspan{}>{told}</tspan> newer", attributes(&newer));
        }
        (None, Some(number)) => {
            let sign = if number > 0.0 { "+" } else { "" };
            let number = show("count", number);
            text += &format!(", number <tspan{}>{sign}{number}</tspan>", attributes(&beyond));
        }
        (None, None) => {}
    }
    text
}

/// Outcome of a packet, with the rule that decided.
fn outcome(packet: &Node<'_>, is_dropped: bool) -> String {
    let mark = if is_dropped { "✕" } else { "✓" };
    let outcome = packet.at("outcome").text();
    let verdict = packet.at("verdict");
    // The rule that judged a packet is shown, rather than the rule of the answer. The client's next
    // step is separate.
    let decides = verdict.at("before").text() == WAITING;
    match verdict.at("rules").entries().last().filter(|_| decides) {
        Some((key, value)) => format!("{mark} {outcome} ({key}={})", value.text()),
        None => format!("{mark} {outcome}"),
    }
}

const WAITING: &str = "TIME-WAIT";
/// Position of the hosts' lines.
const CLIENT: f64 = 60.0;
const SERVER: f64 = 318.0;
const TOP: f64 = 40.0;
/// Distance by which a packet arrives lower than it left.
const FALL: f64 = 8.0;
/// From one packet to the next, and how much more if there are words below it.
const EACH: f64 = 24.0;
const WORDS: f64 = 15.0;
const FOOT: f64 = 20.0;
/// The most packets that are drawn.
const MOST: usize = 13;
/// The name of a band stands in the middle of as much of it.
const MOST_BAND: f64 = 160.0;
