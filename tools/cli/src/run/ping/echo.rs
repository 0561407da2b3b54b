//! Echo requests and replies as packets inside (RFC 792, RFC 4443 4).

use std::net::{IpAddr, Ipv6Addr};

use whimbrel_wire::{
    Address, Fragment, IcmpMessage, Icmpv6Message, IpHeader, Ipv4Header, Ipv6Header, Protocol,
};

/// An echo request, or a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::run) struct Echo<'a> {
    pub(in crate::run) kind: EchoKind,
    pub(in crate::run) from: Address,
    pub(in crate::run) to: Address,
    pub(in crate::run) identifier: u16,
    pub(in crate::run) sequence: u16,
    pub(in crate::run) data: &'a [u8],
    /// True if IPv4 must not cut its packet.
    pub(in crate::run) dont_fragment: bool,
    pub(in crate::run) hop_limit: u8,
}

/// Type of the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::run) enum EchoKind {
    Request,
    Reply,
}

impl<'a> Echo<'a> {
    /// The request that a whole packet is.
    pub(in crate::run) fn of_packet(packet: &'a [u8]) -> Option<Self> {
        let (ip, payload) = IpHeader::parse(packet).ok()?;
        let protocol = if ip.src.is_v4() { Protocol::ICMP } else { Protocol::ICMPV6 };
        if ip.protocol != protocol || ip.fragment.is_some() {
            return None;
        }
        let echo = Self::of_message(EchoKind::Request, payload, ip.src, ip.dst)?;
        Some(Self { dont_fragment: ip.dont_fragment, hop_limit: ip.hop_limit, ..echo })
    }

    /// The message of this kind that these bytes are. Their checksum was verified before.
    pub(in crate::run) fn of_message(
        kind: EchoKind,
        message: &'a [u8],
        from: Address,
        to: Address,
    ) -> Option<Self> {
        let (found, identifier, sequence, data) = match from.is_v4() {
            true => match IcmpMessage::parse_verified(message).ok()? {
                IcmpMessage::EchoRequest { identifier, sequence, data } => {
                    (EchoKind::Request, identifier, sequence, data)
                }
                IcmpMessage::EchoReply { identifier, sequence, data } => {
                    (EchoKind::Reply, identifier, sequence, data)
                }
                _ => return None,
            },
            false => match Icmpv6Message::parse_verified(message).ok()? {
                Icmpv6Message::EchoRequest { identifier, sequence, data } => {
                    (EchoKind::Request, identifier, sequence, data)
                }
                Icmpv6Message::EchoReply { identifier, sequence, data } => {
                    (EchoKind::Reply, identifier, sequence, data)
                }
                _ => return None,
            },
        };
        let (dont_fragment, hop_limit) = (false, HOP_LIMIT);
        (found == kind && from.is_v4() == to.is_v4()).then_some(Self {
            kind,
            from,
            to,
            identifier,
            sequence,
            data,
            dont_fragment,
            hop_limit,
        })
    }

    /// The message, with its checksum.
    pub(in crate::run) fn message(&self) -> Vec<u8> {
        let Self { kind, from, to, identifier, sequence, data, .. } = *self;
        let mut message = vec![0; IcmpMessage::HEADER_LEN + data.len()];
        match (kind, from.is_v4()) {
            (EchoKind::Request, true) => {
                IcmpMessage::EchoRequest { identifier, sequence, data }.emit(&mut message)
            }
            (EchoKind::Reply, true) => {
                IcmpMessage::EchoReply { identifier, sequence, data }.emit(&mut message)
            }
            (EchoKind::Request, false) => Icmpv6Message::EchoRequest { identifier, sequence, data }
                .emit(v6(from), v6(to), &mut message),
            (EchoKind::Reply, false) => Icmpv6Message::EchoReply { identifier, sequence, data }
                .emit(v6(from), v6(to), &mut message),
        };
        message
    }
}

/// The packet of a message, or its fragments where it is longer than a link takes (RFC 791 3.2, RFC 8200
/// 4.5).
pub(in crate::run) struct Fragments {
    ends: (Address, Address),
    message: Vec<u8>,
    /// Bytes of the message in a packet at most: all, or a multiple of 8.
    piece: usize,
    at: usize,
    identification: u32,
}

impl Fragments {
    /// Cuts the message into packets of at most `mtu` bytes.
    pub(in crate::run) fn of(echo: &Echo<'_>, mtu: u16, identification: u32) -> Self {
        let (message, is_v4) = (echo.message(), echo.from.is_v4());
        let header = if is_v4 { Ipv4Header::LEN } else { Ipv6Header::LEN };
        let room = usize::from(mtu).saturating_sub(header);
        let cut = if is_v4 { room } else { room.saturating_sub(Fragment::HEADER_LEN) };
        let piece = if message.len() <= room { room } else { (cut & !7).max(8) };
        Self { ends: (echo.from, echo.to), message, piece, at: 0, identification }
    }
}

impl Iterator for Fragments {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let (at, whole) = (self.at, self.message.len());
        let data = self.message.get(at..whole.min(at + self.piece)).filter(|it| !it.is_empty())?;
        self.at += data.len();
        let offset = u16::try_from(at).ok()?;
        let fragment =
            Fragment { identification: self.identification, offset, more: self.at < whole };
        let fragment = (whole > self.piece).then_some(fragment);
        let (from, to) = (self.ends.0.to_ip(), self.ends.1.to_ip());
        let mut packet = match (from, to) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let header = Ipv4Header::new(src, dst, Protocol::ICMP, data.len());
                let identification = self.identification as u16;
                let dont_fragment = fragment.is_none();
                let mut packet = vec![0; Ipv4Header::LEN];
                Ipv4Header { identification, dont_fragment, fragment, ..header }.emit(&mut packet);
                packet
            }
            (src, dst) => {
                let (mut packet, cut) = (vec![0; Ipv6Header::LEN], fragment.is_some());
                let extension = if cut { Fragment::HEADER_LEN } else { 0 };
                let protocol = if cut { Protocol::FRAGMENT } else { Protocol::ICMPV6 };
                let (src, dst) = (v6(Address::from(src)), v6(Address::from(dst)));
                Ipv6Header::new(src, dst, protocol, extension + data.len()).emit(&mut packet);
                if let Some(fragment) = fragment {
                    packet.extend(fragment.emit(Protocol::ICMPV6));
                }
                packet
            }
        };
        packet.extend_from_slice(data);
        Some(packet)
    }
}

/// Of messages without a packet.
pub(in crate::run) const HOP_LIMIT: u8 = 64;

fn v6(addr: Address) -> Ipv6Addr {
    Ipv6Addr::from(*addr.as_bytes())
}
