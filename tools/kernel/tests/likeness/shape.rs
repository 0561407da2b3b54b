//! Segments of a peer that can be sent in any state: their numbers are relative to the peer's next
//! number and to the host's last.

use whimbrel_script::ast::TcpOption;
use whimbrel_wire::tcp::TcpFlags;

/// A segment or an ICMP error.
#[derive(Clone, Debug)]
pub(crate) enum Stimulus {
    Segment(Shape),
    Icmp(IcmpShape),
}

/// A segment.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) flags: TcpFlags,
    /// Offset from the peer's next number.
    pub(crate) seq: i32,
    pub(crate) len: u32,
    /// Offset from the host's next number.
    pub(crate) ack: Option<i32>,
    pub(crate) win: u16,
    pub(crate) urg: u16,
    pub(crate) stamp: Stamp,
    /// Options in front of timestamps.
    pub(crate) options: Vec<TcpOption>,
}

/// Timestamps, on a connection that negotiated them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stamp {
    /// A clock that advances, and the echo of the host's last.
    Usual,
    /// The usual clock plus this many ticks.
    Later(i32),
    /// The usual clock, and an echo with this offset.
    Echo(i32),
    /// None.
    Missing,
}

/// An ICMPv4 error about a packet of the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IcmpShape {
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) mtu: u16,
    /// Offset of the quoted number from the host's next.
    pub(crate) seq: i32,
}

/// A stimulus by its name.
#[derive(Clone, Debug)]
pub(crate) struct NamedStimulus {
    pub(crate) name: &'static str,
    pub(crate) stimulus: Stimulus,
    /// Sequence numbers by which the peer advances if all of it is accepted.
    pub(crate) takes: u32,
}

const ACK: TcpFlags = TcpFlags::ACK;
const SYN: TcpFlags = TcpFlags::SYN;
const FIN: TcpFlags = TcpFlags::FIN;
const RST: TcpFlags = TcpFlags::RST;
const PSH: TcpFlags = TcpFlags::PSH;
const URG: TcpFlags = TcpFlags::URG;

impl Shape {
    /// Creates a segment of flags and place; with ACK it acknowledges all that was sent.
    fn new(flags: TcpFlags, seq: i32, len: u32) -> Self {
        let ack = flags.contains(ACK).then_some(0);
        let options = Vec::new();
        Self { flags, seq, len, ack, win: WINDOW, urg: 0, stamp: Stamp::Usual, options }
    }

    fn acking(self, ack: i32) -> Self {
        Self { ack: Some(ack), ..self }
    }

    fn with_window(self, win: u16) -> Self {
        Self { win, ..self }
    }

    fn stamped(self, stamp: Stamp) -> Self {
        Self { stamp, ..self }
    }

    fn urgent(self, urg: u16) -> Self {
        Self { urg, ..self }
    }
}

/// Returns every stimulus.
pub(crate) fn all() -> Vec<NamedStimulus> {
    [bare(), syns(), texts(), fins(), stamped(), icmp()].concat()
}

/// Returns the stimuli that may follow another: of each kind the plainest.
pub(crate) fn seconds() -> Vec<NamedStimulus> {
    let wanted = |named: &NamedStimulus| SECONDS.contains(&named.name);
    all().into_iter().filter(wanted).collect()
}

pub(crate) const SECONDS: [&str; 15] = [
    "ack",
    "ack-of-una",
    "ack-unsent",
    "text",
    "text-ahead",
    "text-old",
    "fin",
    "fin-again",
    "text-fin",
    "rst",
    "rst-ahead",
    "rst-below",
    "syn",
    "syn-far",
    "syn-first-again",
];

/// Names a segment.
fn named(name: &'static str, shape: Shape, takes: u32) -> NamedStimulus {
    NamedStimulus { name, stimulus: Stimulus::Segment(shape), takes }
}

/// Returns acknowledgments and resets.
fn bare() -> Vec<NamedStimulus> {
    let plain = Shape::new;
    let ack = || plain(ACK, 0, 0);
    vec![
        named("ack", ack(), 0),
        named("ack-of-una", ack().acking(-1), 0),
        named("ack-far-old", ack().acking(-100_000), 0),
        named("ack-unsent", ack().acking(1), 0),
        named("ack-far-unsent", ack().acking(100_000), 0),
        named("ack-ahead", plain(ACK, 1, 0), 0),
        named("ack-below", plain(ACK, -1, 0), 0),
        named("ack-far-below", plain(ACK, -100_000, 0), 0),
        named("ack-beyond", plain(ACK, BEYOND, 0), 0),
        named("ack-closes-window", ack().with_window(0), 0),
        named("ack-opens-window", ack().with_window(60_000), 0),
        named("ack-no-flags", plain(TcpFlags::NONE, 0, 0), 0),
        named("ack-psh", plain(ACK | PSH, 0, 0), 0),
        named("rst", plain(RST, 0, 0), 0),
        named("rst-ack", plain(RST | ACK, 0, 0), 0),
        named("rst-ack-unsent", plain(RST | ACK, 0, 0).acking(1), 0),
        named("rst-ack-old", plain(RST | ACK, 0, 0).acking(-100_000), 0),
        named("rst-ahead", plain(RST, 1, 0), 0),
        named("rst-ack-ahead", plain(RST | ACK, 1, 0), 0),
        named("rst-below", plain(RST, -1, 0), 0),
        named("rst-far-below", plain(RST, -100_000, 0), 0),
        named("rst-beyond", plain(RST, BEYOND, 0), 0),
        named("rst-fin", plain(RST | FIN | ACK, 0, 0), 0),
        named("rst-syn", plain(RST | SYN, 0, 0), 0),
        named("rst-text", plain(RST | ACK, 0, 10), 0),
    ]
}

/// Returns SYNs, with and without ACK.
fn syns() -> Vec<NamedStimulus> {
    let plain = Shape::new;
    vec![
        named("syn", plain(SYN, 0, 0), 0),
        named("syn-ahead", plain(SYN, 100, 0), 0),
        named("syn-below", plain(SYN, -1, 0), 0),
        named("syn-far", plain(SYN, BEYOND, 0), 0),
        named("syn-far-below", plain(SYN, -100_000, 0), 0),
        named("syn-first-again", plain(SYN, FIRST, 0), 0),
        named("syn-ack", plain(SYN | ACK, 0, 0), 0),
        named("syn-ack-first-again", plain(SYN | ACK, FIRST, 0), 0),
        named("syn-ack-unsent", plain(SYN | ACK, 0, 0).acking(1), 0),
        named("syn-ack-far", plain(SYN | ACK, BEYOND, 0), 0),
        named("syn-fin", plain(SYN | FIN, 0, 0), 0),
        named("syn-fin-ack", plain(SYN | FIN | ACK, 0, 0), 0),
        named("syn-text", plain(SYN, 0, 10), 0),
        named("syn-ack-text", plain(SYN | ACK, 0, 10), 0),
    ]
}

/// Returns text, urgent or not.
fn texts() -> Vec<NamedStimulus> {
    let plain = Shape::new;
    let text = || plain(ACK, 0, 10);
    vec![
        named("text", text(), 10),
        named("text-psh", plain(ACK | PSH, 0, 10), 10),
        named("text-ahead", plain(ACK, 10, 10), 0),
        named("text-old", plain(ACK, -10, 10), 0),
        named("text-overlaps", plain(ACK, -5, 10), 5),
        named("text-one-below", plain(ACK, -1, 1), 0),
        named("text-beyond", plain(ACK, BEYOND, 10), 0),
        named("text-no-ack", plain(TcpFlags::NONE, 0, 10), 10),
        named("text-acks-una", text().acking(-1), 10),
        named("text-acks-unsent", text().acking(1), 10),
        named("text-acks-far-old", text().acking(-100_000), 10),
        named("text-closes-window", text().with_window(0), 10),
        named("text-full", plain(ACK, 0, 1000), 1000),
        named("text-urgent", plain(ACK | URG, 0, 10).urgent(5), 10),
        named("text-urgent-later", plain(ACK | URG, 0, 10).urgent(50), 10),
        named("urgent-alone", plain(ACK | URG, 0, 0).urgent(5), 0),
    ]
}

/// Returns FINs, with and without text.
fn fins() -> Vec<NamedStimulus> {
    let plain = Shape::new;
    let fin = || plain(FIN | ACK, 0, 0);
    vec![
        named("fin", fin(), 1),
        named("fin-again", plain(FIN | ACK, -1, 0), 0),
        named("fin-again-acks-una", plain(FIN | ACK, -1, 0).acking(-1), 0),
        named("fin-acks-una", fin().acking(-1), 1),
        named("fin-acks-unsent", fin().acking(1), 1),
        named("fin-acks-far-old", fin().acking(-100_000), 1),
        named("fin-ahead", plain(FIN | ACK, 10, 0), 0),
        named("fin-beyond", plain(FIN | ACK, BEYOND, 0), 0),
        named("fin-no-ack", plain(FIN, 0, 0), 1),
        named("text-fin", plain(FIN | ACK, 0, 10), 11),
        named("text-fin-ahead", plain(FIN | ACK, 10, 10), 0),
        named("text-fin-overlaps", plain(FIN | ACK, -5, 10), 6),
        named("text-fin-old", plain(FIN | ACK, -11, 10), 0),
    ]
}

/// Returns segments that differ only if timestamps were negotiated.
fn stamped() -> Vec<NamedStimulus> {
    let plain = Shape::new;
    let ack = || plain(ACK, 0, 0);
    let text = || plain(ACK, 0, 10);
    let fin = || plain(FIN | ACK, 0, 0);
    vec![
        named("ack-paws", ack().stamped(Stamp::Later(-100_000)), 0),
        named("ack-no-stamps", ack().stamped(Stamp::Missing), 0),
        named("ack-echo-of-future", ack().stamped(Stamp::Echo(100_000)), 0),
        named("text-paws", text().stamped(Stamp::Later(-100_000)), 10),
        named("text-far-later", text().stamped(Stamp::Later(1 << 30)), 10),
        named("text-no-stamps", text().stamped(Stamp::Missing), 10),
        named("text-echo-of-future", text().stamped(Stamp::Echo(100_000)), 10),
        named("text-echo-of-past", text().stamped(Stamp::Echo(-100_000)), 10),
        named("fin-paws", fin().stamped(Stamp::Later(-100_000)), 1),
        named("fin-no-stamps", fin().stamped(Stamp::Missing), 1),
        named("rst-paws", plain(RST, 0, 0).stamped(Stamp::Later(-100_000)), 0),
        named("rst-no-stamps", plain(RST, 0, 0).stamped(Stamp::Missing), 0),
        named("syn-paws", plain(SYN, BEYOND, 0).stamped(Stamp::Later(-100_000)), 0),
        named("syn-no-stamps", plain(SYN, BEYOND, 0).stamped(Stamp::Missing), 0),
        named("syn-below-later", plain(SYN, -100_000, 0).stamped(Stamp::Later(1000)), 0),
        named("syn-ack-paws", plain(SYN | ACK, 0, 0).stamped(Stamp::Later(-100_000)), 0),
        named("syn-ack-echo-of-future", plain(SYN | ACK, 0, 0).stamped(Stamp::Echo(100_000)), 0),
        named("fin-again-paws", plain(FIN | ACK, -1, 0).stamped(Stamp::Later(-100_000)), 0),
    ]
}

/// Returns ICMP errors about the host's last segment.
fn icmp() -> Vec<NamedStimulus> {
    let error = |name, kind, code, seq| NamedStimulus {
        name,
        stimulus: Stimulus::Icmp(IcmpShape { kind, code, mtu: 1200, seq }),
        takes: 0,
    };
    vec![
        error("icmp-net", 3, 0, -1),
        error("icmp-host", 3, 1, -1),
        error("icmp-protocol", 3, 2, -1),
        error("icmp-port", 3, 3, -1),
        error("icmp-frag-needed", 3, 4, -1),
        error("icmp-source-route", 3, 5, -1),
        error("icmp-prohibited", 3, 13, -1),
        error("icmp-quench", 4, 0, -1),
        error("icmp-time", 11, 0, -1),
        error("icmp-reassembly", 11, 1, -1),
        error("icmp-parameter", 12, 0, -1),
        error("icmp-port-of-others", 3, 3, -100_000),
    ]
}

/// Window that the peer advertises.
pub(crate) const WINDOW: u16 = 32_792;
/// Distance beyond any window.
const BEYOND: i32 = 100_000_000;
/// Stands for the number of the peer's SYN.
pub(crate) const FIRST: i32 = i32::MIN;
