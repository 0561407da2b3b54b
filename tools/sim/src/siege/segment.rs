//! A segment of the besieger: right, or wrong in one way.

use bytes::Bytes;
use whimbrel_wire::tcp::{TcpFlags, TcpHeader};
use whimbrel_wire::{Protocol, SeqNum, Sum};

use super::flow::{Flow, Granted};
use super::script::Script;
use super::text::{self, Speaker};

/// Fields of a segment before it is written.
pub(super) struct Forged {
    pub(super) seq: SeqNum,
    pub(super) ack: SeqNum,
    pub(super) flags: TcpFlags,
    pub(super) window: u16,
    pub(super) urgent: u16,
    pub(super) options: Vec<u8>,
    pub(super) text: Bytes,
}

/// Flaw of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    None,
    /// A wrong checksum.
    Checksum,
    /// A header length in words that is too small, or beyond the segment.
    DataOffset(u8),
    /// Only its first bytes.
    Cut(u8),
}

impl Forged {
    /// The next segment that a TCP would send on this flow.
    pub(super) fn polite(flow: &Flow, flags: TcpFlags, len: usize) -> Self {
        let syn = flags.contains(TcpFlags::SYN);
        let options = match flow.stamps {
            Some(stamps) => timestamps(stamps.ecr.wrapping_add(1), stamps.val),
            None if syn => syn_options(),
            None => Vec::new(),
        };
        let options = if syn { syn_options() } else { options };
        let text = text::text(Speaker::Peer, flow.next + u32::from(syn), len);
        let (seq, ack, window) = (flow.next, flow.sent, 30_000);
        Self { seq, ack, flags, window, urgent: 0, options, text }
    }

    /// A segment with any flaw, near a valid one.
    pub(super) fn wild(flow: &Flow, cookie: Option<Granted>, script: &mut Script<'_>) -> Self {
        const USUAL: [u16; 13] =
            [0x10, 0x18, 0x10, 0x18, 0x11, 0x02, 0x12, 0x04, 0x14, 0x30, 0x01, 0xc2, 0x00];
        let flags = match script.below(16) {
            usual @ 0..13 => USUAL[usual],
            _ => script.u16(),
        };
        let flags = TcpFlags::from_bits(flags);
        let seq = flow.near(script, flow.next);
        let ack = flow.near(script, flow.sent);
        let window = match script.below(8) {
            0..=2 => 30_000,
            3 => 0,
            4 => 1,
            5 => u16::MAX,
            _ => script.u16(),
        };
        let len = match script.below(8) {
            0..=2 => 0,
            3 => usize::from(script.u8()) % 4,
            4 => usize::from(script.u8()),
            5 => 1_000 + usize::from(script.u8()),
            6 => usize::from(script.u16()) % 1_461,
            _ => usize::from(script.u16()) % 60_000,
        };
        let urgent = if flags.contains(TcpFlags::URG) { script.u16() } else { 0 };
        let options = options(flow, cookie, flags.contains(TcpFlags::SYN), script);
        let begins = seq + u32::from(flags.contains(TcpFlags::SYN));
        let text = text::text(Speaker::Peer, begins, len);
        Self { seq, ack, flags, window, urgent, options, text }
    }

    /// Makes a segment of a stream differ from the others: in its text, its position, or another
    /// field.
    pub(super) fn disturb(&mut self, how: usize, script: &mut Script<'_>) {
        match how {
            0 => self.flags |= TcpFlags::PSH,
            1 => (self.flags, self.urgent) = (self.flags | TcpFlags::URG, script.u16()),
            2 => self.flags |= TcpFlags::FIN,
            3 => self.flags |= TcpFlags::RST,
            4 => self.move_text(self.seq - u32::from(script.u16() % 3_000), 1_000),
            5 => self.move_text(self.seq + u32::from(script.u16() % 3_000), 1_000),
            6 => self.move_text(self.seq, usize::from(script.u16()) % 2_000),
            7 => self.ack = self.ack + script.u32() % 3 - 1,
            8 => self.window = script.u16(),
            9 => self.options.clear(),
            10 => self.options.extend(script.bytes(20)),
            _ => {}
        }
    }

    fn move_text(&mut self, seq: SeqNum, len: usize) {
        (self.seq, self.text) = (seq, text::text(Speaker::Peer, seq, len));
    }

    /// Number after its last.
    pub(super) fn end(&self) -> SeqNum {
        self.seq + self.text.len() as u32 + self.flags.sequence_len()
    }

    /// The segment after an IP header.
    pub(super) fn emit(&self, flow: &Flow, flaw: Flaw) -> Vec<u8> {
        let mut options = self.options.clone();
        options.truncate(40);
        options.resize(options.len().next_multiple_of(4), 0);
        let words =
            match flaw {
                // More words would change its text.
                Flaw::DataOffset(words) if words % 16 < 5 || self.text.is_empty() => {
                    if words % 16 < 5 { words % 16 } else { 15 }
                }
                _ => (TcpHeader::LEN + options.len()) as u8 / 4,
            };
        let mut bytes = Vec::with_capacity(TcpHeader::MAX_LEN + self.text.len());
        bytes.extend(flow.own.port.to_be_bytes());
        bytes.extend(flow.host.port.to_be_bytes());
        bytes.extend(self.seq.raw().to_be_bytes());
        bytes.extend(self.ack.raw().to_be_bytes());
        bytes.extend((u16::from(words) << 12 | self.flags.bits()).to_be_bytes());
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(self.urgent.to_be_bytes());
        bytes.extend(options);
        bytes.extend(&self.text);
        if let Flaw::Cut(len) = flaw {
            bytes.truncate(usize::from(len));
        }
        let (src, dst, len) = (flow.own.addr, flow.host.addr, bytes.len() as u32);
        let sum = Sum::pseudo_header(src, dst, Protocol::TCP.0, len).add_bytes(&bytes);
        let wrong = u16::from(flaw == Flaw::Checksum);
        if let Some(field) = bytes.get_mut(TcpHeader::CHECKSUM_OFFSET..TcpHeader::LEN - 2) {
            field.copy_from_slice(&(sum.finish() ^ wrong).to_be_bytes());
        }
        bytes
    }
}

fn timestamps(val: u32, ecr: u32) -> Vec<u8> {
    let mut bytes = vec![1, 1, 8, 10];
    bytes.extend(val.to_be_bytes());
    bytes.extend(ecr.to_be_bytes());
    bytes
}

/// MSS 1,000, SACK, timestamps, a shift of 3.
fn syn_options() -> Vec<u8> {
    let mut bytes = vec![2, 4, 0x03, 0xe8, 4, 2, 1, 3, 3, 3];
    bytes.extend([8, 10, 0, 0, 0, 77, 0, 0, 0, 0]);
    bytes
}

fn options(flow: &Flow, cookie: Option<Granted>, syn: bool, script: &mut Script<'_>) -> Vec<u8> {
    let chosen = script.u8();
    let mut bytes = Vec::new();
    if chosen & 1 == 0 {
        bytes.extend(near_timestamps(flow, script));
    }
    if chosen & 2 != 0 {
        bytes.extend(sack(flow, script));
    }
    if chosen & 4 != 0 || syn && chosen & 8 == 0 {
        let mss = script.one_of(&[1_000_u16, 1_460, 536, 0, 1, 48, 65_535]);
        bytes.extend([2, 4]);
        bytes.extend(mss.to_be_bytes());
        bytes.extend([3, 3, script.u8() % 16, 4, 2]);
    }
    if chosen & 16 != 0 {
        bytes.extend(fast_open(cookie, script));
    }
    if chosen & 32 != 0 {
        bytes.extend(script.bytes(40));
    }
    bytes
}

fn near_timestamps(flow: &Flow, script: &mut Script<'_>) -> Vec<u8> {
    let near = |script: &mut Script<'_>| match script.below(8) {
        0..=3 => 0,
        4 => 1,
        5 => u32::MAX,
        6 => u32::from(script.u8()).wrapping_sub(128),
        _ => script.u32(),
    };
    match flow.stamps {
        Some(known) => {
            let (val, ecr) = (near(script), near(script));
            timestamps(known.ecr.wrapping_add(1).wrapping_add(val), known.val.wrapping_add(ecr))
        }
        None if script.rarely(4) => timestamps(script.u32(), script.u32()),
        None => Vec::new(),
    }
}

/// Blocks of the host's data, or nearly so.
fn sack(flow: &Flow, script: &mut Script<'_>) -> Vec<u8> {
    let blocks = 1 + script.below(4);
    let mut bytes = vec![5, 2 + 8 * blocks as u8];
    for _ in 0..blocks {
        let left = flow.near(script, flow.last);
        let right = match script.below(3) {
            0 => left + u32::from(script.u16() % 2_000),
            _ => flow.near(script, flow.sent),
        };
        bytes.extend(left.raw().to_be_bytes());
        bytes.extend(right.raw().to_be_bytes());
    }
    bytes
}

/// A request, the granted cookie, or another.
fn fast_open(cookie: Option<Granted>, script: &mut Script<'_>) -> Vec<u8> {
    let mut cookie = match (script.below(4), cookie) {
        (1 | 2, Some(granted)) => granted.option.cookie().to_vec(),
        (3, _) => script.bytes(16).to_vec(),
        _ => Vec::new(),
    };
    if let Some(last) = cookie.last_mut().filter(|_| script.rarely(6)) {
        *last ^= 1;
    }
    let mut bytes = if script.rarely(4) {
        vec![254, 4 + cookie.len() as u8, 0xf9, 0x89]
    } else {
        vec![34, 2 + cookie.len() as u8]
    };
    bytes.extend(cookie);
    bytes
}
