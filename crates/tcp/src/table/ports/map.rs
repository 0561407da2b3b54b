//! The ports in use towards one destination, where they are many.

use alloc::collections::VecDeque;

use whimbrel_base::ports::{Drawable, Lane, PortBits, Words};
use whimbrel_wire::{Address, Endpoint};

use super::{PortUse, Taken};

/// One pair of this host's address and a peer's end: what a local port must be unique for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Destination {
    /// The address at this host.
    pub local: Address,
    /// The address and port of the peer.
    pub remote: Endpoint,
}

/// Which ports are in use towards a destination, which of them wait, and in which order ports came
/// back, if that matters there.
#[derive(Debug)]
pub(super) struct PortMap {
    pub(super) towards: Destination,
    /// The hash under which the destination is known.
    pub(super) hash: u32,
    /// Ports in use, and those that come home to another shard.
    used: PortBits,
    /// The number of are in use.
    used_count: u32,
    elsewhere: Option<Elsewhere>,
    /// Ports in TIME-WAIT with timestamps, and without: the longest waiting first.
    waiting: [VecDeque<u16>; 2],
    /// Of a peer that is known to refuse: ports that came back since, which are used last.
    returned: Option<Returned>,
}

/// Ports that come home to another shard, as far as they were met.
#[derive(Debug)]
struct Elsewhere {
    ports: PortBits,
    count: u32,
}

/// Ports in the order in which they came back.
#[derive(Debug)]
struct Returned {
    queue: VecDeque<u16>,
    /// Those in the queue. One in use stays there until its turn, so that nothing is sought.
    queued: PortBits,
}

impl PortMap {
    pub(super) fn new(towards: Destination, hash: u32) -> Self {
        let (used, waiting) = (PortBits::default(), [const { VecDeque::new() }; 2]);
        Self { towards, hash, used, used_count: 0, elsewhere: None, waiting, returned: None }
    }

    /// True if no port is in use.
    pub(super) const fn is_idle(&self) -> bool {
        self.used_count == 0
    }

    /// True if nothing would be lost with it.
    pub(super) const fn is_useless(&self) -> bool {
        self.is_idle() && self.returned.is_none()
    }

    /// The first port of the lanes that is free, and did not come back from a peer that refuses.
    pub(super) fn seek(
        &mut self,
        lanes: &[Lane],
        drawable: &Drawable,
        look: &mut impl FnMut(u16) -> PortUse,
    ) -> Option<u16> {
        for lane in lanes {
            let mut at = lane.from;
            while let Some(port) = lane.next_open(at, &Blocked { map: self, drawable }) {
                match look(port) {
                    PortUse::Free => return Some(port),
                    found => self.discover(port, found, look),
                }
                at = u32::from(port) + lane.stride;
            }
        }
        None
    }

    /// The port that came back the longest ago and is free.
    pub(super) fn seek_returned(
        &mut self,
        drawable: &Drawable,
        look: &mut impl FnMut(u16) -> PortUse,
    ) -> Option<u16> {
        loop {
            let Returned { queue, queued } = self.returned.as_mut()?;
            let port = queue.pop_front()?;
            queued.remove(port);
            if self.used.contains(port) || !drawable.contains(port) {
                continue;
            }
            match look(port) {
                PortUse::Free => return Some(port),
                found => self.discover(port, found, look),
            }
        }
    }

    /// Why nothing was found, if none of `count` ports is free.
    pub(super) fn taken(&mut self, count: u32, look: &mut impl FnMut(u16) -> PortUse) -> Taken {
        let waiting = self.waiting.iter().map(|queue| queue.len() as u32).sum();
        let elsewhere = self.elsewhere.as_ref().map_or(0, |it| it.count);
        Taken {
            in_use: count.saturating_sub(waiting).saturating_sub(elsewhere),
            waiting,
            longest: self.waiting.each_mut().map(|queue| first_silent(queue, look)),
        }
    }

    pub(super) fn claim(&mut self, port: u16) {
        // One that comes home to another shard is in use here only if an application binds it.
        let bound = self.elsewhere.as_mut().is_some_and(|it| it.remove(port));
        self.used_count += u32::from(self.used.insert(port) || bound);
    }

    pub(super) fn release(&mut self, port: u16) {
        if self.elsewhere.as_ref().is_some_and(|it| it.ports.contains(port)) {
            // It was bound before there was a map, and met since.
            return;
        }
        if self.used.remove(port) {
            self.used_count -= 1;
        }
        if let Some(Returned { queue, queued }) = &mut self.returned
            && queued.insert(port)
        {
            queue.push_back(port);
        }
    }

    /// A port enters TIME-WAIT, or begins to wait anew.
    pub(super) fn start_waiting(&mut self, port: u16, stamped: Stamped) {
        // One that was not discovered yet is now.
        self.claim(port);
        self.waiting[stamped as usize].push_back(port);
    }

    /// A port waits no longer. Mostly it is the first; one from the middle (the peer's FIN or reset
    /// came) is sought from the back, as that happens soon: at most 65,536 of 2 bytes.
    pub(super) fn stop_waiting(&mut self, port: u16, stamped: Stamped) {
        let queue = &mut self.waiting[stamped as usize];
        if queue.front() == Some(&port) {
            queue.pop_front();
        } else if let Some(place) = queue.iter().rposition(|it| *it == port) {
            queue.remove(place);
        }
        if queue.is_empty() && queue.capacity() > KEPT {
            queue.shrink_to(KEPT);
        }
    }

    /// The peer refuses ports whose last connection it remembers: from now on those come first that
    /// were not used for longest.
    pub(super) fn on_refused(&mut self) {
        let anew = || Returned { queue: VecDeque::new(), queued: PortBits::default() };
        self.returned.get_or_insert_with(anew);
    }

    /// A port turned out to be in use, since before the map was.
    /// Those that wait are in order of entry, which the looks tell.
    fn discover(&mut self, port: u16, found: PortUse, look: &mut impl FnMut(u16) -> PortUse) {
        match found {
            PortUse::Free | PortUse::Foreign => return,
            PortUse::Elsewhere => return self.pass_over(port),
            PortUse::Ours => {}
            PortUse::Waiting { entered, stamped, .. } => {
                let queue = &mut self.waiting[stamped as usize];
                let waits_longer = |other: &u16| match look(*other) {
                    PortUse::Waiting { entered: others, .. } => {
                        entered.millis_since(others).cast_signed() > 0
                    }
                    _ => false,
                };
                let place = queue.partition_point(waits_longer);
                queue.insert(place, port);
            }
        }
        self.claim(port);
    }

    fn pass_over(&mut self, port: u16) {
        let none = || Elsewhere { ports: PortBits::default(), count: 0 };
        let elsewhere = self.elsewhere.get_or_insert_with(none);
        if self.used.insert(port) {
            elsewhere.count += u32::from(elsewhere.ports.insert(port));
        }
    }

    /// Other ports can be drawn from now on: what comes home to another shard is met anew.
    pub(super) fn forget_elsewhere(&mut self) {
        if let Some(elsewhere) = self.elsewhere.take() {
            self.used.remove_all(&elsewhere.ports);
        }
    }
}

impl Elsewhere {
    fn remove(&mut self, port: u16) -> bool {
        let there = self.ports.remove(port);
        self.count -= u32::from(there);
        there
    }
}

/// The first port that was silent since it began to wait. Those before it answered something: they
/// go behind the others, a few at a time.
fn first_silent(queue: &mut VecDeque<u16>, look: &mut impl FnMut(u16) -> PortUse) -> Option<u16> {
    for _ in 1..queue.len().min(LOOKS) {
        match look(*queue.front()?) {
            PortUse::Waiting { entered, spoke, .. } if entered != spoke => queue.rotate_left(1),
            _ => break,
        }
    }
    queue.front().copied()
}

/// The ports that a search passes over: those in use, ports that came back from a peer that refuses, and
/// those reserved.
struct Blocked<'a> {
    map: &'a PortMap,
    drawable: &'a Drawable,
}

impl Words for Blocked<'_> {
    fn word(&self, index: usize) -> u64 {
        let returned = self.map.returned.as_ref().map_or(0, |it| it.queued.word(index));
        self.map.used.word(index) | returned | self.drawable.word(index)
    }

    fn next_with_gap(&self, index: usize) -> usize {
        self.map.used.next_with_gap(index)
    }
}

/// A connection's use of timestamps: without them, its TIME-WAIT cannot be cut short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Stamped {
    /// The connection used timestamps.
    Yes = 0,
    /// The connection used no timestamps.
    No = 1,
}

/// The number of ports that wait are looked at for one that was silent.
const LOOKS: usize = 8;
/// Ports that an empty queue keeps room for.
const KEPT: usize = 256;
