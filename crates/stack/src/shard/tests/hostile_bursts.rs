//! Bursts that are nearly one segment after the other, against what joins them; and applications that keep
//! what they read, against the pool that lends its chunks.

use core::ops::Range;
use std::collections::VecDeque;
use std::time::Duration;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::{
    OptionOrder, SackBlock, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};
use whimbrel_wire::{Mss, Protocol, RawWindow, SeqNum, WindowScale};

use super::hosts::{Over, drain, host, server_addr, server_at};
use super::packets::{packet, sent, tcp};
use crate::{Handle, ListenerId, Recv, RxFrame, Shard};

const ACK: TcpFlags = TcpFlags::ACK;
/// Numbers wrap within the first bursts.
const ISN: SeqNum = SeqNum::new(u32::MAX - 20_000);
const MSS: u32 = 1_448;

/// A server, and connections to it whose peers say whatever a test wants.
struct Scene {
    server: Shard,
    listener: ListenerId,
    now: Instant,
    peers: Vec<Peer>,
}

#[derive(Clone, Copy)]
struct Peer {
    handle: Handle,
    port: u16,
    /// The number that acknowledges the server's SYN.
    ack: SeqNum,
    stamps: Timestamps,
    /// Bytes of its stream that were sent.
    at: u32,
    /// Bytes of it that were read.
    read: u32,
}

/// A frame before it is one: what may differ from the one in front of it.
#[derive(Clone, Copy)]
struct Frame {
    at: u32,
    len: u32,
    flags: TcpFlags,
    urgent: u16,
    window: u16,
    /// Beyond what is right, modulo 2^32.
    ack: u32,
    val: u32,
    has_stamps: bool,
    has_sack: bool,
}

impl Frame {
    const fn plain(at: u32, len: u32) -> Self {
        let (flags, window) = (ACK, 30_000);
        let (urgent, ack, val) = (0, 0, 0);
        Self { at, len, flags, urgent, window, ack, val, has_stamps: true, has_sack: false }
    }
}

/// The byte of each stream at this place.
fn text_byte(at: u32) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)) as u8
}

fn is_stream(from: u32, bytes: &[u8]) -> bool {
    bytes.iter().zip(from..).all(|(it, at)| *it == text_byte(at))
}

impl Scene {
    fn new(peers: u16, tunables: &Tunables) -> Self {
        let mut server = host(server_addr, 2, tunables);
        let listener = server.listen(server_at(Over::V4), 64).expect("free");
        let mut scene = Self { server, listener, now: Instant::from_millis(1), peers: Vec::new() };
        for port in 4_000..4_000 + peers {
            let peer = scene.open(port);
            scene.peers.push(peer);
        }
        scene
    }

    fn open(&mut self, port: u16) -> Peer {
        let opening = TcpOptions {
            mss: Some(Mss::new(1_460)),
            window_scale: Some(WindowScale::new(7)),
            sack_permitted: true,
            timestamps: Some(Timestamps { val: 1_000, ecr: 0 }),
            ..TcpOptions::default()
        };
        self.arrive(&[segment(port, TcpFlags::SYN, ISN, SeqNum::new(0), opening)]);
        let answer = tcp(sent(&mut self.server).last().expect("an answer")).0;
        let theirs = answer.options.timestamps.expect("agreed upon");
        let stamps = Timestamps { val: 1_000, ecr: theirs.val };
        let (ack, timestamps) = (answer.seq + 1, Some(stamps));
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        self.arrive(&[segment(port, ACK, ISN + 1, ack, options)]);
        let handle = self.server.accept(self.listener).expect("complete");
        Peer { handle, port, ack, stamps, at: 0, read: 0 }
    }

    fn arrive(&mut self, frames: &[Vec<u8>]) {
        let meta = SegMeta { checksum: RxChecksum::Verified, ..SegMeta::SINGLE };
        let lent: Vec<_> = frames.iter().map(|frame| RxFrame::new(frame, meta)).collect();
        self.server.rx(self.now, &lent);
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        while self.server.advance(self.now, 64) {}
        while !sent(&mut self.server).is_empty() {}
        while self.server.poll_event().is_some() {}
    }
}

impl Peer {
    fn frame(&self, frame: &Frame) -> Vec<u8> {
        let Frame { at, len, flags, urgent, window, ack, val, has_stamps, has_sack } = *frame;
        let stamps = Timestamps { val: self.stamps.val.wrapping_add(val), ..self.stamps };
        let mut sack = SackBlocks::NONE;
        if has_sack {
            sack.push(SackBlock { left: self.ack + 1, right: self.ack + 2 });
        }
        let timestamps = has_stamps.then_some(stamps);
        let header = TcpHeader {
            src_port: self.port,
            dst_port: 80,
            seq: ISN + 1 + at,
            ack: self.ack + ack,
            flags,
            window: RawWindow::new(window),
            urgent,
            options: TcpOptions { timestamps, sack, ..TcpOptions::default() },
        };
        let mut bytes = emit(&header);
        bytes.extend((at..at + len).map(text_byte));
        packet(Over::V4, Protocol::TCP, &bytes)
    }
}

fn segment(port: u16, flags: TcpFlags, seq: SeqNum, ack: SeqNum, options: TcpOptions) -> Vec<u8> {
    let window = RawWindow::new(60_000);
    let (src_port, dst_port, urgent) = (port, 80, 0);
    let header = TcpHeader { src_port, dst_port, seq, ack, flags, window, urgent, options };
    packet(Over::V4, Protocol::TCP, &emit(&header))
}

fn emit(header: &TcpHeader) -> Vec<u8> {
    let mut bytes = std::vec![0; header.header_len(OptionOrder::Linux)];
    header.emit(OptionOrder::Linux, &mut bytes);
    bytes
}

/// Numbers that look like chance.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % most
    }

    fn within(&mut self, range: Range<u32>) -> u32 {
        range.start + self.below(range.end - range.start)
    }

    /// The next frame of a stream that `at` bytes of were sent: mostly full and in order, and else wrong in
    /// one way or more.
    fn frame(&mut self, at: u32) -> Frame {
        let len = match self.below(12) {
            0 => self.within(1..MSS),
            1 => 513,
            2 => 512,
            _ => MSS,
        };
        let mut frame = Frame::plain(at, len);
        if self.below(3) > 0 {
            return frame;
        }
        match self.below(16) {
            0 | 1 => frame.flags = ACK | TcpFlags::PSH,
            2 => (frame.flags, frame.urgent) = (ACK | TcpFlags::URG, self.below(3_000) as u16),
            // CWR, ECE, both, AE.
            3 => {
                let bits = [0x80, 0x40, 0xc0, 0x100][self.below(4) as usize];
                frame.flags = TcpFlags::from_bits(ACK.bits() | bits);
            }
            // What came before again, or some of it; and what comes later.
            4..=6 => frame.at = at.saturating_sub(self.below(4_000)),
            7 => frame.at = at + self.within(1..4_000),
            8 => frame.window = 30_000 + self.below(2) as u16,
            9 => frame.val = 1,
            10 => frame.val = u32::MAX,
            11 => frame.has_stamps = false,
            12 => frame.has_sack = true,
            13 => frame.ack = self.below(3).wrapping_sub(1),
            14 => frame.len = 0,
            _ if self.below(20) == 0 => frame.flags = ACK | TcpFlags::FIN,
            _ => {}
        }
        frame
    }
}

/// Returns what a burst did, except the number of answers: what is owed twice is sent once.
fn done(scene: &Scene) -> impl PartialEq + core::fmt::Debug {
    let counters = scene.server.counters();
    let drops: Vec<_> = counters.drops().map(|(_, count)| count).collect();
    let it = scene.server.snapshot(scene.peers[0].handle).expect("held");
    let taken = (it.state, it.rcv.nxt, it.unread, it.fin_received);
    (taken, counters.in_segs, counters.accepted_segs, counters.out_of_order, drops)
}

#[test]
fn a_hostile_burst_does_what_its_segments_do_one_by_one() {
    // A buffer that grows does so by when it is looked at.
    let tunables = Tunables { recv_auto: false, ..Tunables::default() };
    let mut joined = 0;
    for seed in 1..=400_u64 {
        let mut draws = Draws(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let [mut whole, mut single] = [(); 2].map(|()| Scene::new(1, &tunables));
        for burst in 0..6 {
            let mut frames = Vec::new();
            for _ in 0..draws.within(2..80) {
                let peer = &mut whole.peers[0];
                let frame = draws.frame(peer.at);
                frames.push(peer.frame(&frame));
                peer.at = peer.at.max(frame.at + frame.len).min(peer.at + MSS);
            }
            whole.arrive(&frames);
            frames.iter().for_each(|frame| single.arrive(core::slice::from_ref(frame)));
            let case = std::format!("seed {seed}, burst {burst}");
            assert_eq!(done(&whole), done(&single), "{case}");
            let [text, again] = [&mut whole, &mut single].map(|scene| {
                let handle = scene.peers[0].handle;
                let text = drain(&mut scene.server, handle).0;
                scene.pass(Duration::from_millis(50));
                scene.server.check_invariants().expect("what must hold");
                text
            });
            assert_eq!(text, again, "{case}");
            let peer = &mut whole.peers[0];
            assert!(is_stream(peer.read, &text), "{case}");
            peer.read += text.len() as u32;
            joined += usize::from(text.len() > 2 * MSS as usize);
            // What is missing comes again, as from any sender.
            peer.at = peer.read;
            let val = whole.peers[0].stamps.val;
            whole.peers[0].stamps.val = val.wrapping_add(2);
        }
    }
    assert!(joined > 500, "bursts of which much was taken: {joined}");
}

#[test]
fn text_kept_by_application_outlives_its_connection() {
    let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
    let mut scene = Scene::new(12, &Tunables::default());
    let mut kept: VecDeque<(u32, Bytes)> = VecDeque::new();
    for round in 0..4_000_u32 {
        let place = draws.below(12) as usize;
        let peer = &mut scene.peers[place];
        let mut frames = Vec::new();
        for _ in 0..draws.within(1..64) {
            // What pins much by little: a few bytes behind a burst.
            let len = if draws.below(8) == 0 { draws.within(1..20) } else { MSS };
            frames.push(peer.frame(&Frame::plain(peer.at, len)));
            peer.at += len;
        }
        scene.arrive(&frames);
        read_some(&mut scene, place, &mut draws, &mut kept);
        // What was refused comes again.
        let handle = scene.peers[place].handle;
        let nxt = scene.server.snapshot(handle).expect("held").rcv.nxt;
        scene.peers[place].at = nxt.offset_from(ISN + 1);
        match draws.below(100) {
            0 => {
                let budget = ["1M", "4M", "64M", "1G"][draws.below(4) as usize];
                scene.server.set_tunable("mem.budget", budget).expect("valid");
            }
            1 => {
                scene.server.abort(handle);
                scene.pass(Duration::from_millis(1));
                scene.peers[place] = scene.open(5_000 + round as u16);
            }
            _ => {}
        }
        while kept.len() > 300 || !kept.is_empty() && draws.below(3) == 0 {
            let at = draws.below(kept.len() as u32) as usize;
            let (from, text) = kept.swap_remove_back(at).expect("there");
            assert!(is_stream(from, &text), "round {round}: {} bytes from {from}", text.len());
        }
        scene.pass(Duration::from_millis(draws.below(3).into()));
        scene.server.check_invariants().expect("what must hold");
    }
    for Peer { handle, .. } in core::mem::take(&mut scene.peers) {
        scene.server.abort(handle);
    }
    (0..2_000).for_each(|_| scene.pass(Duration::from_millis(1)));
    assert!(scene.server.cx.pool.chunks.is_empty(), "what is kept is its holders'");
    assert_eq!((scene.server.memory().text, scene.server.census().connections), (0, 0));
    assert!(!kept.is_empty() && kept.iter().all(|(from, text)| is_stream(*from, text)));
}

/// The application reads as much as it likes, in pieces of some length, and keeps every second one.
fn read_some(
    scene: &mut Scene,
    place: usize,
    draws: &mut Draws,
    kept: &mut VecDeque<(u32, Bytes)>,
) {
    let most = [1, 100, 5_000, usize::MAX, usize::MAX][draws.below(5) as usize];
    let peer = &mut scene.peers[place];
    for _ in 0..draws.below(40) {
        let Recv::Data(text) = scene.server.recv_up_to(peer.handle, most) else { break };
        assert!(is_stream(peer.read, &text));
        let from = peer.read;
        peer.read += text.len() as u32;
        if draws.below(2) == 0 {
            kept.push_back((from, text));
        }
    }
}
