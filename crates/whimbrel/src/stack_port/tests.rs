use bytes::Bytes;
use whimbrel_base::Secrets;
use whimbrel_base::packet::SegMeta;
use whimbrel_io::{Stop, Waker};
use whimbrel_stack::{Capabilities, InterfaceAddress, Medium, RxFrame, ShardConfig, TxBatch};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

use super::*;
use crate::backlog::ListenOptions;
use crate::cell::{Readable, Settings};
use crate::congestion::CongestionControls;
use crate::sharded_listener::ShardedListener;
use crate::ways::Ways;

/// A shard with its port, and a host that talks to it, in as many bursts as a test says.
struct Bench {
    shard: Shard,
    port: StackPort,
    sharded: Arc<ShardedListener>,
    peer: Shard,
}

fn mailbox() -> Mailbox {
    let names = CongestionControls::default().names(&Tunables::default());
    Mailbox::new(Waker::new().unwrap(), names, Ways::new(&host(1), 1_500))
}

impl Bench {
    /// A listener with this backlog.
    fn new(backlog: u32) -> Self {
        let mailbox = Arc::new(mailbox());
        let shutdown =
            Arc::new(Shutdown::new(Stop::new().unwrap(), [Waker::new().unwrap()].into()));
        let settings = Settings::new(&Tunables::default());
        let options = ListenOptions { backlog, fast_open: 0, settings, rate: None };
        let sharded = ShardedListener::new(&[Arc::clone(&mailbox)], AT, options);
        sharded.open();
        let mut bench = Self {
            shard: host(1),
            port: StackPort::new(mailbox, shutdown),
            sharded,
            peer: host(2),
        };
        bench.run();
        bench
    }

    fn connect(&mut self) -> Handle {
        self.peer.connect(AT, None).unwrap()
    }

    /// Packets of one burst at the shard, and their effects.
    fn arrive(&mut self, packets: &[Vec<u8>]) {
        rx(&mut self.shard, packets);
        let _ = self.port.flush(Instant::ZERO, &mut self.shard);
    }

    /// Until nothing is under way.
    fn run(&mut self) {
        loop {
            let _ = self.port.drain(Instant::ZERO, &mut self.shard);
            let (theirs, ours) = (sent(&mut self.peer), sent(&mut self.shard));
            if theirs.is_empty() && ours.is_empty() {
                return;
            }
            rx(&mut self.peer, &ours);
            self.arrive(&theirs);
        }
    }

    /// So many connect at once; returns how many of them can be accepted.
    fn crowd(&mut self, clients: usize) -> usize {
        for _ in 0..clients {
            self.connect();
        }
        self.run();
        core::iter::from_fn(|| self.sharded.take().unwrap()).count()
    }
}

fn host(last: u8) -> Shard {
    let addr = Address::from_v4_bytes([10, 0, 0, last]);
    let config = ShardConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(last.into()),
        capabilities: Capabilities::plain(Medium::Ip, 1500),
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
    };
    Shard::new(config).unwrap()
}

fn rx(shard: &mut Shard, packets: &[Vec<u8>]) {
    let frames: Vec<_> =
        packets.iter().map(|packet| RxFrame::new(packet, SegMeta::SINGLE)).collect();
    shard.rx(Instant::ZERO, &frames);
}

fn sent(shard: &mut Shard) -> Vec<Vec<u8>> {
    let mut batch = TxBatch::new(64);
    shard.tx(&mut batch);
    batch.pending().iter().map(|segment| segment.to_vec()).collect()
}

const AT: Endpoint = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 1]), 80);

#[test]
fn a_reset_in_one_burst_with_fin_is_told_to_who_writes() {
    let mut bench = Bench::new(4);
    let client = bench.connect();
    bench.run();
    let (Accepted { cell, .. }, _) = bench.sharded.shards()[0].backlog.take().unwrap().unwrap();
    bench.peer.send(client, &mut Bytes::from_static(b"last words")).unwrap();
    bench.peer.shutdown(client);
    let mut burst = sent(&mut bench.peer);
    bench.peer.abort(client);
    burst.extend(sent(&mut bench.peer));
    assert_eq!(burst.len(), 2, "text with FIN, RST");
    bench.arrive(&burst);
    let mut state = cell.lock();
    let mut chunks = [Bytes::new()];
    assert_eq!((state.take_outward(100, &mut chunks), &chunks[0][..]), (1, &b"last words"[..]));
    assert!(matches!(state.readable(), Readable::End));
    assert_eq!(state.end().unwrap(), 0);
    let error = state.take_error().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{error}");
}

#[test]
fn a_backlog_and_one_more_may_wait_whoever_was_accepted_before() {
    for backlog in [0, 1, 4, 300] {
        let most = backlog as usize + 1;
        let mut bench = Bench::new(backlog);
        assert_eq!(bench.crowd(most + 1), most, "of a backlog of {backlog}");
        let mut bench = Bench::new(backlog);
        assert_eq!(bench.crowd(most.div_ceil(2)), most.div_ceil(2));
        assert_eq!(bench.crowd(most.min(64)), most.min(64), "none waits of {backlog}");
    }
}

#[test]
fn worker_about_to_sleep_sees_stack_close() {
    let mut shard = host(1);
    let mailbox = Arc::new(mailbox());
    let shutdown = Arc::new(Shutdown::new(Stop::new().unwrap(), [Waker::new().unwrap()].into()));
    let mut port = StackPort::new(Arc::clone(&mailbox), Arc::clone(&shutdown));
    let now = Instant::ZERO;
    assert_eq!(port.drain(now, &mut shard), Activity::Idle);
    assert_eq!(port.flush(now, &mut shard), Activity::Idle);

    // Between its last look at everything and its announcement that it sleeps.
    mailbox.close();
    assert_eq!(port.drain(now, &mut shard), Activity::Busy);
    let _ = port.flush(now, &mut shard);
    assert!(shutdown.stop().is_set());
    assert_eq!(port.drain(now, &mut shard), Activity::Idle, "seen once");
}
