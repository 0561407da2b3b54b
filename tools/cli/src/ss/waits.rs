//! Reasons why sockets wait, in words, and their deadlines.

use serde_json::Value;

use super::field;
use super::info::seconds;

/// Reason why a socket waits, and for how long.
pub(super) fn reason(socket: &Value) -> String {
    if field(socket, "transport") == "udp" {
        return match number(socket, "recv_q") {
            0 => "for datagrams".into(),
            bytes => format!("for the application to receive {bytes} bytes"),
        };
    }
    match field(socket, "state") {
        "LISTEN" => match (number(socket, "recv_q"), number(socket, "send_q")) {
            (0, _) => "for connections".into(),
            (waiting, most) => {
                format!("for the application to accept {waiting} connections, of at most {most}")
            }
        },
        "SYN-SENT" => format!("for an answer to our SYN{}", timer(socket)),
        "SYN-RECEIVED" => format!("for the peer to acknowledge our SYN-ACK{}", timer(socket)),
        "TIME-WAIT" => format!("for old segments to leave the network{}", timer(socket)),
        _ => socket.get("info").map_or_else(String::new, |info| established(socket, info)),
    }
}

/// Of a connection that is open, or closes.
fn established(socket: &Value, info: &Value) -> String {
    let unsent = number(info, "notsent");
    let held = held(info);
    let mut reasons = Vec::new();
    match field(info, "limit") {
        "window" if info["persist"] == true => reasons.push(format!(
            "for the peer to open its window, which is closed: {unsent} bytes are unsent{held}{}",
            timer(socket)
        )),
        "window" => reasons.push(format!(
            "for the peer's window of {} bytes: {unsent} bytes are unsent{held}",
            number(info, "snd_wnd")
        )),
        "network" => {
            let unacked = number(info, "send_queued").saturating_sub(unsent);
            let cwnd = number(info, "cwnd");
            let full = number(info, "pipe") + number(info, "mss") > cwnd && unsent > 0;
            reasons.push(match full {
                true => format!(
                    "for the congestion window of {cwnd} bytes: {unsent} bytes are unsent{held}"
                ),
                false => {
                    format!("for the peer to acknowledge {unacked} bytes{held}{}", timer(socket))
                }
            });
        }
        "buffer" => reasons.push(format!(
            "for room in the send buffer of {} bytes{held}",
            number(info, "send_buffer")
        )),
        _ => {}
    }
    match number(info, "unread") {
        0 => {}
        bytes => reasons.push(format!("for the application to read {bytes} bytes")),
    }
    match field(socket, "state") {
        "CLOSE-WAIT" => reasons.push("for the application to close: the peer has".into()),
        "FIN-WAIT-2" => reasons.push(format!("for the peer to close{}", timer(socket))),
        "FIN-WAIT-1" | "CLOSING" | "LAST-ACK" => {
            reasons.push(format!("for the peer to acknowledge our FIN{}", timer(socket)));
        }
        _ if reasons.is_empty() => {
            let idle = ["lastsnd", "lastrcv"].map(|name| seconds(&info[name]));
            let idle = idle.into_iter().flatten().min();
            let since = idle.map_or_else(String::new, |idle| format!(", for {idle:.0?}"));
            reasons.push(format!("for either application to send{since}"));
        }
        _ => {}
    }
    reasons.join("; ")
}

/// The time for which the limit has held.
fn held(info: &Value) -> String {
    seconds(&info["limit_held"]).map_or_else(String::new, |held| format!(", for {held:.0?}"))
}

/// The next timer.
fn timer(socket: &Value) -> String {
    let first = socket["timers"].as_array().and_then(|timers| timers.first());
    let left = first.and_then(|timer| Some((timer, seconds(&timer["left"])?)));
    left.map_or_else(String::new, |(timer, left)| {
        let attempts = number(timer, "attempts");
        let again = if attempts > 0 { format!(", attempt {attempts}") } else { String::new() };
        format!("; {} in {left:.0?}{again}", field(timer, "name"))
    })
}

/// Every deadline of --deadlines.
pub(super) fn deadlines(socket: &Value) -> Option<String> {
    let timers = socket["timers"].as_array().filter(|timers| !timers.is_empty())?;
    let deadline = |timer: &Value| {
        let left = seconds(&timer["left"]).unwrap_or_default();
        format!("{}:{:.3}s", field(timer, "name"), left.as_secs_f64())
    };
    let each: Vec<_> = timers.iter().map(deadline).collect();
    Some(format!("deadlines:({})", each.join(",")))
}

fn number(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or(0)
}
