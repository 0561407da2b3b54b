//! Every reason for which a segment is refused: how it is met, and that it counts, once.

use std::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_tcp::conn::SocketOptions;
use whimbrel_tcp::{DropReason, Tunables};
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{Endpoint, Protocol, RawWindow, SeqNum, Sum};

use super::hosts::{Over, client_addr, host, server_addr, server_at};
use super::packets::{exchange, packet, sent};
use crate::{Handle, ListenerId, Shard};

const ACK: TcpFlags = TcpFlags::ACK;
const SYN: TcpFlags = TcpFlags::SYN;
const RST: TcpFlags = TcpFlags::RST;
const FIN_ACK: TcpFlags = TcpFlags::from_bits(0x11);
/// The window that the server announces and its peer, too.
const WINDOW: u32 = 65_535;

/// A server, and a peer that says what a test wants.
struct Scene {
    server: Shard,
    listener: ListenerId,
    /// The peer's port, and the server's.
    ports: (u16, u16),
    /// The number of the next byte of the peer's, and of the server's.
    next: (u32, u32),
    tsval: Option<u32>,
}

impl Scene {
    /// A listener with room for one by these rules.
    fn new(settings: &[(&str, &str)]) -> Self {
        let mut tunables = Tunables::default();
        for (name, value) in settings {
            tunables.set_by_name(name, value).unwrap_or_else(|error| panic!("{error}"));
        }
        let mut server = host(server_addr, 2, &tunables);
        let listener = server.listen(server_at(Over::V4), 1).expect("free");
        Self { server, listener, ports: (4_000, 80), next: (1_000, 0), tsval: None }
    }

    /// A client and a server with an established connection.
    fn connected(settings: &[(&str, &str)]) -> (Self, Handle) {
        Self::new(settings).and_connected()
    }

    fn and_connected(mut self) -> (Self, Handle) {
        self.syn();
        self.say(ACK, 0, 0, b"");
        let handle = self.server.accept(self.listener).expect("complete");
        (self, handle)
    }

    /// A client and a server with a connection in TIME-WAIT.
    fn waiting() -> Self {
        let (mut scene, handle) = Self::connected(&[]);
        scene.server.close(handle);
        assert_eq!(sent(&mut scene.server).len(), 1, "its FIN");
        scene.next.1 += 1;
        scene.say(FIN_ACK, 0, 0, b"");
        scene.next.0 += 1;
        assert_eq!(scene.server.census().time_wait, 1);
        scene
    }

    /// The peer's SYN, and what comes back.
    fn syn(&mut self) {
        let answer = self.say(SYN, 0, 0, b"").expect("an answer");
        assert_eq!(answer.flags, TcpFlags::SYN_ACK);
        self.next = (self.next.0 + 1, answer.seq.raw().wrapping_add(1));
    }

    /// A segment `seq` beyond the peer's next number, which acknowledges `ack` beyond the server's.
    fn say(&mut self, flags: TcpFlags, seq: i32, ack: i32, text: &[u8]) -> Option<TcpHeader> {
        let packet = self.packet(flags, seq, ack, text);
        let answer = exchange(&mut self.server, Instant::from_millis(1), &packet).pop()?;
        Some(TcpHeader::parse(&answer[20..]).expect("a segment").0)
    }

    fn packet(&self, flags: TcpFlags, seq: i32, ack: i32, text: &[u8]) -> Vec<u8> {
        let (from, to) = (client_addr(Over::V4), server_addr(Over::V4));
        let timestamps = self.tsval.map(|val| Timestamps { val, ecr: 0 });
        let header = TcpHeader {
            src_port: self.ports.0,
            dst_port: self.ports.1,
            seq: SeqNum::new(self.next.0.wrapping_add_signed(seq)),
            ack: SeqNum::new(if flags.contains(ACK) {
                self.next.1.wrapping_add_signed(ack)
            } else {
                0
            }),
            flags,
            window: RawWindow::new(WINDOW as u16),
            options: TcpOptions { timestamps, ..TcpOptions::default() },
            ..TcpHeader::default()
        };
        let mut tcp = std::vec![0; header.header_len(OptionOrder::Linux)];
        header.emit(OptionOrder::Linux, &mut tcp);
        tcp.extend_from_slice(text);
        let pseudo = Sum::pseudo_header(from, to, Protocol::TCP.0, tcp.len() as u32);
        let sum = pseudo.add_bytes(&tcp);
        TcpHeader::set_checksum(&mut tcp, sum.finish());
        packet(Over::V4, Protocol::TCP, &tcp)
    }
}

/// Meets this reason, once, and no other.
fn meet(reason: DropReason) -> Scene {
    match reason {
        DropReason::NoSocket => stray(SYN),
        DropReason::ResetWithoutSocket => stray(RST),
        DropReason::Flags => said_to(Scene::new(&[]), TcpFlags::FIN, 0, 0),
        DropReason::OldData => {
            let (mut scene, _) = Scene::connected(&[]);
            scene.say(ACK, 0, 0, b"a");
            scene.say(ACK, 0, 0, b"a");
            scene
        }
        DropReason::OverWindow => {
            let (mut scene, _) = Scene::connected(&[]);
            scene.say(ACK, WINDOW as i32 + 1, 0, b"a");
            scene
        }
        DropReason::OutOfOrderLimit => {
            let (mut scene, _) = Scene::connected(&[("max_out_of_order", "1")]);
            scene.say(ACK, 2, 0, b"a");
            scene.say(ACK, 4, 0, b"a");
            scene
        }
        DropReason::FinConflict => {
            let (mut scene, _) = Scene::connected(&[]);
            scene.say(ACK | TcpFlags::FIN, 2, 0, b"");
            scene.say(ACK, 3, 0, b"a");
            scene
        }
        DropReason::Paws => with_timestamp(7 - 2_000),
        DropReason::PawsAck => with_timestamp(7 - 2),
        DropReason::TimestampMissing => {
            let rules = [("timestamps.missing", "drop")];
            let (mut scene, _) = Scene { tsval: Some(7), ..Scene::new(&rules) }.and_connected();
            scene.tsval = None;
            said_to(scene, ACK, 0, 0)
        }
        DropReason::ResetChallenged => said(RST, 1, 0),
        DropReason::ResetOutsideWindow => said(RST, -1, 0),
        DropReason::SynChallenged => said(SYN, 0, 0),
        DropReason::NoAck => said(TcpFlags::PSH, 0, 0),
        DropReason::TooOldAck => said(ACK, 0, -(WINDOW as i32) - 2),
        DropReason::AckUnsentData => said(ACK, 0, 1),
        DropReason::DataAfterClose => {
            let (mut scene, handle) = Scene::connected(&[]);
            scene.server.close(handle);
            scene.say(ACK, 0, 0, b"a");
            scene
        }
        DropReason::TimeWait => said_to(Scene::waiting(), ACK, 0, 0),
        DropReason::TimeWaitReset => said_to(Scene::waiting(), RST, 0, 0),
        DropReason::TimeWaitSyn => said_to(Scene::waiting(), SYN, 0, 0),
        DropReason::MemoryBudget => short_of_memory(),
        opening => meet_in_opening(opening),
    }
}

/// An acknowledgment with this TSval, the last being 7.
fn with_timestamp(tsval: i32) -> Scene {
    let (mut scene, _) = Scene { tsval: Some(7), ..Scene::new(&[]) }.and_connected();
    scene.tsval = Some(tsval.cast_unsigned());
    said_to(scene, ACK, 0, 0)
}

/// Text beyond a gap, while nearly all of the budget is with what the application sent.
fn short_of_memory() -> Scene {
    let settings = [("mem.budget", "1M"), ("buffers.send", "2M")];
    let (mut scene, handle) = Scene::connected(&settings);
    scene.server.send(handle, &mut std::vec![7; 1_000_000].into()).expect("open");
    scene.say(ACK, 1, 0, b"b");
    scene
}

/// The reasons that handshakes meet.
fn meet_in_opening(reason: DropReason) -> Scene {
    match reason {
        DropReason::UnacceptableAck => {
            let mut scene = Scene::new(&[]);
            scene.syn();
            said_to(scene, ACK, 0, 1)
        }
        DropReason::ListenOverflow => {
            let mut scene = Scene::new(&[]);
            scene.syn();
            let (first, second) = (scene.next, (1_000, 0));
            (scene.ports.0, scene.next) = (4_001, second);
            scene.syn();
            let second = scene.next;
            (scene.ports.0, scene.next) = (4_000, first);
            scene.say(ACK, 0, 0, b"");
            (scene.ports.0, scene.next) = (4_001, second);
            said_to(scene, ACK, 0, 0)
        }
        DropReason::AcceptDeferred => {
            let mut scene = Scene::new(&[]);
            let options = SocketOptions { defer_accept: 1, ..SocketOptions::default() };
            assert!(scene.server.set_listener_options(scene.listener, &options));
            scene.syn();
            said_to(scene, ACK, 0, 0)
        }
        DropReason::SynCacheFull => crowded_out(),
        DropReason::SynCookie => {
            let mut scene = Scene::new(&[("net.ipv4.tcp_syncookies", "always")]);
            scene.syn();
            said_to(scene, ACK, 0, 1)
        }
        DropReason::ConnectionLimit => {
            let (mut scene, _) = Scene::connected(&[("max_connections", "1")]);
            (scene.ports.0, scene.next) = (4_001, (1_000, 0));
            scene.syn();
            said_to(scene, ACK, 0, 0)
        }
        other => panic!("no scene meets {other:?}"),
    }
}

/// A listener has as many entries as it may have, and they are so few of all that none is found to be
/// evicted.
fn crowded_out() -> Scene {
    let mut scene = Scene::new(&[("net.ipv4.tcp_syncookies", "off")]);
    let other = Endpoint::new(server_addr(Over::V4), 81);
    scene.server.listen(other, 5_000).expect("free");
    let crowd = (10_000..15_000).map(|port| (port, 81));
    for ports in crowd.chain((100..200).map(|port| (port, 80))) {
        scene.ports = ports;
        scene.say(SYN, 0, 0, b"");
        if scene.server.counters().dropped(DropReason::SynCacheFull) > 0 {
            break;
        }
    }
    scene
}

/// A segment without a listener.
fn stray(flags: TcpFlags) -> Scene {
    let mut scene = Scene::new(&[]);
    scene.ports.1 = 81;
    said_to(scene, flags, 0, 0)
}

/// A segment for an established connection.
fn said(flags: TcpFlags, seq: i32, ack: i32) -> Scene {
    said_to(Scene::connected(&[]).0, flags, seq, ack)
}

fn said_to(mut scene: Scene, flags: TcpFlags, seq: i32, ack: i32) -> Scene {
    scene.say(flags, seq, ack, b"");
    scene
}

#[test]
fn every_drop_reason_occurs_and_is_counted() {
    // A connection that is over is not found any more: what guards it is tested where it stands.
    for &reason in DropReason::ALL.iter().filter(|reason| **reason != DropReason::Closed) {
        let scene = meet(reason);
        let counters = scene.server.counters();
        let counted: Vec<_> = counters.drops().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [(reason, 1)], "{reason:?}");
        assert_eq!(counters.in_segs, counters.accepted_segs + 1, "{reason:?}");
    }
}
