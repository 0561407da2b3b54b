//! Calls of the host's applications and its administrator, sensible or not.

use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Secrets;
use whimbrel_stack::shard::SocketState;
use whimbrel_stack::{Handle, Recv};
use whimbrel_tcp::cc::Algorithm;
use whimbrel_tcp::conn::{
    AckTiming, BufferSize, Cork, KeepAlive, Nagle, SocketOptions, SocketOverrides, State,
};
use whimbrel_tcp::table::Families;
use whimbrel_wire::{Address, Endpoint, IpHeader, SeqNum, TrafficClass};

use super::fault::{Fault, judge};
use super::flow::Flow;
use super::fuzzed_host::{self, PORTS};
use super::script::Script;
use super::text::{self, Speaker};
use super::{Siege, Theme};

/// Most connections that applications hold at once, and most listeners.
pub(super) const MOST_HELD: usize = 24;
const MOST_LISTENERS: usize = 4;
/// Most pieces of text that applications keep.
const MOST_KEPT: usize = 64;

impl Siege {
    /// One call about a connection, or about all.
    pub(super) fn call(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        let which = script.below(MOST_HELD);
        let call = script.below(32);
        let held = self.held.len();
        if held == 0 || call >= 20 {
            self.call_host(call, script);
            return Ok(());
        }
        let place = which % held;
        let handle = self.held[place];
        match call {
            0..=3 => self.write(handle, script)?,
            4..=6 => self.read(handle, script)?,
            7 => self.shard.shutdown(handle),
            8 => {
                self.held.swap_remove(place);
                self.shard.close(handle);
            }
            9 => {
                self.held.swap_remove(place);
                self.shard.abort(handle);
            }
            10 => self.shard.set_nodelay(handle, script.one_of(&[Nagle::On, Nagle::Off])),
            11 => self.shard.set_cork(handle, script.one_of(&[Cork::On, Cork::Off])),
            12 => {
                self.shard.set_keep_alive(handle, script.one_of(&[KeepAlive::On, KeepAlive::Off]));
            }
            13 => self.shard.set_send_size(handle, size(script)),
            14 => self.shard.set_recv_size(handle, size(script)),
            15 => self.shard.set_options(handle, &options(script)),
            16 => self.peek(handle)?,
            17 => {
                if let Some(flow) = self.shard.flow(handle) {
                    let known = self.shard.abort_flow(&flow);
                    judge(known || self.is_over(handle), || "a connection without a flow".into())?;
                }
            }
            18 => self.write_single(handle, script)?,
            _ => {
                // Reads and writes until both block, as a server of bytes does.
                self.read(handle, script)?;
                self.write(handle, script)?;
            }
        }
        Ok(())
    }

    fn call_host(&mut self, call: usize, script: &mut Script<'_>) {
        match call % 12 {
            0 => self.listen(script),
            1 | 2 => self.accept(script),
            3 | 4 => self.connect(script),
            5 => self.connect_fast(script),
            6 => self.set_listener(script),
            7 => {
                if self.listeners.len() > 1 {
                    let place = script.below(self.listeners.len());
                    self.shard.close_listener(self.listeners.swap_remove(place));
                }
            }
            8 => self.retune(script),
            9 => self.administer(script),
            10 => self.take_news(script),
            _ => self.look(),
        }
    }

    /// Takes events, and some of the waiting datagrams.
    fn take_news(&mut self, script: &mut Script<'_>) {
        while self.shard.poll_event().is_some() {}
        for _ in 0..script.below(8) {
            let _ = self.datagrams.and_then(|socket| self.shard.udp_recv(socket));
        }
    }

    fn is_over(&self, handle: Handle) -> bool {
        matches!(self.shard.state(handle), None | Some(State::Closed | State::TimeWait))
    }

    /// Number of the next byte that the application of this connection writes.
    fn next_written(&self, handle: Handle) -> Option<SeqNum> {
        let snapshot = self.shard.snapshot(handle)?;
        let syn = matches!(snapshot.state, State::SynSent | State::SynReceived);
        Some(snapshot.snd.una + snapshot.send_queued + u32::from(syn))
    }

    fn write(&mut self, handle: Handle, script: &mut Script<'_>) -> Result<(), Fault> {
        let len = match script.below(4) {
            0 => script.below(8),
            1 => usize::from(script.u8()),
            _ => usize::from(script.u16()),
        };
        self.write_bytes(handle, len, script.rarely(8))
    }

    /// Writes byte by byte.
    fn write_single(&mut self, handle: Handle, script: &mut Script<'_>) -> Result<(), Fault> {
        for _ in 0..script.u8() {
            self.write_bytes(handle, 1, false)?;
        }
        Ok(())
    }

    fn write_bytes(&mut self, handle: Handle, len: usize, urgent: bool) -> Result<(), Fault> {
        let Some(next) = self.next_written(handle) else { return Ok(()) };
        let mut data = text::text(Speaker::Host, next, len);
        let before = self.shard.snapshot(handle).map_or(0, |it| it.send_queued);
        let sent = if urgent {
            self.shard.send_urgent(handle, &mut data)
        } else {
            self.shard.send(handle, &mut data)
        };
        let Ok(taken) = sent else { return Ok(()) };
        let after = self.shard.snapshot(handle).map_or(0, |it| it.send_queued);
        judge(taken + data.len() == len && after == before + taken as u32, || {
            format!("{len} bytes written: {taken} taken, {before} queued before, {after} then")
        })
    }

    fn read(&mut self, handle: Handle, script: &mut Script<'_>) -> Result<(), Fault> {
        let most = match script.below(4) {
            0 => 1 + script.below(8),
            1 => 1 + usize::from(script.u8()),
            _ => usize::MAX,
        };
        for _ in 0..=script.below(16) {
            let Some(before) = self.shard.snapshot(handle) else { return Ok(()) };
            let next = before.rcv.nxt - u32::from(before.fin_received) - before.unread;
            let Recv::Data(data) = self.shard.recv_up_to(handle, most) else { return Ok(()) };
            self.judge_read(handle, next, &data)?;
            judge(!data.is_empty() && data.len() <= most, || {
                format!("{} bytes read where {most} were asked for", data.len())
            })?;
            self.keep(next, data)?;
        }
        Ok(())
    }

    /// Keeps some of the data that applications read, long after its connection is gone: its
    /// contents must not change.
    fn keep(&mut self, from: SeqNum, bytes: Bytes) -> Result<(), Fault> {
        if !bytes.len().is_multiple_of(3) {
            return Ok(());
        }
        self.kept.push_back((from, bytes));
        if self.kept.len() <= MOST_KEPT {
            return Ok(());
        }
        let first = self.kept.pop_front();
        first.map_or(Ok(()), |(from, bytes)| self.judge_kept(from, &bytes))
    }

    pub(super) fn judge_kept(&self, from: SeqNum, bytes: &[u8]) -> Result<(), Fault> {
        self.judge_text(from, bytes).map_err(|at| {
            Fault(format!("byte {at} of {} kept from {from:?} is another now", bytes.len()))
        })
    }

    fn peek(&self, handle: Handle) -> Result<(), Fault> {
        let Some(snapshot) = self.shard.snapshot(handle) else { return Ok(()) };
        let mut next = snapshot.rcv.nxt - u32::from(snapshot.fin_received) - snapshot.unread;
        for piece in self.shard.peek(handle) {
            self.judge_read(handle, next, piece)?;
            next += piece.len() as u32;
        }
        Ok(())
    }

    /// A host that reaches itself is its own peer.
    fn judge_text(&self, from: SeqNum, bytes: &[u8]) -> Result<(), usize> {
        let judged = text::judge(Speaker::Peer, from, bytes);
        if judged.is_err() && self.theme == Theme::AnyDestinationModel {
            return text::judge(Speaker::Host, from, bytes).or(judged);
        }
        judged
    }

    fn judge_read(&self, handle: Handle, from: SeqNum, bytes: &[u8]) -> Result<(), Fault> {
        self.judge_text(from, bytes).map_err(|at| {
            let snapshot = self.shard.snapshot(handle);
            Fault(format!("byte {at} of {} read from {from:?} is wrong: {snapshot:?}", bytes.len()))
        })
    }

    fn listen(&mut self, script: &mut Script<'_>) {
        if self.listeners.len() >= MOST_LISTENERS {
            return;
        }
        let family = script.one_of(self.families);
        let addr = if script.rarely(2) {
            fuzzed_host::unspecified(family)
        } else {
            fuzzed_host::ours(family, script.u8())
        };
        let at = Endpoint::new(addr, script.one_of(&PORTS));
        let families = script.one_of(&[Families::Own, Families::DualStack]);
        let backlog = u32::from(script.u8() % 4);
        self.listeners.extend(self.shard.listen_for(at, families, backlog));
    }

    fn accept(&mut self, script: &mut Script<'_>) {
        let Some(listener) = self.listeners.get(script.below(MOST_LISTENERS)).copied() else {
            return;
        };
        while self.held.len() < MOST_HELD {
            let Some(handle) = self.shard.accept(listener) else { return };
            self.held.push(handle);
        }
    }

    fn set_listener(&mut self, script: &mut Script<'_>) {
        let Some(listener) = self.listeners.get(script.below(MOST_LISTENERS)).copied() else {
            return;
        };
        match script.below(4) {
            0 => self.shard.set_backlog(listener, u32::from(script.u8() % 8)),
            1 => self.shard.set_fast_open(listener, u32::from(script.u8() % 4)),
            2 => {
                let options = SocketOptions { defer_accept: script.u8() % 4, ..options(script) };
                self.shard.set_listener_options(listener, &options)
            }
            _ => {
                let [one, other] = [7, 8].map(|seed| Secrets::from_seed(seed).fast_open);
                self.shard.set_fast_open_keys(listener, &one, script.rarely(2).then_some(&other))
            }
        };
    }

    fn connect(&mut self, script: &mut Script<'_>) {
        let (remote, local, options) = self.draw_ends(script);
        if let Ok(handle) = self.shard.connect_with(remote, local, &options) {
            self.hold(handle, false);
        }
    }

    fn connect_fast(&mut self, script: &mut Script<'_>) {
        let (remote, local, options) = self.draw_ends(script);
        let mut data = Bytes::from(vec![0; usize::from(script.u16()) % 4_000]);
        let whole = data.len();
        if let Ok(handle) = self.shard.connect_fast(remote, local, &options, &mut data) {
            self.hold(handle, data.len() < whole);
        }
    }

    fn draw_ends(&self, script: &mut Script<'_>) -> (Endpoint, Option<Endpoint>, SocketOptions) {
        let family = script.one_of(self.families);
        let remote = fuzzed_host::peer_end(family, script.u8(), 9_000 + u16::from(script.u8() % 2));
        let bound = Endpoint::new(fuzzed_host::ours(family, script.u8()), 4_000);
        let local = if script.rarely(4) { Some(bound) } else { None };
        let options = if script.rarely(3) { options(script) } else { SocketOptions::default() };
        (remote, local, options)
    }

    /// Takes a connection that the host opened; the besieger is its peer.
    fn hold(&mut self, handle: Handle, unread: bool) {
        if self.held.len() >= MOST_HELD {
            self.shard.abort(handle);
            return;
        }
        self.held.push(handle);
        if let Some(flow) = self.shard.flow(handle) {
            self.add_flow(Flow { unread, ..Flow::new(flow.remote, flow.local) });
        }
    }

    fn retune(&mut self, script: &mut Script<'_>) {
        let (name, value) = super::rules::draw(script);
        // A value out of range or a fixed tunable is refused without any change.
        if self.shard.set_tunable(name, &value).is_ok() {
            self.note_bounds();
        }
    }

    fn administer(&mut self, script: &mut Script<'_>) {
        let family = script.one_of(self.families);
        match script.below(7) {
            0 => {
                let state = script.one_of(&SocketState::ALL);
                self.shard.abort_state(state);
            }
            1 if script.rarely(2) => self.keep_unclaimed(script),
            1 => self.shard.purge_paths(),
            2 => {
                let pool: Vec<Address> =
                    (0..script.u8() % 3).map(|which| fuzzed_host::ours(family, which)).collect();
                let _ = self.shard.set_source_pool(&pool);
            }
            3 => {
                let _ = self.shard.draw_port(&fuzzed_host::ours(family, 0), |port| port % 2 == 0);
            }
            4 => self.shard.join_group(Duration::from_secs(u64::from(script.u32()))),
            5 => {
                let keys = [3, 4].map(|seed| Secrets::from_seed(seed).cookies);
                self.shard.set_cookie_keys(&keys[0], script.rarely(2).then_some(&keys[1]));
            }
            _ => {
                let key = Secrets::from_seed(u64::from(script.u8())).fast_open;
                self.shard.rotate_fast_open_key(&key);
            }
        }
    }

    /// Begins to keep unclaimed packets, or stops.
    fn keep_unclaimed(&mut self, script: &mut Script<'_>) {
        while let Some(packet) = self.shard.poll_unclaimed() {
            assert!(IpHeader::parse(&packet).is_ok(), "an unclaimed packet that is none");
        }
        self.shard.keep_unclaimed(script.below(4));
    }

    /// Reads all that reports show.
    fn look(&self) {
        let _ = self.shard.states();
        let _ = self.shard.sockets().count();
        for handle in &self.held {
            let _ = self.shard.attempt(*handle);
            let _ = self.shard.soft_error(*handle);
            let _ = self.shard.urgent_mark(*handle);
            if let Some(flow) = self.shard.flow(*handle) {
                let _ = self.shard.state_between(&flow);
                let _ = self.shard.path_mtu(&flow.remote.addr);
            }
        }
    }
}

fn size(script: &mut Script<'_>) -> u32 {
    script.one_of(&[0, 1, 1_000, 2_048, 4_096, 65_535, 1 << 20, u32::MAX])
}

fn asked(is_set: bool, exact: bool, script: &mut Script<'_>) -> BufferSize {
    match (is_set, exact) {
        (false, _) => BufferSize::Auto,
        (true, false) => BufferSize::Asked(size(script)),
        (true, true) => BufferSize::Exact(size(script)),
    }
}

fn options(script: &mut Script<'_>) -> SocketOptions {
    let bits = script.u16();
    let set = |bit: u16| bits & 1 << bit != 0;
    let time = |script: &mut Script<'_>| script.one_of(&[0, 1, 1_000, 60_000, 3_600_000]);
    SocketOptions {
        nagle: if set(0) { Nagle::Off } else { Nagle::On },
        cork: if set(1) { Cork::On } else { Cork::Off },
        keep_alive: if set(2) { KeepAlive::On } else { KeepAlive::Off },
        send_size: asked(set(3), set(15), script),
        recv_size: asked(set(4), set(15), script),
        defer_accept: 0,
        congestion_control: set(15).then(|| script.one_of(&Algorithm::OURS).0),
        overrides: SocketOverrides {
            ttl: set(5).then(|| script.u8().max(1)),
            tos: TrafficClass(if set(5) { script.u8() & 0xfc } else { 0 }),
            hop_limit: set(5).then(|| script.u8().max(1)),
            traffic_class: TrafficClass(if set(5) { script.u8() & 0xfc } else { 0 }),
            keepalive_time: set(6).then(|| Duration::from_millis(time(script))),
            keepalive_interval: set(6).then(|| Duration::from_millis(time(script))),
            keepalive_probes: set(6).then(|| script.u8().max(1)),
            user_timeout: set(7).then(|| Duration::from_millis(time(script))),
            syn_retries: set(8).then(|| script.u8()),
            retries: set(9).then(|| script.u8()),
            fin_timeout: set(10).then(|| Duration::from_millis(time(script))),
            max_seg: set(11).then(|| script.u16()),
            unsent_low_water: set(12).then(|| size(script)),
            window_clamp: set(13).then(|| size(script)),
            max_pacing_rate: NonZeroU64::new(50_000).filter(|_| set(12) && set(13)),
            acks: if set(14) { AckTiming::AtOnce } else { AckTiming::Delayed },
        },
    }
}
