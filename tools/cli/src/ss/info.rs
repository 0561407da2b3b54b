//! The variables of a connection, with the names and the order of `ss -i`, and its timers.

use std::time::Duration;

use serde_json::Value;

use super::field;

/// The timer of -o: the sender's, or the only one.
pub(super) fn timer(socket: &Value) -> Option<String> {
    let timers = socket["timers"].as_array()?;
    let named = |timer: &Value| NAMES.iter().find(|(own, _)| *own == field(timer, "name"));
    let (timer, (_, name)) = timers.iter().find_map(|timer| Some((timer, named(timer)?)))?;
    let attempts = timer["attempts"].as_u64().unwrap_or(0);
    Some(format!("timer:({name},{},{attempts})", span(seconds(&timer["left"])?)))
}

/// A time as `ss` writes it: `1min20sec`, `59sec`, `5.120ms`, `200ms`.
fn span(time: Duration) -> String {
    let (minutes, seconds, millis) =
        (time.as_secs() / 60, time.as_secs() % 60, time.subsec_millis());
    let minutes_text = if minutes > 0 { format!("{minutes}min") } else { String::new() };
    match (minutes, seconds) {
        (0, 0) => format!("{millis}ms"),
        // Beyond ten seconds, milliseconds mean nothing.
        (0, 1..=9) if millis > 0 => format!("{seconds}.{millis:03}ms"),
        (_, 0) => minutes_text,
        _ => format!("{minutes_text}{seconds}sec"),
    }
}

/// The buffers of -m.
pub(super) fn memory(socket: &Value) -> Option<String> {
    let info = socket.get("info")?;
    let number = |name: &str| info[name].as_u64().unwrap_or(0);
    Some(format!(
        "skmem:(r{},rb{},t0,tb{},f0,w{},o0,bl0,d0)",
        number("unread"),
        number("recv_buffer"),
        number("send_buffer"),
        number("send_queued"),
    ))
}

/// The variables of -i.
pub(super) fn variables(socket: &Value) -> Option<String> {
    let info = Info(socket.get("info")?);
    let mut parts = info.negotiated();
    parts.extend(info.times());
    parts.extend(info.sizes());
    parts.extend(info.counts());
    parts.extend(info.pauses());
    parts.extend(info.limits());
    parts.extend(info.losses());
    Some(parts.join(" "))
}

struct Info<'v>(&'v Value);

impl Info<'_> {
    fn number(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or(0)
    }

    fn is(&self, name: &str) -> bool {
        self.0[name] == true
    }

    /// Milliseconds of a time, `None` if it was not measured.
    fn millis(&self, name: &str) -> Option<f64> {
        seconds(&self.0[name]).map(|time| time.as_micros() as f64 / 1e3)
    }

    /// Milliseconds of a time, `None` below a microsecond, as `ss` has it.
    fn measured(&self, name: &str) -> Option<f64> {
        self.millis(name).filter(|time| *time > 0.0)
    }

    fn mss(&self) -> u64 {
        self.number("mss").max(1)
    }

    /// `name:value`, unless the value is 0.
    fn positive(&self, name: &str) -> Option<String> {
        Some(self.number(name)).filter(|value| *value > 0).map(|value| format!("{name}:{value}"))
    }

    fn negotiated(&self) -> Vec<String> {
        let flags = ["ts", "sack", "ecn", "fastopen"];
        let flags = flags.into_iter().filter(|name| self.is(name)).map(str::to_owned);
        let mut parts: Vec<_> = flags.collect();
        parts.push(field(self.0, "congestion").into());
        if let [peer, own] = self.0["wscale"].as_array().map_or(&[][..], Vec::as_slice) {
            parts.push(format!("wscale:{peer},{own}"));
        }
        parts
    }

    fn times(&self) -> Vec<String> {
        let rto = self.millis("rto").map(|rto| format!("rto:{}", significant(rto)));
        let rtt = self.measured("rtt").map(|rtt| {
            let variance = self.millis("rttvar").unwrap_or(0.0);
            format!("rtt:{}/{}", significant(rtt), significant(variance))
        });
        let ato = self.measured("ato").map(|ato| format!("ato:{}", significant(ato)));
        [rto, self.positive("backoff"), rtt, ato].into_iter().flatten().collect()
    }

    fn sizes(&self) -> Vec<String> {
        let mss = self.mss();
        let mut parts = vec![format!("mss:{mss}")];
        parts.extend(["pmtu", "rcvmss", "advmss"].iter().filter_map(|name| self.positive(name)));
        parts.push(format!("cwnd:{}", self.number("cwnd") / mss));
        let threshold = self.0["ssthresh"].as_u64();
        parts.extend(threshold.map(|threshold| format!("ssthresh:{}", threshold / mss)));
        parts
    }

    fn counts(&self) -> Vec<String> {
        COUNTS.iter().filter_map(|name| self.positive(name)).collect()
    }

    fn pauses(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if let Some(rtt) = self.measured("rtt") {
            let full_segments = self.number("cwnd") / self.mss() * self.mss();
            let rate = full_segments as f64 * 8e3 / rtt;
            parts.push(format!("send {rate:.0}bps"));
        }
        for name in ["lastsnd", "lastrcv", "lastack"] {
            let millis = self.millis(name).filter(|millis| *millis > 0.0);
            parts.extend(millis.map(|millis| format!("{name}:{millis:.0}")));
        }
        parts.extend(self.pacing());
        parts.extend(["delivered", "delivered_ce"].into_iter().filter_map(|it| self.positive(it)));
        parts
    }

    /// The rate at which text leaves, and what it is limited to.
    fn pacing(&self) -> Option<String> {
        let bits = |name: &str| self.0[name].as_u64().map(|bytes| bytes as f64 * 8.0);
        let rate = bits("pacing_rate").filter(|rate| *rate > 0.0)?;
        let most = bits("max_pacing_rate").map(|most| format!("/{most:.0}bps"));
        Some(format!("pacing_rate {rate:.0}bps{}", most.unwrap_or_default()))
    }

    fn limits(&self) -> Vec<String> {
        let Some(busy) = self.millis("busy").filter(|busy| *busy > 0.0) else { return Vec::new() };
        let mut parts = vec![format!("busy:{busy:.0}ms")];
        for name in ["rwnd_limited", "sndbuf_limited"] {
            let limited = self.millis(name).filter(|limited| *limited > 0.0);
            let part = |limited| format!("{name}:{limited:.0}ms({:.1}%)", limited * 100.0 / busy);
            parts.extend(limited.map(part));
        }
        parts
    }

    fn losses(&self) -> Vec<String> {
        let mss = self.mss();
        let segments = |name: &str, from: &str| {
            let count = self.number(from).div_ceil(mss);
            Some(count).filter(|count| *count > 0).map(|count| format!("{name}:{count}"))
        };
        let (out, total) = (self.number("retrans_out").div_ceil(mss), self.number("retrans_total"));
        let retrans = (out + total > 0).then(|| format!("retrans:{out}/{total}"));
        let minrtt = self.measured("minrtt").map(|rtt| format!("minrtt:{}", significant(rtt)));
        let parts = [
            segments("unacked", "unacked"),
            retrans,
            segments("lost", "lost"),
            self.positive("sacked"),
            self.positive("dsack_dups"),
            self.positive("reord_seen"),
            self.positive("rcv_ssthresh"),
            self.positive("notsent"),
            minrtt,
            self.positive("snd_wnd"),
        ];
        parts.into_iter().flatten().collect()
    }
}

/// Six significant digits, as printf's %g has them.
fn significant(value: f64) -> String {
    let digits = if value >= 1.0 { value.log10().floor() as usize + 1 } else { 1 };
    let text = format!("{value:.*}", 6_usize.saturating_sub(digits));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

pub(super) fn seconds(value: &Value) -> Option<Duration> {
    Duration::try_from_secs_f64(value.as_f64()?).ok()
}

/// Names of timers here and in `ss`; those that it has no name for are left out.
const NAMES: [(&str, &str); 8] = [
    ("retransmission", "on"),
    ("reordering", "on"),
    ("loss-probe", "on"),
    ("syn-again", "on"),
    ("syn-ack", "on"),
    ("persist", "persist"),
    ("keep-alive", "keepalive"),
    ("time-wait", "timewait"),
];
const COUNTS: [&str; 8] = [
    "bytes_sent",
    "bytes_retrans",
    "bytes_acked",
    "bytes_received",
    "segs_out",
    "segs_in",
    "data_segs_out",
    "data_segs_in",
];

#[cfg(test)]
mod tests;
