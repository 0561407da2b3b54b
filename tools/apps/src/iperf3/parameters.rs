//! Parameters of a test.

use alloc::string::{String, ToString};
use core::time::Duration;

use serde_json::{Map, Value, json};

use super::{Fault, Refusal};
use crate::direction::Direction;

/// Parameters of a test, as the client sends them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Transport protocol of the streams.
    pub protocol: Protocol,
    /// The time at the beginning that the totals leave out, whole seconds.
    pub omit: Duration,
    /// The time after that, whole seconds; zero if something else ends it.
    pub time: Duration,
    /// Total bytes that end it, over all streams.
    pub bytes: Option<u64>,
    /// Streams, in each direction.
    pub streams: u32,
    /// The side that sends, as the client sees it.
    pub direction: Direction,
    /// Bytes of the buffers of each side's sockets, if not the system's default.
    pub window: Option<u32>,
    /// Bytes per call.
    pub block: usize,
    /// Most bits per second on a stream.
    pub rate: Option<u64>,
    /// Most bits per second that the TCP of each stream sends: its text is paced.
    pub pacing_rate: Option<u64>,
    /// The most bytes of text in a segment.
    pub mss: Option<u16>,
    /// True if small segments are not delayed.
    pub no_delay: bool,
    /// The congestion control, by its name.
    pub congestion: Option<String>,
    /// True if the client wants the server's output.
    pub server_output: bool,
    /// True if a parameter would change the server's data and is not supported here.
    pub beyond: bool,
}

/// Transport protocol of the streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// TCP, the only supported one.
    Tcp,
    /// UDP, SCTP, or something newer.
    Other,
}

impl Parameters {
    /// The JSON document.
    pub fn document(&self) -> String {
        let mut map = Map::new();
        map.insert("tcp".into(), true.into());
        map.insert("omit".into(), whole_seconds(self.omit).into());
        map.insert("time".into(), whole_seconds(self.time).into());
        map.insert("num".into(), self.bytes.unwrap_or(0).into());
        map.insert("blockcount".into(), 0.into());
        map.insert("parallel".into(), self.streams.into());
        map.insert("len".into(), self.block.into());
        map.insert("pacing_timer".into(), 1000.into());
        let optional = [
            ("reverse", (self.direction == Direction::Receive).then(|| true.into())),
            ("bidirectional", (self.direction == Direction::Both).then(|| true.into())),
            ("window", self.window.map(Value::from)),
            ("bandwidth", self.rate.map(Value::from)),
            ("fqrate", self.pacing_rate.map(Value::from)),
            ("MSS", self.mss.map(Value::from)),
            ("nodelay", self.no_delay.then(|| true.into())),
            ("congestion", self.congestion.clone().map(Value::from)),
            ("get_server_output", self.server_output.then(|| 1.into())),
        ];
        let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
        map.extend(optional.map(|(name, value)| (name.to_string(), value)));
        map.insert("client_version".into(), VERSION.into());
        Value::from(map).to_string()
    }

    /// Parses a JSON document.
    pub fn parse(document: &[u8]) -> Result<Self, Fault> {
        let value: Value = serde_json::from_slice(document).map_err(|_| Fault::Malformed)?;
        let map = value.as_object().ok_or(Fault::Malformed)?;
        let has = |name: &str| map.get(name).is_some_and(|value| *value != json!(false));
        let number = |name: &str| match map.get(name) {
            None => Ok(0),
            Some(value) => number(value).ok_or(Fault::Malformed),
        };
        let some = |name: &str| number(name).map(|value| (value > 0).then_some(value));
        let seconds = |name: &str| number(name).map(Duration::from_secs);
        let small =
            |value: Option<u64>| value.map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let direction = match (has("bidirectional"), has("reverse")) {
            (true, _) => Direction::Both,
            (false, true) => Direction::Receive,
            (false, false) => Direction::Send,
        };
        let mut beyond = false;
        for name in ["TOS", "flowlabel", "burst"] {
            beyond |= some(name)?.is_some();
        }
        Ok(Self {
            protocol: match has("tcp") && !has("udp") && !has("sctp") {
                true => Protocol::Tcp,
                false => Protocol::Other,
            },
            omit: seconds("omit")?,
            time: seconds("time")?,
            bytes: some("num")?,
            streams: small(some("parallel")?).unwrap_or(1),
            direction,
            window: small(some("window")?),
            block: some("len")?
                .map_or(DEFAULT_BLOCK, |block| usize::try_from(block).unwrap_or(usize::MAX)),
            rate: some("bandwidth")?,
            pacing_rate: some("fqrate")?,
            mss: small(some("MSS")?).map(|mss| u16::try_from(mss).unwrap_or(u16::MAX)),
            no_delay: has("nodelay"),
            congestion: map.get("congestion").and_then(Value::as_str).map(ToString::to_string),
            server_output: has("get_server_output"),
            beyond,
        })
    }

    /// Checks that a server with these congestion controls can run the test.
    pub(crate) fn judge(&self, knows: impl Fn(&str) -> bool) -> Result<(), Refusal> {
        let sends = self.direction != Direction::Send;
        let refused = [
            (self.protocol != Protocol::Tcp, Refusal::Protocol),
            (self.time > LONGEST, Refusal::Duration),
            (self.omit > LONGEST_OMITTED, Refusal::Omit),
            (self.streams > MOST_STREAMS, Refusal::Streams),
            (self.block > LONGEST_BLOCK, Refusal::BlockSize),
            (self.window.is_some_and(|bytes| bytes > LARGEST_WINDOW), Refusal::Buffers),
            (self.beyond && sends, Refusal::Unimplemented),
            (self.congestion.as_deref().is_some_and(|name| !knows(name)), Refusal::Congestion),
        ];
        match refused.into_iter().find(|(refused, _)| *refused) {
            Some((_, refusal)) => Err(refusal),
            None => Ok(()),
        }
    }
}

/// A number of at least 0. Large ones may be written with an exponent.
pub(super) fn number(value: &Value) -> Option<u64> {
    if let Some(whole) = value.as_u64() {
        return Some(whole);
    }
    let real = value.as_f64().filter(|real| (0.0..1e19).contains(real))?;
    Some(real as u64)
}

/// Rounds up: a peer that gets a shorter time gives up too early.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Version that the client sends.
const VERSION: &str = concat!("whimbrel ", env!("CARGO_PKG_VERSION"));
/// Block size if the client gives none.
const DEFAULT_BLOCK: usize = 128 << 10;
/// iperf3's limits: the longest test, the most omitted, the most streams, the longest block.
const LONGEST: Duration = Duration::from_secs(86_400);
const LONGEST_OMITTED: Duration = Duration::from_secs(600);
const MOST_STREAMS: u32 = 128;
const LONGEST_BLOCK: usize = 1 << 20;
/// Largest buffers that a client may request, bytes.
const LARGEST_WINDOW: u32 = 16 << 20;
