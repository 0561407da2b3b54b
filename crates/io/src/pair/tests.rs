use bytes::Bytes;
use whimbrel_base::Secrets;
use whimbrel_stack::Steering;
use whimbrel_stack::{Event, InterfaceAddress, Recv, ShardConfig};
use whimbrel_wire::{Address, Endpoint};

use super::*;

/// An application that sends a text once it is connected, and ends when the text has come back.
struct Caller {
    done: Stop,
    heard: Vec<u8>,
    at: Instant,
}

/// An application that sends back what it receives.
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
                    while let Recv::Data(bytes) = shard.recv(handle) {
                        self.heard.extend_from_slice(&bytes);
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
                while let Recv::Data(mut bytes) = shard.recv(handle) {
                    shard.send(handle, &mut bytes).unwrap();
                }
            }
        }
        Activity::Idle
    }
}

fn address(host: u8) -> Address {
    Address::from_v4_bytes([10, 0, 0, host])
}

fn shard(host: u8, link: &LinkConfig) -> Shard {
    shard_of(host, mem_capabilities(link))
}

fn shard_of(host: u8, capabilities: Capabilities) -> Shard {
    Shard::new(ShardConfig {
        tunables: Default::default(),
        secrets: Secrets::from_seed(host.into()),
        capabilities,
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
    assert_eq!(pair.links()[0].lost(), 0);
    let (_, caller) = pair.into_near();
    (caller.heard, caller.at)
}

#[test]
fn virtual_time_advances_by_exactly_two_round_trips() {
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

const SHARDS: u16 = 3;

/// Returns pairs of shards of two hosts, whose far ones listen; each caller sets `done`.
fn pairs(link: &str, done: &[Stop], time: MemTime) -> Vec<MemPair<Caller, Echo>> {
    let link: LinkConfig = link.parse().unwrap();
    let hosts = (0..SHARDS).zip(done).map(|(queue, done)| {
        let steering = Steering::Computable { queue, queues: SHARDS };
        let capabilities = mem_capabilities(&link).with_steering(steering);
        let caller = Caller { done: done.clone(), heard: Vec::new(), at: Instant::ZERO };
        let mut server = shard_of(2, capabilities);
        server.listen(Endpoint::new(address(2), 7), 4).unwrap();
        ((shard_of(1, capabilities), caller), (server, Echo))
    });
    MemPair::shards(&link, 1, hosts.collect(), time).unwrap()
}

fn stops() -> Vec<Stop> {
    (0..SHARDS).map(|_| Stop::new().unwrap()).collect()
}

/// Returns the sums over all pairs.
fn sums(pairs: &[MemPair<Caller, Echo>]) -> ([LinkCounters; 2], SteeringCounters) {
    let (mut links, mut steering) = ([LinkCounters::default(); 2], SteeringCounters::default());
    for pair in pairs {
        links.iter_mut().zip(pair.links()).for_each(|(sum, link)| *sum += link);
        pair.steering().into_iter().for_each(|one| steering += one);
    }
    (links, steering)
}

#[test]
fn shards_in_virtual_time_repeat_with_the_same_seed() {
    for link in ["delay=10ms,jitter=3ms", "delay=10ms,jitter=3ms,rate=1M"] {
        let run = || {
            let done = stops();
            let mut pairs = pairs(link, &done, MemTime::Virtual(Instant::ZERO));
            let all = Stop::new().unwrap();
            MemPair::run_in_turn(&mut pairs, &all, |_| {
                if done.iter().all(Stop::is_set) {
                    all.set();
                }
            });
            let (links, steering) = sums(&pairs);
            assert_eq!(steering, SteeringCounters::default(), "all came in by their own queue");
            let ends = pairs.into_iter().map(|pair| {
                let (shard, caller) = pair.into_near();
                assert_eq!(caller.heard, b"hello");
                (caller.at, shard.counters().in_segs)
            });
            (ends.collect::<Vec<_>>(), links)
        };
        let first = run();
        assert_eq!(first, run(), "{link}");
        // A SYN of each, and a hello.
        assert_eq!(first.1[0].sent, 2 * u64::from(SHARDS), "{link}: {first:?}");
    }
}

#[test]
fn shards_in_real_time_run_on_their_own_threads() {
    for link in ["delay=1ms", "delay=1ms,rate=1M"] {
        let done = stops();
        let pairs = pairs(link, &done, MemTime::Real(Clock::start()));
        std::thread::scope(|scope| {
            for (mut pair, done) in pairs.into_iter().zip(&done) {
                scope.spawn(move || pair.run(done).unwrap());
            }
        });
        assert!(done.iter().all(Stop::is_set), "{link}");
    }
}

#[test]
fn what_came_in_by_the_wrong_queue_is_passed_on_once() {
    let done = stops();
    let mut pairs = pairs("delay=1ms", &done, MemTime::Virtual(Instant::ZERO));
    let (shard, caller) = pairs[0].near();
    caller.heard.push(0);
    // Port 9 belongs to the shard numbered (7 ^ 9) / 2 % 3.
    shard.connect(Endpoint::new(address(2), 7), Some(Endpoint::new(address(1), 9))).unwrap();
    for pair in &mut pairs[1..] {
        pair.near().1.heard.push(0);
    }
    let mut rounds = 0;
    let stop = Stop::new().unwrap();
    MemPair::run_in_turn(&mut pairs, &stop, |_| {
        rounds += 1;
        if rounds == 8 {
            stop.set();
        }
    });
    let counts = |which: usize| pairs.iter().map(move |pair| pair.steering()[which]);
    let forwarded: Vec<_> = counts(1).map(|far| (far.forwarded, far.adopted)).collect();
    assert_eq!(forwarded, [(1, 0), (0, 1), (0, 0)], "the SYN, to the shard that answers it");
    assert_eq!(counts(0).map(|near| near.forwarded).sum::<u64>(), 0);
    // The SYN-ACK arrived at the shard that its ports belong to, which does not know the
    // connection: a reset.
    assert_eq!(pairs[1].far().0.counters().in_segs, 2);
}
