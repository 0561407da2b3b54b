//! Results that the sides exchange at the end.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde_json::{Map, Value, json};
use whimbrel_base::Foreign;

use super::Fault;
use super::parameters::number;

/// Results of one side.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Results {
    /// Processor load of this side.
    pub processors: Processors,
    /// True if it counts retransmissions.
    pub has_retransmits: bool,
    /// Congestion control, if the side names it.
    pub congestion: Option<Foreign<String>>,
    /// Output of the server, if the client requested it.
    pub server_output: Option<Foreign<String>>,
    /// Results of each stream, in the order of their numbers.
    pub streams: Vec<StreamResult>,
}

/// Processor load of one side, in percent of one processor.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Processors {
    /// Of the process in all, percent of one processor.
    pub total: f64,
    /// For the program itself.
    pub user: f64,
    /// For it in the kernel.
    pub system: f64,
}

impl Processors {
    /// Load for these processor times within `elapsed`.
    pub fn new([user, system]: [Duration; 2], elapsed: Duration) -> Self {
        let whole = elapsed.as_secs_f64();
        let percent = |time: Duration| {
            if whole > 0.0 { 100.0 * time.as_secs_f64() / whole } else { 0.0 }
        };
        Self { total: percent(user + system), user: percent(user), system: percent(system) }
    }
}

/// One stream, as one side counted it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct StreamResult {
    /// iperf3's number of the stream: 1, then 3, 4, ….
    pub id: u64,
    /// Bytes sent or received, without the omitted part.
    pub bytes: u64,
    /// Segments retransmitted, if this side sent and counts them.
    pub retransmits: Option<u64>,
    /// Duration in seconds.
    pub seconds: f64,
}

impl Results {
    /// The JSON document.
    pub fn document(&self) -> String {
        let mut map = Map::new();
        map.insert("cpu_util_total".into(), self.processors.total.into());
        map.insert("cpu_util_user".into(), self.processors.user.into());
        map.insert("cpu_util_system".into(), self.processors.system.into());
        let known = if self.has_retransmits { 1 } else { -1 };
        map.insert("sender_has_retransmits".into(), known.into());
        if let Some(name) = &self.congestion {
            map.insert("congestion_used".into(), name.verbatim().clone().into());
        }
        if let Some(text) = &self.server_output {
            map.insert("server_output_text".into(), text.verbatim().clone().into());
        }
        map.insert("streams".into(), self.streams.iter().map(StreamResult::value).collect());
        Value::from(map).to_string()
    }

    /// Parses a JSON document.
    pub fn parse(document: &[u8]) -> Result<Self, Fault> {
        let value: Value = serde_json::from_slice(document).map_err(|_| Fault::Malformed)?;
        let percent = |name: &str| value.get(name).and_then(Value::as_f64);
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(ToString::to_string);
        let processors = Processors {
            total: percent("cpu_util_total").ok_or(Fault::Malformed)?,
            user: percent("cpu_util_user").ok_or(Fault::Malformed)?,
            system: percent("cpu_util_system").ok_or(Fault::Malformed)?,
        };
        let streams = value.get("streams").and_then(Value::as_array).ok_or(Fault::Malformed)?;
        // A server that prints documents sends one instead of text.
        let printed = || value.get("server_output_json").map(|value| format!("{value:#}\n"));
        Ok(Self {
            processors,
            has_retransmits: value.get("sender_has_retransmits").and_then(count) > Some(0),
            congestion: text("congestion_used").map(Foreign::new),
            server_output: text("server_output_text").or_else(printed).map(Foreign::new),
            streams: streams.iter().map(StreamResult::parse).collect::<Result<_, _>>()?,
        })
    }
}

impl StreamResult {
    fn value(&self) -> Value {
        json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits.map_or_else(|| json!(-1), Value::from),
            "jitter": 0,
            "errors": 0,
            "packets": 0,
            "start_time": 0,
            "end_time": self.seconds,
        })
    }

    fn parse(value: &Value) -> Result<Self, Fault> {
        let whole = |name: &str| value.get(name).and_then(number).ok_or(Fault::Malformed);
        let time = |name: &str| value.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        Ok(Self {
            id: whole("id")?,
            bytes: whole("bytes")?,
            retransmits: value.get("retransmits").and_then(count),
            seconds: (time("end_time") - time("start_time")).max(0.0),
        })
    }
}

/// A count; -1, which 3.12 prints as 2^64 - 1, means none.
fn count(value: &Value) -> Option<u64> {
    number(value).filter(|count| *count <= u64::from(u32::MAX))
}
