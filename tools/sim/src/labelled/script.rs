//! An application at either end that follows one script: whose turn it is to send what, and when.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_stack::{Event, Handle, ListenerId, Recv, Shard};
use whimbrel_tcp::conn::{Limit, Snapshot, SocketOptions};
use whimbrel_wire::{Endpoint, Family};

use crate::host::Application;
use crate::pair::{client_addr, server_at};

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end that opens it.
    Client,
    /// The end that accepts it.
    Server,
}

/// A step of a connection's script. Each end does its own, in order; the other waits for text only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// This end sends so many bytes, and the other reads them.
    Send(Side, u64),
    /// This end waits.
    Wait(Side, Duration),
    /// This end reads nothing for so long.
    Deaf(Side, Duration),
    /// This end sends FIN.
    Shut(Side),
    /// This end resets the connection, or closes it with text unread.
    Abort(Side),
}

/// A connection of a scene.
#[derive(Clone, Debug)]
pub struct Talk {
    /// Time of its SYN.
    pub starts: Duration,
    /// The client's port; without, the stack chooses.
    pub port: Option<u16>,
    /// The script.
    pub turns: Vec<Turn>,
}

/// The time for which each limit held, as the sender has counted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Of the send buffer.
    pub buffer: Duration,
    /// Of the receiver's window.
    pub window: Duration,
    /// Of what was under way.
    pub network: Duration,
}

impl Limits {
    fn of(snapshot: &Snapshot) -> Self {
        let [buffer, window, network] =
            [Limit::Buffer, Limit::Window, Limit::Network].map(|limit| snapshot.limited(limit));
        Self { buffer, window, network }
    }
}

/// Application at one end of all connections.
#[derive(Debug)]
pub(super) struct Talker {
    side: Side,
    talks: Vec<Talk>,
    options: SocketOptions,
    listens: Option<(u32, ListenerId)>,
    backlog: Option<u32>,
    /// Time before which nothing is accepted.
    accepts_from: Duration,
    flows: Vec<FlowState>,
    now: Instant,
}

/// A connection under way.
#[derive(Clone, Debug)]
struct FlowState {
    talk: usize,
    handle: Option<Handle>,
    is_begun: bool,
    is_open: bool,
    turn: usize,
    /// Bytes of this turn that are sent or read so far.
    done: u64,
    waits_until: Option<Instant>,
    deaf_until: Option<Instant>,
    finished: Option<Instant>,
    limits: Option<Limits>,
    has_failed: bool,
}

impl FlowState {
    const fn new(talk: usize) -> Self {
        Self {
            talk,
            handle: None,
            is_begun: false,
            is_open: false,
            turn: 0,
            done: 0,
            waits_until: None,
            deaf_until: None,
            finished: None,
            limits: None,
            has_failed: false,
        }
    }
}

impl Talker {
    pub(super) fn client(talks: &[Talk], options: SocketOptions) -> Self {
        let flows = (0..talks.len()).map(FlowState::new).collect();
        Self::new(Side::Client, talks, options, None, flows)
    }

    pub(super) fn server(talks: &[Talk], options: SocketOptions, backlog: Option<u32>) -> Self {
        Self::new(Side::Server, talks, options, backlog, Vec::new())
    }

    fn new(
        side: Side,
        talks: &[Talk],
        options: SocketOptions,
        backlog: Option<u32>,
        flows: Vec<FlowState>,
    ) -> Self {
        Self {
            side,
            talks: talks.to_vec(),
            options,
            listens: None,
            backlog,
            accepts_from: Duration::ZERO,
            flows,
            now: Instant::ZERO,
        }
    }

    /// Accepts nothing before this time.
    pub(super) const fn accept_from(&mut self, time: Duration) {
        self.accepts_from = time;
    }

    /// When the script of each connection was over at this end, if it was.
    pub(super) fn finished(&self) -> Vec<Option<Duration>> {
        let since = |flow: &FlowState| flow.finished.map(|at| at.since(Instant::ZERO));
        self.flows.iter().map(since).collect()
    }

    /// Limits of each connection of the script that was over at this end.
    pub(super) fn limits(&self) -> Vec<Option<Limits>> {
        let of = |place| self.flows.iter().find(|flow| flow.talk == place)?.limits;
        (0..self.talks.len()).map(of).collect()
    }

    fn open(&mut self, shard: &mut Shard) {
        if let (Side::Server, Some(backlog), None) = (self.side, self.backlog, self.listens)
            && let Ok(listener) = shard.listen(server_at(Family::V4, PORT), backlog)
        {
            shard.set_listener_options(listener, &self.options);
            self.listens = Some((backlog, listener));
        }
        for flow in self.flows.iter_mut().filter(|flow| !flow.is_begun) {
            let talk = &self.talks[flow.talk];
            if Instant::ZERO + talk.starts > self.now {
                continue;
            }
            flow.is_begun = true;
            let local = talk.port.map(|port| Endpoint::new(client_addr(Family::V4), port));
            let opened = shard.connect_with(server_at(Family::V4, PORT), local, &self.options);
            flow.handle = opened.ok();
            flow.has_failed = flow.handle.is_none();
        }
    }

    fn take_events(&mut self, shard: &mut Shard) {
        while let Some(event) = shard.poll_event() {
            match event {
                Event::Connected(handle) => self.of(handle, |flow| flow.is_open = true),
                Event::Closed(handle, _) => self.of(handle, |flow| flow.has_failed = true),
                _ => {}
            }
        }
        let Some((_, listener)) = self.listens else { return };
        if self.now < Instant::ZERO + self.accepts_from {
            return;
        }
        while let Some(handle) = shard.accept(listener) {
            let port = shard.flow(handle).map(|flow| flow.remote.port);
            let known = self.talks.iter().position(|talk| talk.port == port && port.is_some());
            let talk = known.unwrap_or(self.flows.len().min(self.talks.len() - 1));
            let flow = FlowState {
                handle: Some(handle),
                is_begun: true,
                is_open: true,
                ..FlowState::new(talk)
            };
            self.flows.push(flow);
        }
    }

    fn of(&mut self, handle: Handle, act: impl FnOnce(&mut FlowState)) {
        if let Some(flow) = self.flows.iter_mut().find(|flow| flow.handle == Some(handle)) {
            act(flow);
        }
    }

    /// Goes on with a connection's script as far as it can.
    fn advance(&mut self, place: usize, shard: &mut Shard) {
        let Self { side, talks, flows, now, .. } = self;
        let flow = &mut flows[place];
        let Some(handle) = flow.handle.filter(|_| flow.is_open) else { return };
        let turns = &talks[flow.talk].turns;
        while let Some(turn) = turns.get(flow.turn) {
            let is_over = match *turn {
                Turn::Send(by, bytes) if by == *side => flow.send(bytes, handle, shard),
                Turn::Send(_, bytes) => flow.read(bytes, handle, shard, *now),
                Turn::Wait(by, time) if by == *side => {
                    let until = *flow.waits_until.get_or_insert(*now + time);
                    until <= *now
                }
                Turn::Deaf(by, time) if by == *side => {
                    flow.deaf_until = Some(*now + time);
                    true
                }
                Turn::Shut(by) if by == *side => {
                    shard.shutdown(handle);
                    true
                }
                Turn::Abort(by) if by == *side => {
                    shard.abort(handle);
                    flow.handle = None;
                    true
                }
                _ => true,
            };
            if !is_over {
                return;
            }
            flow.turn += 1;
            (flow.done, flow.waits_until) = (0, None);
            if flow.turn == turns.len() {
                flow.finished.get_or_insert(*now);
            }
            if flow.handle.is_none() {
                return;
            }
        }
        // The last one counts: text may be under way for long.
        flow.limits = shard.snapshot(handle).as_ref().map(Limits::of).or(flow.limits);
        // An end is read, too.
        if let Recv::Closed(_) | Recv::End = shard.recv(handle)
            && !turns.is_empty()
            && turns.contains(&Turn::Shut(*side))
        {
            shard.close(handle);
            flow.handle = None;
        }
    }
}

impl FlowState {
    fn send(&mut self, bytes: u64, handle: Handle, shard: &mut Shard) -> bool {
        while self.done < bytes {
            let most = (bytes - self.done).min(BLOCK.len() as u64) as usize;
            let mut piece = Bytes::from_static(&BLOCK[..most]);
            match shard.send(handle, &mut piece) {
                Ok(taken) if taken > 0 => self.done += taken as u64,
                _ => return false,
            }
        }
        true
    }

    fn read(&mut self, bytes: u64, handle: Handle, shard: &mut Shard, now: Instant) -> bool {
        if self.deaf_until.is_some_and(|until| until > now) {
            return false;
        }
        self.deaf_until = None;
        while self.done < bytes {
            match shard.recv_up_to(handle, (bytes - self.done).min(1 << 20) as usize) {
                Recv::Data(data) => self.done += data.len() as u64,
                _ => return false,
            }
        }
        true
    }
}

impl Application for Talker {
    fn on_wake(&mut self, shard: &mut Shard, now: Instant) {
        self.now = now;
        self.open(shard);
        self.take_events(shard);
        for place in 0..self.flows.len() {
            self.advance(place, shard);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let starts = self.flows.iter().filter(|flow| !flow.is_begun);
        let starts = starts.map(|flow| Instant::ZERO + self.talks[flow.talk].starts);
        let waits = self.flows.iter().flat_map(|flow| [flow.waits_until, flow.deaf_until]);
        let accepts = Instant::ZERO + self.accepts_from;
        let accepts = (self.listens.is_some() && accepts > self.now).then_some(accepts);
        starts.chain(waits.flatten().filter(|at| *at > self.now)).chain(accepts).min()
    }
}

const PORT: u16 = 80;
const BLOCK: [u8; 1 << 14] = [b'x'; 1 << 14];
