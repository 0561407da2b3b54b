use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Secrets;
use whimbrel_link::LinkConfig;
use whimbrel_stack::{Event, Handle, InterfaceAddress, Recv, ShardConfig};
use whimbrel_wire::{Address, Endpoint};

use super::*;
use crate::outputs::{Full, Shared};
use crate::pair::mem_capabilities;
use crate::{Activity, MemPair, MemTime, Port, Stop};

/// An application that sends `left` bytes on one connection, and closes it.
struct Sender {
    left: usize,
    handle: Option<Handle>,
}

/// An application that reads from `reads_from` on, and closes after its peer.
struct Reader {
    reads_from: Instant,
    reads: bool,
    accepted: Vec<Handle>,
}

impl Port for Sender {
    fn drain(&mut self, _: Instant, shard: &mut Shard) -> Activity {
        if self.handle.is_none() {
            self.handle = Some(shard.connect(Endpoint::new(address(2), 7), None).unwrap());
        }
        Activity::Idle
    }

    fn flush(&mut self, _: Instant, shard: &mut Shard) -> Activity {
        while let Some(event) = shard.poll_event() {
            let (Event::Connected(handle) | Event::Writable(handle)) = event else { continue };
            let mut text = Bytes::from(vec![0; self.left]);
            let taken = shard.send(handle, &mut text).unwrap_or_default();
            self.left -= taken;
            if self.left == 0 {
                shard.close(handle);
            }
        }
        Activity::Idle
    }
}

impl Port for Reader {
    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        while let Some(event) = shard.poll_event() {
            if let Event::Accepted(listener) = event {
                self.accepted.extend(shard.accept(listener));
            }
        }
        self.reads = now >= self.reads_from;
        for handle in self.accepted.iter().filter(|_| self.reads) {
            while let Recv::Data(_) = shard.recv(*handle) {}
            if matches!(shard.recv(*handle), Recv::End) {
                shard.close(*handle);
            }
        }
        Activity::Idle
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.reads_from).filter(|_| !self.reads)
    }
}

fn address(host: u8) -> Address {
    Address::from_v4_bytes([10, 9, 0, host])
}

fn shard(link: &LinkConfig, host: u8) -> Shard {
    Shard::new(ShardConfig {
        tunables: <_>::default(),
        secrets: Secrets::from_seed(host.into()),
        capabilities: mem_capabilities(link),
        addresses: vec![InterfaceAddress { addr: address(host), prefix_len: 24 }],
        routes: Vec::new(),
    })
    .unwrap()
}

/// Writes the sender's trace of a transfer over this link, to a reader that starts at `reads_from`.
fn traced(link: &str, bytes: usize, reads_from: Duration, out: impl Write + Send + 'static) {
    let link: LinkConfig = link.parse().unwrap();
    let (near, mut far) = (shard(&link, 1), shard(&link, 2));
    far.listen(Endpoint::new(address(2), 7), 1).unwrap();
    let reads_from = Instant::ZERO + reads_from;
    let hosts = (
        (near, Sender { left: bytes, handle: None }),
        (far, Reader { reads_from, reads: false, accepted: Vec::new() }),
    );
    let trace = Trace::begin(Box::new(|_| ()), Medium::Ip, 1, out).pop();
    let mut pair = MemPair::new(&link, 1, hosts, MemTime::Virtual(Instant::ZERO)).with_trace(trace);
    // Longer than the transfer, and shorter than TIME-WAIT.
    let (stop, end) = (Stop::new().unwrap(), reads_from + Duration::from_secs(30));
    MemPair::run_in_turn(std::slice::from_mut(&mut pair), &stop, |now| {
        if now > end {
            stop.set();
        }
    });
    pair.end_trace();
}

/// Returns the trace, and the events of each line, in their order.
fn events(link: &str, bytes: usize, reads_from: Duration) -> (String, Vec<Vec<String>>) {
    let file = Shared::default();
    traced(link, bytes, reads_from, file.clone());
    let text = String::from_utf8(file.0.lock().unwrap().clone()).unwrap();
    let of_line = |line: &str| {
        let (_, rest) = line.split_once(r#""events":["#).unwrap();
        let (events, _) = rest.split_once(']').unwrap();
        events.split(',').map(|event| event.trim_matches('"').to_owned()).collect()
    };
    let events = text.lines().map(of_line).collect();
    (text, events)
}

#[test]
fn a_transfer_is_opened_sent_acknowledged_and_closed() {
    let (text, events) = events("rate=10M,delay=5ms", 30_000, Duration::ZERO);
    assert_eq!(events.first().unwrap(), &["opened"], "{text}");
    assert_eq!(events.last().unwrap(), &["closed"], "{text}");
    let count = |event: &str| events.iter().flatten().filter(|it| *it == event).count();
    assert!(count("sent") > 2 && count("acked") > 2, "{text}");
    assert_eq!(count("sent_again") + count("timeout") + count("recovery"), 0, "{text}");
    let first = text.lines().next().unwrap();
    assert!(first.contains(r#""conn":1,"local":"10.9.0.1:"#), "{first}");
    assert!(first.contains(r#""state":"ESTABLISHED","ca_state":"open","cwnd":"#), "{first}");
    assert!(text.contains(r#""delivered":2896,"#), "{text}");
}

#[test]
fn a_loss_is_found_repaired_and_over() {
    let (text, events) = events("rate=10M,delay=5ms,drop=12", 100_000, Duration::ZERO);
    let at = |event: &str| {
        let place = events.iter().position(|line| line.iter().any(|it| it == event));
        place.unwrap_or_else(|| panic!("no {event} in {text}"))
    };
    assert!(at("recovery") <= at("sent_again") && at("sent_again") < at("recovered"), "{text}");
}

#[test]
fn a_reader_that_does_not_read_stalls_the_sender_until_it_does() {
    let (text, events) = events("rate=100M,delay=1ms", 2_000_000, Duration::from_secs(5));
    let is_of_stalls = |event: &&String| *event == "stalled" || *event == "resumed";
    let all: Vec<_> = events.iter().flatten().filter(is_of_stalls).collect();
    assert_eq!(all.first().map(|it| it.as_str()), Some("stalled"), "{text}");
    assert_eq!(all.last().map(|it| it.as_str()), Some("resumed"), "{text}");
}

#[test]
fn a_disk_that_is_full_ends_the_trace_and_not_the_transfer() {
    let link = LinkConfig::default();
    let told = Arc::new(Mutex::new(0));
    let handler = told.clone();
    let handler = Box::new(move |_: &io::Error| *handler.lock().unwrap() += 1);
    let mut traces = Trace::begin(handler, Medium::Ip, 2, Full);
    let near = shard(&link, 1);
    for trace in &mut traces {
        trace.out.as_ref().expect("it writes").lock().unwrap().write(b"{}\n");
    }
    let ended: Vec<_> =
        traces.into_iter().map(|it| it.finish(Instant::ZERO, &near).is_err()).collect();
    assert_eq!((ended, *told.lock().unwrap()), (vec![true, false], 1));
    traced("rate=10M,delay=5ms", 30_000, Duration::ZERO, Full);
}
