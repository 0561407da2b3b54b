//! A host under siege: a script of bytes controls a peer, applications, an administrator and time
//! around a whole [`Shard`]. After each step all invariants are checked.
//!
//! The peer sees the host's packets, so its forgeries are nearly valid: segments in every state,
//! errors about the host's own packets, fragments, false neighbour messages. Any file is a script
//! ([`play`]), so a fuzzer with only coverage feedback can write them.
//!
//! The data of streams follows from their sequence numbers (`text`), so bytes out of place are seen
//! in either direction. The siege does not check the host's answers: packet scripts do that.

mod calls;
mod datagrams;
mod fault;
mod flow;
mod fuzzed_host;
mod judge;
mod link;
mod packet;
mod roaming;
mod rules;
mod script;
mod segment;
mod text;
mod traffic;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::shard::Census;
use whimbrel_stack::udp::{Bind, Local};
use whimbrel_stack::{Event, Handle, ListenerId, Shard, UdpHandle};
use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Endpoint, Family, SeqNum};

pub use fault::Fault;

use crate::sacked::Sacked;

use self::fault::judge;
use self::flow::{Flow, Granted};
use self::fuzzed_host::{FuzzedHost, PORTS, ours, peer_end};
use self::judge::{Reflection, Widest};
use self::roaming::AnyDestinationModel;
use self::script::Script;
use self::segment::{Flaw, Forged};

/// Plays a script: sets up the host, follows the script, closes everything and waits until nothing
/// is left.
///
/// A script that begins with [`OF_DATAGRAMS`] is more about datagrams than about segments, one that
/// begins with [`OF_ROAMING`] about other hosts' addresses, and addresses and routes that come and
/// go.
pub fn play(bytes: &[u8]) -> Result<(), Fault> {
    let (theme, script) = Theme::of(bytes);
    let mut script = Script::new(script);
    let Some(fuzzed_host) = FuzzedHost::draw(&mut script) else { return Ok(()) };
    let mut siege = Siege::new(fuzzed_host);
    siege.theme = theme;
    for step in 0..MOST_STEPS {
        if script.is_over() {
            break;
        }
        siege.step(&mut script).map_err(|fault| Fault(format!("step {step}: {fault}")))?;
    }
    siege.end(bytes.len().is_multiple_of(2))
}

/// Theme of a siege in addition to segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Theme {
    Segments,
    Datagrams,
    AnyDestinationModel,
}

impl Theme {
    /// Theme of a script, and the rest of it.
    fn of(bytes: &[u8]) -> (Self, &[u8]) {
        [(Self::Datagrams, OF_DATAGRAMS), (Self::AnyDestinationModel, OF_ROAMING)]
            .into_iter()
            .find_map(|(theme, begin)| Some((theme, bytes.strip_prefix(begin)?)))
            .unwrap_or((Self::Segments, bytes))
    }
}

/// The host and its surroundings.
struct Siege {
    now: Instant,
    shard: Shard,
    ethernet: bool,
    mtu: u16,
    offload: bool,
    families: &'static [Family],
    listeners: Vec<ListenerId>,
    held: Vec<Handle>,
    /// Socket on the listeners' port.
    datagrams: Option<UdpHandle>,
    /// Other datagram sockets.
    sockets: Vec<UdpHandle>,
    theme: Theme,
    roaming: AnyDestinationModel,
    flows: Vec<Flow>,
    granted: Option<Granted>,
    /// The host's last packets, for errors about them.
    recent: VecDeque<Vec<u8>>,
    /// Frames that arrive in one burst with the next, and the number still to wait.
    burst: Vec<(Vec<u8>, SegMeta)>,
    wait_for: usize,
    /// True if the device takes no frames.
    stalled: bool,
    /// True if neighbours answer the host's requests.
    neighbourly: bool,
    widest: Widest,
    reflection: Reflection,
    sacked: Sacked,
    /// Number of connections at its start.
    opened: u64,
    /// Data that applications have read and keep, and its first number in the stream.
    kept: VecDeque<(SeqNum, Bytes)>,
}

impl Siege {
    fn new(fuzzed_host: FuzzedHost) -> Self {
        let FuzzedHost { shard, ethernet, mtu, offload, families } = fuzzed_host;
        let widest = Widest::new(shard.tunables());
        let flows = (0..6_u8).map(|at| {
            let family = families[usize::from(at) % families.len()];
            let own = peer_end(family, at / 2, 5_000 + u16::from(at % 4));
            Flow::new(own, Endpoint::new(ours(family, 0), PORTS[0]))
        });
        let mut siege = Self {
            now: Instant::from_millis(1),
            flows: flows.collect(),
            shard,
            ethernet,
            mtu,
            offload,
            families,
            listeners: Vec::new(),
            held: Vec::new(),
            datagrams: None,
            sockets: Vec::new(),
            theme: Theme::Segments,
            roaming: AnyDestinationModel::default(),
            granted: None,
            recent: VecDeque::new(),
            burst: Vec::new(),
            wait_for: 0,
            stalled: false,
            neighbourly: true,
            widest,
            reflection: Reflection::default(),
            sacked: Sacked::default(),
            opened: 0,
            kept: VecDeque::new(),
        };
        siege.shard.set_now(siege.now);
        siege.datagrams = siege.shard.udp_bind(&Bind::new(Local::Both, PORTS[0])).ok();
        for family in families {
            let at = Endpoint::new(ours(*family, 0), PORTS[0]);
            let listener = siege.shard.listen(at, 3).ok();
            if let Some(listener) = listener {
                siege.shard.set_fast_open(listener, 2);
                siege.listeners.push(listener);
            }
        }
        siege
    }

    fn step(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        match script.below(32) {
            0..=5 => self.polite(script)?,
            6..=8 if self.theme == Theme::Datagrams => self.besiege_sockets(script)?,
            9..=13 if self.theme == Theme::Datagrams => self.call_socket(script)?,
            6..=10 if self.theme == Theme::AnyDestinationModel => self.roam(script)?,
            6..=13 => self.wild(script)?,
            14 | 15 => self.complain(script)?,
            16 => self.send_other(script)?,
            17 | 18 if self.ethernet => {
                let rumour = link::rumour(self.families, script);
                self.deliver(rumour, SegMeta::SINGLE, false)?;
            }
            17..=25 => self.call(script)?,
            26..=29 => self.wait(script)?,
            _ => self.change_weather(script)?,
        }
        self.drain()?;
        self.process_host()
    }

    /// Changes the device and the arrival of frames.
    fn change_weather(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        match script.below(4) {
            0 => self.stalled = !self.stalled,
            1 => self.neighbourly = !self.neighbourly,
            2 => self.wait_for = script.below(80),
            _ => self.stream(script)?,
        }
        Ok(())
    }

    /// Sends segments of one stream in one burst, full and in order, except for one of them.
    fn stream(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        const FULL: usize = 1_000;
        let (place, count) = (script.below(self.flows.len()), 2 + script.below(62));
        let (odd, how) = (script.below(count), script.below(12));
        self.wait_for = count - 1;
        for number in 0..count {
            let flow = self.flows[place];
            let mut forged = Forged::polite(&flow, TcpFlags::ACK, FULL);
            if number == odd {
                forged.disturb(how, script);
            }
            self.send(place, &forged, Flaw::None, &mut Script::new(&[]))?;
        }
        Ok(())
    }

    /// Sends the next segment of an honest peer on a flow.
    fn polite(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        let place = script.below(self.flows.len());
        let flow = self.flows[place];
        let ack = TcpFlags::ACK;
        let (flags, len) = match script.below(12) {
            0 => return self.open(place),
            1 => (TcpFlags::SYN, 0),
            2 => (TcpFlags::SYN_ACK, 0),
            3 | 4 => (ack, 0),
            5 => (ack | TcpFlags::PSH, 1),
            6 | 7 => (ack | TcpFlags::PSH, script.below(1_461)),
            8 => (ack | TcpFlags::PSH, script.below(30_000)),
            9 => (ack | TcpFlags::FIN, 0),
            10 => (ack | TcpFlags::FIN, script.below(10)),
            _ => (TcpFlags::RST, 0),
        };
        self.send(place, &Forged::polite(&flow, flags, len), Flaw::None, script)
    }

    /// Sends an arbitrary segment on a flow.
    fn wild(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        let place = script.below(self.flows.len());
        let flow = self.flows[place];
        let granted = self.granted.filter(|granted| granted.to.addr == flow.own.addr);
        let forged = Forged::wild(&flow, granted, script);
        let flaw = match script.below(24) {
            0 => Flaw::Checksum,
            1 => Flaw::DataOffset(script.u8()),
            2 => Flaw::Cut(script.u8()),
            _ => Flaw::None,
        };
        self.send(place, &forged, flaw, script)
    }

    /// Sends an error about a packet of the host.
    fn complain(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        let Some(about) = self.recent.get(script.below(MOST_RECENT)) else { return Ok(()) };
        let Some(error) = packet::error(&about.clone(), script) else { return Ok(()) };
        self.send_packet(error, SegMeta::SINGLE, false, script)
    }

    fn send_other(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        let flow = self.flows[script.below(self.flows.len())];
        let packet = packet::other(flow.own.addr, flow.host.addr, script);
        self.send_packet(packet, SegMeta::SINGLE, false, script)
    }

    /// Lets time pass: a little, much, until something is due, or from one deadline to the next.
    fn wait(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        let next = self.shard.next_deadline().unwrap_or(self.now);
        let millis = |millis: u64| Duration::from_millis(millis);
        let after = match script.below(8) {
            0 => Duration::from_nanos(u64::from(script.u8())),
            1 => millis(u64::from(script.u8())),
            2 => millis(u64::from(script.u16())),
            3 => millis(u64::from(script.u32() % DAY_MILLIS)),
            4 => next.since(self.now),
            // A moment before.
            5 => next.since(self.now).saturating_sub(Duration::from_nanos(1)),
            _ => {
                for _ in 0..=script.below(64) {
                    let Some(next) = self.shard.next_deadline() else { break };
                    self.pass(next)?;
                }
                return Ok(());
            }
        };
        self.pass(self.now + after)
    }

    fn pass(&mut self, until: Instant) -> Result<(), Fault> {
        if until.as_nanos() > LONGEST.as_nanos() as u64 {
            return Ok(());
        }
        self.now = self.now.max(until);
        let before = self.acknowledged();
        for _ in 0..MOST_BATCHES {
            let more = self.shard.advance(self.now, 64);
            self.drain()?;
            // A packet of the host to itself is due at once.
            if !more && !self.shard.has_looped() {
                let next = self.shard.next_deadline();
                return judge(self.stalled || next.is_none_or(|next| next > self.now), || {
                    format!("due at {next:?}, and nothing done at {:?}", self.now)
                });
            }
        }
        // A connection with itself over a window of one byte takes many steps at one instant, and
        // progresses.
        let gets_on = self.shard.has_looped() && self.acknowledged() != before;
        judge(gets_on, || "time does not pass".into())
    }

    /// Acknowledged number of each connection that applications hold.
    fn acknowledged(&self) -> Vec<Option<SeqNum>> {
        let una = |handle: &Handle| self.shard.snapshot(*handle).map(|it| it.snd.una);
        self.held.iter().map(una).collect()
    }

    /// Closes everything and waits until nothing is left.
    fn end(mut self, close: bool) -> Result<(), Fault> {
        (self.stalled, self.neighbourly) = (false, false);
        for handle in core::mem::take(&mut self.held) {
            if close { self.shard.close(handle) } else { self.shard.abort(handle) }
        }
        for listener in core::mem::take(&mut self.listeners) {
            self.shard.close_listener(listener);
        }
        self.stop_roaming();
        for socket in self.datagrams.take().into_iter().chain(self.sockets.drain(..)) {
            self.shard.udp_close(socket);
        }
        // A rule may let unacknowledged data wait for a day, which is more deadlines than these.
        if self.shard.tunables().user_timeout > LONGEST_WAIT {
            let _ = self.shard.set_tunable("user_timeout", "1h");
        }
        for _ in 0..MOST_DEADLINES {
            self.drain()?;
            while self.shard.poll_ping().is_some() {}
            while let Some(event) = self.shard.poll_event() {
                let of_a_handle = !matches!(
                    event,
                    Event::Accepted(_) | Event::Asked(_) | Event::Opened(_) | Event::Withdrawn(..)
                );
                judge(!of_a_handle, || format!("{event:?} of a handle that was released"))?;
            }
            self.process_host()?;
            if self.shard.census() == Census::default() {
                let left = (self.shard.udp().len(), self.shard.udp().held());
                judge(left == (0, 0), || format!("sockets and datagrams left: {left:?}"))?;
                return self
                    .kept
                    .iter()
                    .try_for_each(|(from, bytes)| self.judge_kept(*from, bytes));
            }
            let Some(next) = self.shard.next_deadline() else { break };
            self.now = self.now.max(next);
            for _ in 0..MOST_BATCHES {
                if !self.shard.advance(self.now, 64) {
                    break;
                }
            }
        }
        let (census, next) = (self.shard.census(), self.shard.next_deadline());
        Err(Fault(format!("left behind at {:?}, next {next:?}: {census:?}", self.now)))
    }
}

/// Start of scripts about datagrams.
pub const OF_DATAGRAMS: &[u8] = b"UDP";
/// Start of scripts about other hosts' addresses, and about addresses and routes that change.
pub const OF_ROAMING: &[u8] = b"ANY";

/// Bound on the length of a siege under any script: steps, flows, remembered packets.
const MOST_STEPS: usize = 2_000;
const MOST_FLOWS: usize = 16;
const MOST_RECENT: usize = 8;
/// Most batches at one instant: with more, the host would never stop.
const MOST_BATCHES: usize = 20_000;
/// Most deadlines until the last record is gone.
const MOST_DEADLINES: usize = 20_000;
/// Longest time that unacknowledged data may wait after all is closed.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
const DAY_MILLIS: u32 = 86_400_000;
/// Longest duration of a siege.
const LONGEST: Duration = Duration::from_secs(400 * 86_400);

#[cfg(test)]
mod tests;
