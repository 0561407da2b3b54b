//! Counters, states and memory of a stack as OpenMetrics, and a server of them for Prometheus.
//!
//! Counters have Linux' names: `TcpExtListenOverflows` is `whimbrel_netstat_TcpExt_ListenOverflows_total`. Round trips
//! are those of at most 1,000 connections, read for each answer. docs/METRICS.md has a relabelling to the names of
//! node_exporter.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use whimbrel_stack::shard::{ListingDetail, ListingPlace, SocketState, StateCounts};
use whimbrel_tcp::table::{LatencyHistogram, PassiveLatencies};

use crate::control::ControlHost;
use crate::control::ask::ask;
use crate::control::figures::{self, Figures};
use crate::control::request::Refusal;

pub use server::{MetricsError, MetricsServer};

mod server;

/// Records the times of handshakes, and of waits to be accepted, from now on: the metrics then have them.
pub fn record_latencies(hosts: &[ControlHost]) {
    for shard in hosts.iter().flat_map(|host| &host.shards) {
        shard.inspect(Box::new(whimbrel_stack::Shard::record_latencies));
    }
}

/// Returns the metrics of these hosts as OpenMetrics 1.0 text; the text of the error says which shard does not
/// answer. It blocks until each shard has answered, at most 10 s each.
pub fn text(hosts: &[ControlHost]) -> Result<String, String> {
    let scraped: Result<Vec<_>, _> = hosts.iter().map(Scraped::of).collect();
    let scraped = scraped.map_err(|refusal| refusal.text().to_owned())?;
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape(scraped)));
    let mut text = String::new();
    // A String takes everything.
    encode(&mut text, &registry).map_err(|error| error.to_string())?;
    Ok(text)
}

/// Converts OpenMetrics to Prometheus' text format 0.0.4, whose descriptions name a counter with its `_total`.
fn text_format(open_metrics: &str) -> String {
    let described = |line: &str| -> Option<String> {
        line.strip_prefix("# TYPE ")?.strip_suffix(" counter").map(str::to_owned)
    };
    let counters: HashSet<String> = open_metrics.lines().filter_map(described).collect();
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines().filter(|line| *line != "# EOF") {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(kind), Some(name), Some(rest)) if counters.contains(name) => {
                let _ = writeln!(text, "# {kind} {name}_total {rest}");
            }
            _ => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

/// Figures of all hosts at one scrape.
#[derive(Debug)]
struct Scrape(Vec<Scraped>);

/// Figures of a host at one scrape.
#[derive(Debug)]
struct Scraped {
    host: Option<&'static str>,
    figures: Figures,
    states: StateCounts,
    /// Round trips of some connections, seconds.
    round_trips: Vec<f64>,
}

impl Scraped {
    fn of(host: &ControlHost) -> Result<Self, Refusal> {
        Ok(Self {
            host: host.name,
            figures: Figures::of(&host.shards)?,
            states: figures::count(&host.shards)?,
            round_trips: round_trips(host)?,
        })
    }

    /// The label of the host, if there are several, and `more`.
    fn labels<'l>(&'l self, more: &[(&'static str, &'l str)]) -> Vec<(&'static str, &'l str)> {
        let host = self.host.map(|host| ("host", host));
        host.into_iter().chain(more.iter().copied()).collect()
    }

    /// Each counter: name, text and value.
    fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
        let (tcp, udp) = (self.figures.tcp.iter(), self.figures.udp.iter());
        let ip = self.figures.ip().map(|(name, value)| (name, PACKETS, value));
        tcp.chain(udp).chain(ip).collect()
    }
}

/// Round trips of the first connections that have one, of all shards alike.
fn round_trips(host: &ControlHost) -> Result<Vec<f64>, Refusal> {
    let (mut all, most) = (Vec::new(), MOST_ROUND_TRIPS / host.shards.len().max(1));
    for shard in &host.shards {
        let (mut place, mut own) = (Some(ListingPlace::default()), Vec::new());
        while let Some(from) = place.filter(|place| own.len() < most && !place.is_at_time_wait()) {
            let (trips, next) = ask(shard.as_ref(), move |shard| {
                let mut listed = Vec::new();
                let listing = whimbrel_stack::shard::Listing::new(shard, ListingDetail::Full);
                let next = listing.slice(from, &mut listed);
                let trips = listed.iter().filter_map(|it| it.snapshot.as_ref()?.srtt);
                (trips.map(|trip| trip.as_secs_f64()).collect::<Vec<_>>(), next)
            })?;
            own.extend(trips.into_iter().take(most - own.len()));
            place = next;
        }
        all.append(&mut own);
    }
    Ok(all)
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_counters(&mut encoder)?;
        self.encode_drops(&mut encoder)?;
        self.encode_gauges(&mut encoder)?;
        self.encode_latencies(&mut encoder)?;
        self.encode_round_trips(&mut encoder)
    }
}

impl Scrape {
    fn encode_counters(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let hosts: Vec<_> = self.0.iter().map(|host| (host, host.counters())).collect();
        let Some((_, first)) = hosts.first() else { return Ok(()) };
        for (place, (name, help, _)) in first.iter().enumerate() {
            let name = metric_name(name);
            let mut metric = encoder.encode_descriptor(
                &name,
                &first_sentence(help),
                None,
                MetricType::Counter,
            )?;
            for (host, counters) in &hosts {
                let value = counters.get(place).map_or(0, |(_, _, value)| *value);
                let labels = host.labels(&[]);
                ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_drops(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Segments and packets dropped, by reason";
        let mut metric =
            encoder.encode_descriptor("whimbrel_drops", help, None, MetricType::Counter)?;
        for host in &self.0 {
            for (reason, count) in host.figures.drops() {
                let labels = host.labels(&[("reason", reason.as_str())]);
                let count = ConstCounter::new(count.as_u64().unwrap_or(0));
                count.encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_gauges(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let established = |host: &Scraped| {
            let [open, half] = [SocketState::Established, SocketState::CloseWait];
            (host.states.of(open) + host.states.of(half)) as u64
        };
        let gauges: [(&str, &str, Read<'_>); 5] = [
            (
                "whimbrel_netstat_Tcp_CurrEstab",
                "Connections in ESTABLISHED or CLOSE-WAIT",
                &established,
            ),
            ("whimbrel_memory_held_bytes", "Memory in use", &|host| host.figures.memory.held),
            ("whimbrel_memory_budget_bytes", "Limit of memory: mem.budget", &|host| {
                host.figures.memory.budget
            }),
            (
                "whimbrel_accept_queue_connections",
                "Connections that wait to be accepted",
                &|host| host.figures.accept_queue.0,
            ),
            ("whimbrel_accept_queue_limit", "Connections that may wait to be accepted", &|host| {
                host.figures.accept_queue.1
            }),
        ];
        for (name, help, read) in gauges {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for host in &self.0 {
                let labels = host.labels(&[]);
                gauge(read(host)).encode(metric.encode_family(&labels)?)?;
            }
        }
        let help = "Sockets in each state";
        let mut metric =
            encoder.encode_descriptor("whimbrel_sockets", help, None, MetricType::Gauge)?;
        for host in &self.0 {
            for (state, count) in host.states.iter() {
                let state = state.to_string();
                let labels = host.labels(&[("state", &state)]);
                gauge(count as u64).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_latencies(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let histograms: [(&str, &str, ReadTimes); 2] = [
            (
                "whimbrel_handshake_seconds",
                "Time from a SYN to the end of its handshake",
                |latencies| &latencies.handshake,
            ),
            (
                "whimbrel_accept_wait_seconds",
                "Time that connections waited to be accepted",
                |latencies| &latencies.accept_wait,
            ),
        ];
        let bounds = LatencyHistogram::BOUNDS.iter().map(Duration::as_secs_f64);
        let bounds: Vec<f64> = bounds.chain([f64::INFINITY]).collect();
        for (name, help, read) in histograms {
            let mut metric = encoder.encode_descriptor(name, help, None, Histogram::TYPE)?;
            for host in &self.0 {
                let Some(latencies) = &host.figures.latencies else { continue };
                let histogram = read(latencies);
                let counts = histogram.counts();
                let buckets: Vec<_> = bounds.iter().copied().zip(counts.iter().copied()).collect();
                let (sum, count) = (histogram.sum().as_secs_f64(), counts.iter().sum());
                let labels = host.labels(&[]);
                let mut family = metric.encode_family(&labels)?;
                family.encode_histogram::<[(&str, &str); 0]>(sum, count, &buckets, None)?;
            }
        }
        Ok(())
    }

    fn encode_round_trips(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (name, help) =
            ("whimbrel_rtt_seconds", "Smoothed round trips of at most 1000 connections now");
        let mut metric = encoder.encode_descriptor(name, help, None, Histogram::TYPE)?;
        for host in &self.0 {
            let histogram = Histogram::new(BUCKETS);
            host.round_trips.iter().for_each(|trip| histogram.observe(*trip));
            let labels = host.labels(&[]);
            histogram.encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn gauge(value: u64) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}

/// `whimbrel_netstat_TcpExt_ListenOverflows` of `TcpExtListenOverflows`.
fn metric_name(counter: &str) -> String {
    let split = |prefix: &&'static str| Some((*prefix, counter.strip_prefix(*prefix)?));
    let (group, rest) = GROUPS.iter().find_map(split).unwrap_or(("Other", counter));
    format!("whimbrel_netstat_{group}_{rest}")
}

/// The text up to its first full stop: the rest is for a page.
fn first_sentence(text: &str) -> String {
    let first = text.split_once(". ").map_or(text, |(first, _)| first);
    first.trim_end_matches('.').to_owned()
}

/// Reads a histogram of a host.
type ReadTimes = fn(&PassiveLatencies) -> &LatencyHistogram;
/// Reads a gauge of a host.
type Read<'r> = &'r dyn Fn(&Scraped) -> u64;

/// Beginnings of counters' names, longer ones first.
const GROUPS: [&str; 7] = ["TcpExt", "Tcp", "Udp", "IpExt", "Ip", "Icmp", "Whimbrel"];
const PACKETS: &str = "Packets of both families, as Linux counts those of IPv4";
/// Limit of connections whose round trips are read.
const MOST_ROUND_TRIPS: usize = 1_000;
/// From a machine to a satellite, seconds.
const BUCKETS: [f64; 14] =
    [1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0];

#[cfg(test)]
mod tests;
