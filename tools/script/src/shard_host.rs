//! A shard in virtual time as the host under test: calls go to BSD sockets over it, packets to and
//! from its interface, and each run is the same.
//!
//! Frames are IP packets. Segmentation and checksums are done, as on a wire.

mod blocked;
mod filter;
mod immediate;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::time::Duration;

use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets, tunables::TunableError};
use whimbrel_link::cut;
use whimbrel_posix::{Errno, Fd, Sockets, TcpInfo};
use whimbrel_stack::shard::ConfigError;
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, Route, RxFrame, Shard, ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Flow, SeqNum};

use self::blocked::{MayBlock, UnderWay};
use super::call::{Call, Returned};
use super::host::{Administration, CallId, Network, Progress, ScriptHost, SetError, SocketFilter};
use whimbrel_link::recorder::{Recorder, RecorderConfig};

/// A capture that outlives its host: the file so far.
pub type Recording = Rc<RefCell<Vec<u8>>>;

/// One process on one shard.
#[derive(Debug)]
pub struct ShardHost {
    network: Network,
    sockets: Sockets,
    now: Duration,
    /// True after the first call or packet: the shard is not a new one any more.
    touched: bool,
    packets: VecDeque<(Duration, Vec<u8>)>,
    under_way: BTreeMap<CallId, UnderWay>,
    ended: BTreeMap<CallId, (Duration, Returned)>,
    calls: u32,
    batch: TxBatch,
    /// True if a packet left or a blocked call ended since time last passed.
    news: bool,
    recorder: Option<(Recorder, Recording)>,
}

/// Constructors.
impl ShardHost {
    /// A host at `network` with these rules. Each run of a script is the same.
    pub fn new(network: &Network, tunables: Tunables) -> Result<Self, ConfigError> {
        Ok(Self {
            network: network.clone(),
            sockets: Sockets::new(shard(network, tunables)?),
            now: Duration::ZERO,
            touched: false,
            packets: VecDeque::new(),
            under_way: BTreeMap::new(),
            ended: BTreeMap::new(),
            calls: 0,
            batch: TxBatch::new(64),
            news: false,
            recorder: None,
        })
    }

    /// Records all packets of the host's interface as pcapng. The old contents of the recording are
    /// replaced.
    pub fn recorded(mut self, name: &str, recording: &Recording) -> Self {
        let recorder = Recorder::begin(RecorderConfig::new(name, Medium::Ip));
        recording.borrow_mut().clear();
        self.recorder = Some((recorder, recording.clone()));
        self.keep_record();
        self
    }

    /// The sockets, for inspection.
    pub fn sockets(&self) -> &Sockets {
        &self.sockets
    }
}

impl ScriptHost for ShardHost {
    fn now(&self) -> Duration {
        self.now
    }

    fn run_until(&mut self, until: Duration) {
        loop {
            self.work();
            if core::mem::take(&mut self.news) || self.now >= until {
                return;
            }
            let next = self.next_deadline().unwrap_or(until);
            self.now = next.clamp(self.now, until);
        }
    }

    fn poll_packet(&mut self) -> Option<(Duration, Vec<u8>)> {
        self.packets.pop_front()
    }

    fn inject(&mut self, packet: &[u8]) {
        self.touched = true;
        self.work();
        let (now, shard) = (instant(self.now), self.sockets.shard_mut());
        let frame = [RxFrame::new(packet, SegMeta::SINGLE)];
        match &mut self.recorder {
            None => shard.rx(now, &frame),
            Some((recorder, _)) => recorder.rx(now, shard, &frame),
        }
        self.keep_record();
        self.work();
    }

    fn call(&mut self, call: Call) -> Progress {
        self.touched = true;
        // Work that is due comes before the call.
        self.work();
        let progress = match MayBlock::read(call, instant(self.now)) {
            Ok(call) => self.begin(call),
            Err(call) => Progress::Done(immediate::make(&mut self.sockets, call)),
        };
        self.work();
        progress
    }

    fn poll_call(&mut self, call: CallId) -> Option<(Duration, Returned)> {
        self.ended.remove(&call)
    }

    fn tcp_info(&mut self, fd: i32) -> Result<TcpInfo, Errno> {
        self.work();
        self.sockets.tcp_info(Fd(fd))
    }

    fn right_edge(&mut self, flow: &Flow) -> Option<SeqNum> {
        self.work();
        self.sockets.shard().snapshot_between(flow).map(|snapshot| snapshot.rcv.edge)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SetError> {
        let mut tunables = self.sockets.shard().tunables().clone();
        tunables.set_by_name(name, value).map_err(|error| match error {
            TunableError::Unknown { .. } => SetError::Unknown,
            invalid => SetError::Refused(invalid.to_string()),
        })?;
        self.retune(tunables)
    }

    fn administer(&mut self, what: &Administration) -> Result<(), SetError> {
        self.work();
        match what {
            Administration::PurgeCaches | Administration::PurgeHostCache => {
                self.sockets.shard_mut().purge_paths();
            }
            Administration::Drop(which) => {
                for flow in filter::flows(self.sockets.shard(), which)? {
                    self.sockets.shard_mut().abort_flow(&flow);
                }
            }
        }
        self.work();
        Ok(())
    }

    fn count_sockets(&mut self, which: &SocketFilter) -> Result<usize, SetError> {
        self.work();
        filter::count(&self.sockets, which)
    }
}

/// Progress of time and packets.
impl ShardHost {
    fn begin(&mut self, mut call: MayBlock) -> Progress {
        match call.attempt(&mut self.sockets) {
            Ok(returned) => Progress::Done(returned),
            Err(wait) => {
                let id = CallId(self.calls);
                self.calls += 1;
                self.under_way.insert(id, UnderWay { call, wait });
                Progress::Blocked(id)
            }
        }
    }

    /// Does all work that is due: timers, repeated calls, packets out.
    fn work(&mut self) {
        let now = instant(self.now);
        loop {
            while self.sockets.shard_mut().advance(now, ADVANCE_BUDGET) {}
            self.sockets.drain_events();
            // A repeated call may have opened a window, or made room for another call.
            let went_on = self.retry();
            self.send();
            if !went_on && self.sockets.shard().next_deadline().is_none_or(|next| next > now) {
                break;
            }
        }
        debug_assert_eq!(self.sockets.shard().check_invariants(), Ok(()));
    }

    /// Repeats each blocked call whose condition may hold, in order. Returns true if one ended.
    fn retry(&mut self) -> bool {
        let mut ended = Vec::new();
        for (id, under_way) in &mut self.under_way {
            if !self.sockets.may_go_on(&under_way.wait) {
                continue;
            }
            match under_way.call.attempt(&mut self.sockets) {
                Ok(returned) => {
                    ended.push(*id);
                    self.ended.insert(*id, (self.now, returned));
                }
                Err(wait) => under_way.wait = wait,
            }
        }
        for id in &ended {
            self.under_way.remove(id);
        }
        self.news |= !ended.is_empty();
        !ended.is_empty()
    }

    fn send(&mut self) {
        let (now, packets) = (self.now, &mut self.packets);
        let before = packets.len();
        loop {
            let more = self.sockets.shard_mut().tx(&mut self.batch);
            let pending = self.batch.pending();
            if let Some((recorder, _)) = &mut self.recorder {
                recorder.tx(instant(now), self.sockets.shard(), pending);
            }
            for segment in pending {
                cut(segment, |packet| packets.push_back((now, packet.to_vec())));
            }
            let count = pending.len();
            self.batch.consume(count);
            if !more {
                break;
            }
        }
        self.news |= packets.len() > before;
        self.keep_record();
    }

    /// The recording survives even a panic.
    fn keep_record(&mut self) {
        if let Some((recorder, recording)) = &mut self.recorder {
            recording.borrow_mut().append(recorder.take());
        }
    }

    /// Time of the next timer.
    fn next_deadline(&self) -> Option<Duration> {
        let waits = self.under_way.values().map(|under_way| under_way.wait.until());
        let waits = waits.filter(|until| *until < Instant::NEVER);
        let next = waits.chain(self.sockets.shard().next_deadline()).min()?;
        Some(next.since(Instant::ZERO))
    }

    /// Changes the rules. Before the first event this includes rules that a host keeps for its
    /// life: those for sequence numbers and ports.
    fn retune(&mut self, tunables: Tunables) -> Result<(), SetError> {
        if self.touched {
            let retuned = self.sockets.shard_mut().retune(tunables);
            return retuned.map_err(|error| SetError::Refused(error.to_string()));
        }
        let made = shard(&self.network, tunables);
        let shard = made.map_err(|error| SetError::Refused(error.to_string()))?;
        self.sockets = Sockets::new(shard);
        self.sockets.shard_mut().set_now(instant(self.now));
        Ok(())
    }
}

/// A shard at `network`: one address, and all other networks behind the gateway.
fn shard(network: &Network, tunables: Tunables) -> Result<Shard, ConfigError> {
    Shard::new(ShardConfig {
        tunables,
        secrets: Secrets::from_seed(SEED),
        capabilities: Capabilities::plain(Medium::Ip, network.mtu),
        addresses: [InterfaceAddress { addr: network.local, prefix_len: network.prefix_len }]
            .to_vec(),
        routes: [Route::default_via(network.gateway.to_ip())].to_vec(),
    })
}

fn instant(at: Duration) -> Instant {
    Instant::ZERO + at
}

/// Any number: time does not pass between the calls.
const ADVANCE_BUDGET: usize = 64;
/// Any number: runs repeat.
const SEED: u64 = 0x5eed;

#[cfg(test)]
mod tests;
