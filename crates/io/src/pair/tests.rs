use bytes::Bytes;
use whimbrel_stack::{Event, InterfaceAddress, Recv, ShardConfig};
use whimbrel_tcp::table::Secrets;
use whimbrel_wire::{Address, Endpoint};

use super::*;

/// Says something once it is connected, and ends when it was said back.
struct Caller {
    done: Stop,
    heard: Vec<u8>,
    at: Instant,
}

/// Says back what it hears.
struct Echo;

impl Port for Caller {
    fn drain(&mut self, _: Instant, shard: &mut Shard) -> Activity {
        if shard.census().connections == 0 && self.heard.is_empty() {
            shard.connect(Endpoint::new(address(2), 7), None).unwrap();
        }
        Activity::Idle
    }

    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        while let Some(event) = shard.poll_event() {
            match event {
                Event::Connected(handle) => {
                    shard.send(handle, &mut Bytes::from_static(b"hello")).unwrap();
                }
                Event::Readable(handle) => {
                    while let Recv::Data(octets) = shard.recv(handle) {
                        self.heard.extend_from_slice(&octets);
                    }
                    self.at = now;
                    self.done.set();
                }
                _ => {}
            }
        }
        Activity::Idle
    }
}

impl Port for Echo {
    fn drain(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn flush(&mut self, _: Instant, shard: &mut Shard) -> Activity {
        while let Some(event) = shard.poll_event() {
            if let Event::Accepted(listener) = event {
                shard.accept(listener).unwrap();
            } else if let Event::Readable(handle) = event {
                while let Recv::Data(mut octets) = shard.recv(handle) {
                    shard.send(handle, &mut octets).unwrap();
                }
            }
        }
        Activity::Idle
    }
}

fn address(host: u8) -> Address {
    Address::from_v4_octets([10, 0, 0, host])
}

fn shard(host: u8, link: &LinkConfig) -> Shard {
    Shard::new(ShardConfig {
        tunables: Default::default(),
        secrets: Secrets::from_seed(host.into()),
        capabilities: mem_capabilities(link),
        addresses: vec![InterfaceAddress { addr: address(host), prefix_len: 24 }],
        routes: Vec::new(),
    })
    .unwrap()
}

fn call(link: &str, time: MemTime) -> (Vec<u8>, Instant) {
    let link: LinkConfig = link.parse().unwrap();
    let done = Stop::new().unwrap();
    let caller = Caller { done: done.clone(), heard: Vec::new(), at: Instant::ZERO };
    let mut server = shard(2, &link);
    server.listen(Endpoint::new(address(2), 7), 4).unwrap();
    let near = (shard(1, &link), caller);
    let mut pair = MemPair::new(&link, 1, (near, (server, Echo)), time);
    pair.run(&done).unwrap();
    assert_eq!(pair.links()[0].counters().lost(), 0);
    let (_, caller) = pair.into_near();
    (caller.heard, caller.at)
}

#[test]
fn in_virtual_time_two_round_trips_take_two_round_trips_and_no_more() {
    let (heard, at) = call("delay=250ms", MemTime::Virtual(Instant::ZERO));
    assert_eq!(heard, b"hello");
    // SYN and SYN-ACK, hello and hello: the turns between them cost a nanosecond here and there.
    assert_eq!(at.as_nanos() / 1_000_000, 1_000);
}

#[test]
fn in_real_time_it_takes_as_long_as_the_link_says() {
    let (heard, at) = call("delay=5ms", MemTime::Real(Clock::start()));
    assert_eq!(heard, b"hello");
    assert!(at.as_nanos() >= 20_000_000, "{at:?}");
}
