//! A TCP segment as a capture shows it: maybe without its end, never trusted.

use whimbrel_link::reader::Packet;
use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Address, Endpoint, SeqNum};

/// The fields of a captured segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    /// Number of its frame in the capture, from 1.
    pub(crate) frame: u64,
    /// Time, nanoseconds since 1970.
    pub(crate) at: u64,
    /// Sender and receiver.
    pub(crate) ends: [Endpoint; 2],
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    pub(crate) flags: TcpFlags,
    /// The field of the header, unscaled.
    pub(crate) window: u16,
    /// Bytes of text, also of those that were not captured.
    pub(crate) text: u32,
    /// Bytes of the whole IP packet.
    pub(crate) packet: u32,
    /// IPv4's identification, if it is not 0.
    pub(crate) ip_id: Option<u16>,
    pub(crate) ttl: u8,
    /// TSval and TSecr.
    pub(crate) timestamps: Option<[u32; 2]>,
    pub(crate) sack: SackRanges,
    pub(crate) offer: Offer,
}

/// SACK blocks, at most four (RFC 2018 3).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct SackRanges {
    blocks: [(SeqNum, SeqNum); 4],
    count: u8,
}

impl SackRanges {
    /// First and last-plus-one number of each block.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SeqNum, SeqNum)> + '_ {
        self.blocks.iter().take(self.count.into()).copied()
    }

    fn push(&mut self, block: (SeqNum, SeqNum)) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.count)) {
            *place = block;
            self.count = self.count.saturating_add(1);
        }
    }
}

/// Options that a SYN offers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Offer {
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    /// True if the capture ends before the options do.
    pub(crate) is_cut: bool,
}

impl Segment {
    /// Reads a packet; `None` if it is no whole TCP header.
    pub(crate) fn read(frame: u64, packet: &Packet<'_>) -> Option<Self> {
        let bytes = packet.link_type.ip_packet(packet.bytes)?;
        let ip = Ip::read(bytes)?;
        let tcp = bytes.get(ip.header..)?;
        let (fixed, _) = tcp.split_first_chunk::<20>()?;
        let [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, offset, bits, w0, w1, ..] = *fixed;
        let header = usize::from(offset >> 4) * 4;
        let text = ip.payload.checked_sub(header as u32).filter(|_| header >= 20)?;
        let mut segment = Self {
            frame,
            at: packet.at,
            ends: [
                Endpoint::new(ip.addrs[0], u16::from_be_bytes([s0, s1])),
                Endpoint::new(ip.addrs[1], u16::from_be_bytes([d0, d1])),
            ],
            seq: SeqNum::new(u32::from_be_bytes([q0, q1, q2, q3])),
            ack: SeqNum::new(u32::from_be_bytes([a0, a1, a2, a3])),
            flags: TcpFlags::from_bits(u16::from_be_bytes([offset, bits])),
            window: u16::from_be_bytes([w0, w1]),
            text,
            packet: ip.total,
            ip_id: ip.id,
            ttl: ip.ttl,
            timestamps: None,
            sack: SackRanges::default(),
            offer: Offer::default(),
        };
        segment.offer.is_cut = tcp.len() < header;
        segment.read_options(tcp.get(20..tcp.len().min(header)).unwrap_or_default());
        Some(segment)
    }

    /// True if a packet is of TCP, and the capture ends before the fixed part of its header does.
    pub(crate) fn is_cut(packet: &Packet<'_>) -> bool {
        let bytes = packet.link_type.ip_packet(packet.bytes);
        let is_cut = |bytes: &[u8]| {
            Ip::read(bytes).is_some_and(|ip| ip.payload >= 20 && bytes.len() < ip.header + 20)
        };
        bytes.is_some_and(is_cut)
    }

    /// Reads the options, up to the first that is cut or invalid.
    fn read_options(&mut self, mut rest: &[u8]) {
        loop {
            rest = match rest {
                [1, rest @ ..] => rest,
                [kind @ 2..=u8::MAX, len @ 2..=u8::MAX, ..] => {
                    let Some((option, behind)) = rest.split_at_checked(usize::from(*len)) else {
                        return;
                    };
                    self.read_option(*kind, option.get(2..).unwrap_or_default());
                    behind
                }
                _ => return,
            };
        }
    }

    fn read_option(&mut self, kind: u8, body: &[u8]) {
        let word = |at: usize| body.get(at..)?.first_chunk().copied().map(u32::from_be_bytes);
        match (kind, body) {
            (2, [high, low]) => self.offer.mss = Some(u16::from_be_bytes([*high, *low])),
            // RFC 7323 2.3: a larger shift counts as 14.
            (3, [shift]) => self.offer.scale = Some((*shift).min(14)),
            (4, []) => self.offer.sack = true,
            (5, _) => {
                let blocks =
                    (0..body.len() / 8).map(|block| (word(block * 8), word(block * 8 + 4)));
                for (start, end) in blocks.filter_map(|(start, end)| start.zip(end)) {
                    self.sack.push((SeqNum::new(start), SeqNum::new(end)));
                }
            }
            (8, _) => {
                self.timestamps = word(0).zip(word(4)).map(|(val, ecr)| [val, ecr]);
                self.offer.timestamps = true;
            }
            _ => {}
        }
    }

    /// Number after the segment.
    pub(crate) fn end(&self) -> SeqNum {
        self.seq + self.text + self.flags.sequence_len()
    }

    /// True if it carries neither text nor SYN, FIN or RST.
    pub(crate) fn is_pure_ack(&self) -> bool {
        let others = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
        self.text == 0 && !self.flags.intersects(others) && self.flags.is_ack()
    }
}

/// Fields of an IP header.
struct Ip {
    header: usize,
    /// Bytes behind the header, by its own count.
    payload: u32,
    total: u32,
    addrs: [Address; 2],
    id: Option<u16>,
    ttl: u8,
}

impl Ip {
    fn read(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? >> 4 {
            4 => Self::read_v4(bytes),
            6 => Self::read_v6(bytes),
            _ => None,
        }
    }

    fn read_v4(bytes: &[u8]) -> Option<Self> {
        let (fixed, _) = bytes.split_first_chunk::<20>()?;
        let [first, _, t0, t1, i0, i1, f0, f1, ttl, protocol, _, _, a, b, c, d, e, f, g, h] =
            *fixed;
        let header = usize::from(first & 0x0f) * 4;
        // Fragments but the first have no TCP header, and the first has not all of its text.
        if protocol != TCP || header < 20 || u16::from_be_bytes([f0 & 0x3f, f1]) != 0 {
            return None;
        }
        // A capture at the sender may be of before the card has set the length (RFC 791: 0).
        let total = match u16::from_be_bytes([t0, t1]) {
            0 => u32::try_from(bytes.len()).ok()?,
            total => total.into(),
        };
        let id = Some(u16::from_be_bytes([i0, i1])).filter(|id| *id != 0);
        Some(Self {
            header,
            payload: total.checked_sub(header as u32)?,
            total,
            addrs: [Address::from_v4_bytes([a, b, c, d]), Address::from_v4_bytes([e, f, g, h])],
            id,
            ttl,
        })
    }

    fn read_v6(bytes: &[u8]) -> Option<Self> {
        let (fixed, _) = bytes.split_first_chunk::<40>()?;
        let [_, _, _, _, p0, p1, mut next, ttl, ..] = *fixed;
        let address = |at: usize| {
            let bytes: [u8; 16] = *fixed.get(at..)?.first_chunk()?;
            Some(Address::from(std::net::Ipv6Addr::from(bytes)))
        };
        let total = u32::from(u16::from_be_bytes([p0, p1])) + 40;
        let mut header = 40;
        // RFC 8200 4.1: hop-by-hop, routing and destination options, each at most twice.
        for _ in 0..6 {
            if !matches!(next, 0 | 43 | 60) {
                break;
            }
            let [after, len] = *bytes.get(header..)?.first_chunk()?;
            next = after;
            header += (usize::from(len) + 1) * 8;
        }
        Some(Self {
            header,
            payload: total.checked_sub(header as u32).filter(|_| next == TCP)?,
            total,
            addrs: [address(8)?, address(24)?],
            id: None,
            ttl,
        })
    }
}

const TCP: u8 = 6;
