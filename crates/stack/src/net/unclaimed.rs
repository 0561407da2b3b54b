//! Packets that nothing of this host takes, kept for an application, and packets of its own that leave
//! as they are.

use alloc::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use whimbrel_base::packet::{RxChecksum, SegMeta, TxChecksum, TxSegment};
use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{IpHeader, Ipv6Header, Protocol, Sum};

use super::Net;
use crate::RxFrame;
use crate::error::InjectError;
use crate::ip::FrameDrop;
use crate::net::replies::PendingReply;

/// Packets that nothing here took, for the application that asks.
#[derive(Default, Debug)]
pub(crate) struct Unclaimed {
    /// The most that may wait; 0: none are kept.
    most: usize,
    packets: VecDeque<Bytes>,
}

impl Net {
    /// Keeps up to `most` packets that nothing here takes from now on.
    pub(crate) fn keep_unclaimed(&mut self, most: usize) {
        self.unclaimed.most = most;
        self.unclaimed.packets.truncate(most);
    }

    /// The next packet that nothing took.
    pub(crate) fn poll_unclaimed(&mut self) -> Option<Bytes> {
        self.unclaimed.packets.pop_front()
    }

    /// Queues an IP packet that is sent unchanged.
    pub(crate) fn inject(&mut self, packet: Bytes) -> Result<(), InjectError> {
        let mtu = self.ip.capabilities.mtu;
        if packet.len() > mtu.into() {
            return Err(InjectError::TooLong { len: packet.len(), mtu });
        }
        let (ip, _) = IpHeader::parse(&packet).map_err(|_| InjectError::Header)?;
        if length_of(&packet) != Some(packet.len()) {
            return Err(InjectError::Header);
        }
        for addr in [ip.src, ip.dst] {
            // RFC 1122 3.2.1.3 (g): "Addresses of this form MUST NOT appear outside a host."
            if addr.to_ip().is_loopback() {
                return Err(InjectError::Loopback(addr));
            }
        }
        if self.replies.push(PendingReply::Packet(packet)) {
            Ok(())
        } else {
            Err(InjectError::Full)
        }
    }

    /// True if an application wants a frame that was refused for this reason, and has it now.
    pub(crate) fn claim(&mut self, frame: &RxFrame<'_>, reason: FrameDrop) -> bool {
        let wanted = matches!(
            reason,
            FrameDrop::OtherHost
                | FrameDrop::Protocol
                | FrameDrop::UdpPort
                | FrameDrop::IcmpNoSocket
        );
        if !wanted || self.unclaimed.most == 0 {
            return false;
        }
        let room = self.unclaimed.packets.len() < self.unclaimed.most;
        match whole(frame).filter(|_| room) {
            Some(packet) => {
                self.unclaimed.packets.push_back(packet);
                self.ip.counters.unclaimed += 1;
                self.ip.counters.in_delivers += 1;
            }
            None => {
                self.ip.counters.unclaimed_dropped += 1;
                self.ip.counters.drop_frame(reason);
            }
        }
        true
    }

    /// Writes a packet that was injected.
    #[inline(never)]
    pub(crate) fn write_packet(&mut self, packet: &Bytes, tx: &mut TxSegment) -> bool {
        // The link became narrower since it was taken.
        if packet.len() > self.ip.capabilities.mtu.into() {
            return false;
        }
        let header_len = match packet.first() {
            Some(first) if first >> 4 == 4 => usize::from(first & 0xf) * 4,
            _ => Ipv6Header::LEN,
        };
        let at = self.ip.link_header_len();
        let (Some(header), Some(room)) =
            (packet.get(..header_len), tx.header_room().get_mut(at..at + header_len))
        else {
            return false;
        };
        room.copy_from_slice(header);
        tx.set_header_len(at + header_len);
        tx.transport_offset = (at + header_len) as u8;
        tx.checksum = TxChecksum::Done;
        tx.gso_size = 0;
        self.ip.counters.out_requests += 1;
        tx.payload.push(packet.slice(header_len..)).is_ok()
    }
}

/// The packet of a frame, without what pads it, and with the checksum that the device left to others. `None`
/// if it stands for several, or cannot be finished.
fn whole(frame: &RxFrame<'_>) -> Option<Bytes> {
    let SegMeta { segs, checksum, .. } = frame.meta;
    let bytes = frame.bytes.get(..length_of(frame.bytes)?)?;
    if segs > 1 {
        return None;
    }
    if checksum != RxChecksum::Partial {
        return Some(Bytes::copy_from_slice(bytes));
    }
    let (ip, payload) = IpHeader::parse(bytes).ok()?;
    let field = match ip.protocol {
        Protocol::TCP => TcpHeader::CHECKSUM_OFFSET,
        Protocol::UDP => UDP_CHECKSUM,
        _ => return None,
    };
    let mut packet = BytesMut::from(bytes);
    let start = bytes.len() - payload.len();
    let transport = packet.get_mut(start..)?;
    transport.get_mut(field..field + 2)?.fill(0);
    let len = transport.len() as u32;
    let sum = Sum::pseudo_header(ip.src, ip.dst, ip.protocol.0, len).add_bytes(transport).finish();
    // RFC 768: "If the computed checksum is zero, it is transmitted as all ones".
    let sum = if ip.protocol == Protocol::UDP && sum == 0 { u16::MAX } else { sum };
    transport.get_mut(field..field + 2)?.copy_from_slice(&sum.to_be_bytes());
    Some(packet.freeze())
}

/// The length field of an IP packet, bytes.
fn length_of(packet: &[u8]) -> Option<usize> {
    let field =
        |at: usize| Some(usize::from(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?)));
    match packet.first()? >> 4 {
        4 => field(2),
        6 => Some(field(4)? + Ipv6Header::LEN),
        _ => None,
    }
}

/// Offset of the checksum in a UDP header, bytes.
const UDP_CHECKSUM: usize = 6;
