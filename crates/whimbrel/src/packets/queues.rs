//! The queues of a packet wire, one in each direction, shared by both ends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use whimbrel_io::Waker;
use whimbrel_io::steering::queue_of;

use super::{PacketCounters, PacketPort};
use crate::mailbox::Mailbox;
use crate::shutdown::Shutdown;
use crate::waiters::guarded;

/// Queues of a wire. "Inward" is towards the stack.
#[derive(Debug)]
pub(crate) struct PacketQueues {
    mtu: AtomicU16,
    inward: Mutex<Inward>,
    outward: Mutex<Outward>,
    /// Notifies tasks that wait for room inward.
    pub(super) room: Notify,
    /// Notifies tasks that wait for a packet outward.
    pub(super) arrived: Notify,
    /// Wakers of the shards, once they exist.
    wakers: OnceLock<Box<[Waker]>>,
    /// Source of the reason why the stack ended, once it exists.
    shutdown: OnceLock<Arc<Shutdown>>,
    /// Mailboxes of the shards, once they exist.
    shards: OnceLock<Vec<Arc<Mailbox>>>,
}

#[derive(Debug)]
struct Inward {
    /// One for each shard.
    lanes: Vec<VecDeque<Bytes>>,
    state: Ends,
    sent: u64,
    full: u64,
    too_long: u64,
    lost: u64,
}

#[derive(Default, Debug)]
struct Outward {
    packets: VecDeque<Bytes>,
    /// Places for packets that a shard is segmenting.
    reserved: usize,
    /// True if a shard waits for room.
    blocked: bool,
    ended: bool,
    received: u64,
    outgrown: u64,
}

/// Ends of the wire that exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ends {
    Both,
    /// The port was dropped.
    StackAlone,
    /// The stack has ended.
    PortAlone,
}

/// Reason why a packet was not taken or returned.
#[derive(Debug)]
pub(super) enum Refusal {
    Full(Bytes),
    TooLong(usize),
    Ended,
}

/// The application's side.
impl PacketQueues {
    /// Creates empty queues; packets of the stack have up to `mtu` bytes.
    pub(super) fn new(mtu: u16) -> Self {
        let inward = Inward {
            lanes: vec![VecDeque::new()],
            state: Ends::Both,
            sent: 0,
            full: 0,
            too_long: 0,
            lost: 0,
        };
        Self {
            mtu: AtomicU16::new(mtu),
            inward: Mutex::new(inward),
            outward: Mutex::default(),
            room: Notify::new(),
            arrived: Notify::new(),
            wakers: OnceLock::new(),
            shutdown: OnceLock::new(),
            shards: OnceLock::new(),
        }
    }

    pub(super) fn mtu(&self) -> u16 {
        self.mtu.load(Ordering::Relaxed)
    }

    /// Sets the MTU. Longer packets that wait are dropped, as on a link that became narrower; their
    /// stream data is sent again.
    pub(crate) fn set_mtu(&self, mtu: u16) {
        let mut outward = self.outward();
        self.mtu.store(mtu, Ordering::Relaxed);
        let before = outward.packets.len();
        outward.packets.retain(|packet| packet.len() <= usize::from(mtu));
        outward.outgrown += (before - outward.packets.len()) as u64;
    }

    /// Returns the mailboxes of the shards; `None` before the stack is built.
    pub(super) fn shards(&self) -> Option<&[Arc<Mailbox>]> {
        self.shards.get().map(Vec::as_slice)
    }

    /// Sets the mailboxes of the shards.
    pub(crate) fn attach_shards(&self, shards: Vec<Arc<Mailbox>>) {
        // Built once: building consumes the builder.
        let _ = self.shards.set(shards);
    }

    pub(super) fn push(&self, packet: Bytes) -> Result<(), Refusal> {
        let which = {
            let mut inward = self.inward();
            if inward.state == Ends::PortAlone {
                return Err(Refusal::Ended);
            }
            if packet.len() > usize::from(u16::MAX) {
                inward.too_long += 1;
                return Err(Refusal::TooLong(packet.len()));
            }
            let which = inward.lane_of(&packet);
            match inward.lanes.get_mut(which) {
                Some(lane) if lane.len() < PacketPort::CAPACITY => lane.push_back(packet),
                _ => return Err(Refusal::Full(packet)),
            }
            inward.sent += 1;
            which
        };
        if let Some(waker) = self.wakers.get().and_then(|wakers| wakers.get(which)) {
            waker.wake();
        }
        Ok(())
    }

    pub(super) fn count_full(&self) {
        self.inward().full += 1;
    }

    /// Takes up to `limit` packets out. Returns their number.
    pub(super) fn pop(&self, packets: &mut Vec<Bytes>, limit: usize) -> Result<usize, Refusal> {
        let (taken, wakes) = {
            let mut outward = self.outward();
            let taken = outward.packets.len().min(limit);
            if taken == 0 && outward.ended {
                return Err(Refusal::Ended);
            }
            packets.extend(outward.packets.drain(..taken));
            outward.received += taken as u64;
            // At half, so that a shard is not woken for each packet.
            let wakes = outward.blocked && outward.packets.len() <= PacketPort::CAPACITY / 2;
            outward.blocked &= !wakes;
            (taken, wakes)
        };
        if wakes {
            self.wake_shards();
        }
        Ok(taken)
    }

    /// Records that the port was dropped.
    pub(super) fn close(&self) {
        {
            let mut inward = self.inward();
            if inward.state == Ends::Both {
                inward.state = Ends::StackAlone;
            }
        }
        self.wake_shards();
    }

    pub(super) fn counters(&self) -> PacketCounters {
        let Inward { sent, full, too_long, lost, .. } = *self.inward();
        let outward = self.outward();
        let Outward { received, outgrown, .. } = *outward;
        let waiting = outward.packets.len();
        PacketCounters { sent, full, too_long, lost, received, outgrown, waiting }
    }

    /// Returns the reason why the stack ended, as text for users.
    pub(super) fn why(&self) -> String {
        let never = || "it was never built".to_owned();
        self.shutdown.get().map_or_else(never, |shutdown| shutdown.why())
    }

    fn wake_shards(&self) {
        self.wakers.get().into_iter().flatten().for_each(Waker::wake);
    }
}

/// The side of the stack's devices.
impl PacketQueues {
    /// Records the shards, which `wakers` wake.
    pub(super) fn open(&self, wakers: Box<[Waker]>) {
        let mut inward = self.inward();
        let early: Vec<_> = inward.lanes.drain(..).flatten().collect();
        inward.lanes.resize_with(wakers.len().max(1), VecDeque::new);
        for packet in early {
            let which = inward.lane_of(&packet);
            if let Some(lane) = inward.lanes.get_mut(which) {
                lane.push_back(packet);
            }
        }
        // Opened once: opening consumes the end.
        let _ = self.wakers.set(wakers);
    }

    /// Sets the source of the reason of the stack's end.
    pub(crate) fn attach(&self, shutdown: Arc<Shutdown>) {
        // Built once: building consumes the builder.
        let _ = self.shutdown.set(shutdown);
    }

    /// Moves waiting packets for shard `which` to `places`. Returns their number; `None` if there are
    /// none and the port was dropped.
    pub(super) fn take(&self, which: u16, places: &mut [Bytes]) -> Option<usize> {
        let (taken, made_room) = {
            let mut inward = self.inward();
            let gone = inward.state == Ends::StackAlone;
            let lane = inward.lanes.get_mut(usize::from(which))?;
            let before = lane.len();
            if gone && before == 0 {
                return None;
            }
            let taken = before.min(places.len());
            for (place, packet) in places.iter_mut().zip(lane.drain(..taken)) {
                *place = packet;
            }
            (taken, taken > 0 && before >= PacketPort::CAPACITY)
        };
        if made_room {
            guarded(|| self.room.notify_waiters());
        }
        Some(taken)
    }

    /// True if shard `which` has packets to take or an end to learn of.
    pub(super) fn has_news(&self, which: u16) -> bool {
        let inward = self.inward();
        let waits = inward.lanes.get(usize::from(which)).is_some_and(|lane| !lane.is_empty());
        waits || inward.state == Ends::StackAlone
    }

    /// Reserves places for packets that come in groups of these sizes. Returns the numbers of groups
    /// and packets that fit. If some do not fit, the shard is woken when there is room.
    pub(super) fn reserve(&self, groups: impl Iterator<Item = usize>) -> (usize, usize) {
        let mut outward = self.outward();
        let (mut count, mut packets) = (0, 0);
        for group in groups {
            let filled = outward.packets.len() + outward.reserved + packets;
            // A group of any size fits an empty queue.
            if filled > 0 && filled + group > PacketPort::CAPACITY {
                outward.blocked = true;
                break;
            }
            count += 1;
            packets += group;
        }
        outward.reserved += packets;
        (count, packets)
    }

    /// Puts packets into reserved places.
    pub(super) fn put(&self, reserved: usize, packets: impl Iterator<Item = Bytes>) {
        {
            let mut outward = self.outward();
            outward.reserved -= reserved;
            // Some may have been made for a wider link.
            let (mtu, before) = (usize::from(self.mtu()), outward.packets.len());
            outward.packets.extend(packets.filter(|packet| packet.len() <= mtu));
            let lost = (before + reserved).saturating_sub(outward.packets.len());
            outward.outgrown += lost as u64;
        }
        guarded(|| self.arrived.notify_waiters());
    }

    /// True if a blocked shard must still wait.
    pub(super) fn is_blocked(&self) -> bool {
        self.outward().blocked
    }

    /// Records that the stack has ended.
    pub(super) fn end(&self) {
        {
            let mut inward = self.inward();
            inward.state = Ends::PortAlone;
            let lost: usize = inward.lanes.iter_mut().map(|lane| lane.drain(..).count()).sum();
            inward.lost += lost as u64;
            self.outward().ended = true;
        }
        guarded(|| self.room.notify_waiters());
        guarded(|| self.arrived.notify_waiters());
    }

    /// The device of a panicking worker reports its reason, because it is dropped first.
    pub(super) fn fail(&self, why: &str) {
        if let Some(shutdown) = self.shutdown.get() {
            shutdown.fail(why.into());
        }
    }

    /// Locks the inward queues. Nothing panics under the locks.
    fn inward(&self) -> MutexGuard<'_, Inward> {
        self.inward.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outward(&self) -> MutexGuard<'_, Outward> {
        self.outward.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inward {
    fn lane_of(&self, packet: &[u8]) -> usize {
        match self.lanes.len() {
            0 | 1 => 0,
            lanes => queue_of(packet, lanes as u16).into(),
        }
    }
}
