//! The states in which a stimulus meets a host, and the steps to reach them.

use whimbrel_posix::sockets::Shut;
use whimbrel_wire::tcp::TcpFlags;

use crate::shape::WINDOW;

/// One step on the way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Listen,
    Accept,
    Connect,
    Shutdown(Shut),
    Close,
    CloseListener,
    Write(usize),
    /// A segment of the peer's: flags, number, text, acknowledgment, window.
    Peer(TcpFlags, u32, u32, u32, u16),
}

/// A state, and the steps to reach it. All steps of one moment happen at once; a wait follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) moments: &'static [&'static [Step]],
    /// Next numbers of the peer and of the host; ISNs count as 0.
    pub(crate) next: (u32, u32),
}

use Step::{Accept, Close, CloseListener, Connect, Listen, Peer, Shutdown, Write};

const ACK: TcpFlags = TcpFlags::ACK;
const FIN: TcpFlags = TcpFlags::from_bits(TcpFlags::FIN.bits() | TcpFlags::ACK.bits());
const SYN: TcpFlags = TcpFlags::SYN;
const SYN_ACK: TcpFlags = TcpFlags::SYN_ACK;
const RST: TcpFlags = TcpFlags::RST;
const RST_ACK: TcpFlags = TcpFlags::from_bits(TcpFlags::RST.bits() | TcpFlags::ACK.bits());

const OPEN: &[Step] = &[Listen, Peer(SYN, 0, 0, 0, WINDOW)];
const OPENED: &[Step] = &[Peer(ACK, 1, 0, 1, WINDOW)];
const FIN_1: &[Step] = &[Peer(FIN, 1, 0, 1, WINDOW)];
const ACK_FIN: &[Step] = &[Peer(ACK, 1, 0, 2, WINDOW)];
const FIN_2: &[Step] = &[Peer(FIN, 1, 0, 2, WINDOW)];
const ACK_2: &[Step] = &[Peer(ACK, 2, 0, 2, WINDOW)];
const ACCEPT: &[Step] = &[Accept];
const CLOSE: &[Step] = &[Accept, Close];
const SHUT_WR: &[Step] = &[Accept, Shutdown(Shut::Write)];
const SHUT_BOTH: &[Step] = &[Accept, Shutdown(Shut::Both)];

const fn scene(name: &'static str, moments: &'static [&'static [Step]], next: (u32, u32)) -> Scene {
    Scene { name, moments, next }
}

/// Every scene.
pub(crate) const SCENES: &[Scene] = &[
    scene("closed", &[], (1, 1)),
    scene("listen", &[&[Listen]], (0, 1)),
    scene("syn-received", &[OPEN], (1, 1)),
    scene("syn-received-no-listener", &[OPEN, &[CloseListener]], (1, 1)),
    scene("established", &[OPEN, OPENED, ACCEPT], (1, 1)),
    scene("not-accepted", &[OPEN, OPENED], (1, 1)),
    scene("in-flight", &[OPEN, OPENED, &[Accept, Write(10)]], (1, 11)),
    scene("held", &[OPEN, OPENED, ACCEPT, &[Peer(ACK, 11, 10, 1, WINDOW)]], (1, 1)),
    scene("unread", &[OPEN, OPENED, ACCEPT, &[Peer(ACK, 1, 10, 1, WINDOW)]], (11, 1)),
    scene("shut-rd", &[OPEN, OPENED, &[Accept, Shutdown(Shut::Read)]], (1, 1)),
    scene("closed-window", &[OPEN, OPENED, ACCEPT, &[Peer(ACK, 1, 0, 1, 0)], &[Write(10)]], (1, 1)),
    scene("close-wait", &[OPEN, OPENED, ACCEPT, FIN_1], (2, 1)),
    scene("close-wait-in-flight", &[OPEN, OPENED, ACCEPT, FIN_1, &[Write(10)]], (2, 11)),
    scene("close-wait-shut-rd", &[OPEN, OPENED, ACCEPT, FIN_1, &[Shutdown(Shut::Read)]], (2, 1)),
    scene("last-ack-closed", &[OPEN, OPENED, ACCEPT, FIN_1, &[Close]], (2, 2)),
    scene("last-ack-shut-wr", &[OPEN, OPENED, ACCEPT, FIN_1, &[Shutdown(Shut::Write)]], (2, 2)),
    scene("last-ack-shut-both", &[OPEN, OPENED, ACCEPT, FIN_1, &[Shutdown(Shut::Both)]], (2, 2)),
    scene("fin-wait-1-closed", &[OPEN, OPENED, CLOSE], (1, 2)),
    scene("fin-wait-1-shut-wr", &[OPEN, OPENED, SHUT_WR], (1, 2)),
    scene("fin-wait-1-shut-both", &[OPEN, OPENED, SHUT_BOTH], (1, 2)),
    scene(
        "fin-wait-1-in-flight",
        &[OPEN, OPENED, &[Accept, Write(10), Shutdown(Shut::Write)]],
        (1, 12),
    ),
    scene("fin-wait-2-closed", &[OPEN, OPENED, CLOSE, ACK_FIN], (1, 2)),
    scene("fin-wait-2-shut-wr", &[OPEN, OPENED, SHUT_WR, ACK_FIN], (1, 2)),
    scene("fin-wait-2-shut-both", &[OPEN, OPENED, SHUT_BOTH, ACK_FIN], (1, 2)),
    scene("closing-closed", &[OPEN, OPENED, CLOSE, FIN_1], (2, 2)),
    scene("closing-shut-wr", &[OPEN, OPENED, SHUT_WR, FIN_1], (2, 2)),
    scene("closing-shut-both", &[OPEN, OPENED, SHUT_BOTH, FIN_1], (2, 2)),
    scene("time-wait-closed", &[OPEN, OPENED, CLOSE, ACK_FIN, FIN_2], (2, 2)),
    scene("time-wait-shut-wr", &[OPEN, OPENED, SHUT_WR, ACK_FIN, FIN_2], (2, 2)),
    scene("time-wait-from-closing", &[OPEN, OPENED, CLOSE, FIN_1, ACK_2], (2, 2)),
    scene("reset", &[OPEN, OPENED, ACCEPT, &[Peer(RST, 1, 0, 0, 0)]], (1, 1)),
    scene("finished", &[OPEN, OPENED, ACCEPT, FIN_1, &[Shutdown(Shut::Write)], ACK_2], (2, 2)),
    scene("syn-sent", &[&[Connect]], (0, 1)),
    scene("syn-sent-closed", &[&[Connect, Close]], (0, 1)),
    scene("refused", &[&[Connect], &[Peer(RST_ACK, 0, 0, 1, 0)]], (1, 1)),
    scene("crossed", &[&[Connect], &[Peer(SYN, 0, 0, 0, WINDOW)]], (1, 1)),
    scene("crossed-closed", &[&[Connect], &[Peer(SYN, 0, 0, 0, WINDOW)], &[Close]], (1, 2)),
    scene("connected", &[&[Connect], &[Peer(SYN_ACK, 0, 0, 1, WINDOW)]], (1, 1)),
];
