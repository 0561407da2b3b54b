//! ARP for IPv4 over Ethernet (RFC 826).

use core::net::Ipv4Addr;

use crate::cursor::{Reader, Writer};
use crate::{EtherType, MacAddress, ParseError};

/// Operation of an ARP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArpOperation {
    /// Requests the owner of the target address. (1)
    Request,
    /// Announces that the sender has the sender address. (2)
    Reply,
}

/// An ARP packet, which maps an IPv4 address to a MAC address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArpPacket {
    /// Operation (`ar$op`).
    pub operation: ArpOperation,
    /// The sender's link-layer address.
    pub sender_mac: MacAddress,
    /// The sender's address; unspecified in a probe (RFC 5227 2.1).
    pub sender_ip: Ipv4Addr,
    /// The target's link-layer address; meaningless in a request.
    pub target_mac: MacAddress,
    /// Requested address in a request; in a reply, that of the requester.
    pub target_ip: Ipv4Addr,
}

const ETHERNET: u16 = 1;

impl ArpPacket {
    /// Length of a packet in bytes.
    pub const LEN: usize = 28;

    /// Parses the packet at the front of `bytes`; what follows is the frame's padding.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut fields = Reader(bytes);
        let (hardware, protocol) = (fields.u16()?, fields.u16()?);
        if hardware != ETHERNET || protocol != EtherType::IPV4.0 {
            return Err(ParseError::UnknownType);
        }
        if fields.array()? != [6, 4] {
            return Err(ParseError::BadLength);
        }
        let operation = match fields.u16()? {
            1 => ArpOperation::Request,
            2 => ArpOperation::Reply,
            _ => return Err(ParseError::UnknownType),
        };
        Ok(Self {
            operation,
            sender_mac: MacAddress(fields.array()?),
            sender_ip: Ipv4Addr::from(fields.array::<4>()?),
            target_mac: MacAddress(fields.array()?),
            target_ip: Ipv4Addr::from(fields.array::<4>()?),
        })
    }

    /// Returns the packet's bytes, which follow an Ethernet header.
    pub fn emit(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let mut fields = Writer(&mut bytes);
        fields.u16(ETHERNET);
        fields.u16(EtherType::IPV4.0);
        fields.bytes(&[6, 4]);
        fields.u16(match self.operation {
            ArpOperation::Request => 1,
            ArpOperation::Reply => 2,
        });
        fields.bytes(&self.sender_mac.0);
        fields.bytes(&self.sender_ip.octets());
        fields.bytes(&self.target_mac.0);
        fields.bytes(&self.target_ip.octets());
        bytes
    }
}

#[cfg(test)]
mod tests;
