//! Neighbour Discovery for IPv6 (RFC 4861): the link-layer addresses of neighbours, and the routers
//! of the link.
//!
//! Only valid messages become values: the checks of RFC 4861 6.1 and 7.1 are made here. Redirects
//! are refused as unknown: Whimbrel has one first hop per route.

use core::net::Ipv6Addr;

use crate::cursor::{Reader, Writer};
use crate::icmpv6::pseudo_header;
use crate::{MacAddress, ParseError};

/// A Neighbour Discovery message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NdpMessage<'a> {
    /// Type 133: requests advertisements of routers (RFC 4861 4.1).
    RouterSolicitation {
        /// The sender's link-layer address.
        source_link_layer: Option<MacAddress>,
    },
    /// Type 134 (RFC 4861 4.2).
    RouterAdvertisement(RouterAdvertisement<'a>),
    /// Type 135: requests the owner of the target address (RFC 4861 4.3).
    NeighborSolicitation {
        /// The requested address; never multicast.
        target: Ipv6Addr,
        /// The sender's link-layer address; absent in duplicate address detection.
        source_link_layer: Option<MacAddress>,
    },
    /// Type 136: announces the owner of the target address (RFC 4861 4.4).
    NeighborAdvertisement {
        /// The address in question; never multicast.
        target: Ipv6Addr,
        /// R, S and O.
        flags: NeighborFlags,
        /// The target's link-layer address.
        target_link_layer: Option<MacAddress>,
    },
}

/// The flags of a Neighbour Advertisement (RFC 4861 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NeighborFlags {
    /// R: the sender is a router.
    pub router: bool,
    /// S: the advertisement answers a solicitation.
    pub solicited: bool,
    /// O: it overrides a cached link-layer address.
    pub overrides: bool,
}

/// Advertisement of a router (RFC 4861 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterAdvertisement<'a> {
    /// Hop limit for sending; 0: unspecified.
    pub hop_limit: u8,
    /// M: addresses come from DHCPv6.
    pub managed: bool,
    /// O: other configuration comes from DHCPv6.
    pub other_config: bool,
    /// Seconds for which this is a default router; 0: it is not one.
    pub router_lifetime: u16,
    /// Milliseconds for which a neighbour counts as reachable; 0: unspecified.
    pub reachable_time: u32,
    /// Milliseconds between solicitations; 0: unspecified.
    pub retrans_timer: u32,
    /// Link-layer address, MTU, prefixes.
    pub options: NdpOptions<'a>,
}

/// A prefix of the link (RFC 4861 4.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixInformation {
    /// Number of leading bits of `prefix` that are valid, 0 ..= 255 as advertised; valid up to 128.
    pub prefix_len: u8,
    /// L: addresses of this prefix are on the link.
    pub on_link: bool,
    /// A: hosts may form addresses from it (RFC 4862).
    pub autonomous: bool,
    /// Seconds for which the prefix is on the link; 0xffff_ffff: for ever.
    pub valid_lifetime: u32,
    /// Seconds for which addresses formed from it are preferred.
    pub preferred_lifetime: u32,
    /// The prefix; bits beyond its length are ignored.
    pub prefix: Ipv6Addr,
}

/// An option of a Neighbour Discovery message (RFC 4861 4.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NdpOption {
    /// Type 1: the Ethernet address of the message's sender.
    SourceLinkLayer(MacAddress),
    /// Type 2: the Ethernet address of the target.
    TargetLinkLayer(MacAddress),
    /// Type 3: a prefix of addresses on this link.
    Prefix(PrefixInformation),
    /// Type 5, in bytes.
    Mtu(u32),
    /// Any other option, by its type. RFC 4861 4.2: "Receivers MUST silently ignore any options
    /// they do not recognize and continue processing the message."
    Other(u8),
}

/// The options of a message, in their order; every length has been checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NdpOptions<'a>(&'a [u8]);

/// Returns the group in which the owner of `target` receives solicitations.
///
/// RFC 4291 2.7.1: "A Solicited-Node multicast address is formed by taking the low-order 24 bits of
/// an address (unicast or anycast) and appending those bits to the prefix
/// FF02:0:0:0:0:1:FF00::/104".
pub const fn solicited_node(target: Ipv6Addr) -> Ipv6Addr {
    let low = target.to_bits() & 0x00ff_ffff;
    Ipv6Addr::from_bits(0xff02_0000_0000_0000_0000_0001_ff00_0000 | low)
}

impl<'a> NdpMessage<'a> {
    /// IP Hop Limit of every message, sent and received (RFC 4861 6.1 and 7.1).
    pub const HOP_LIMIT: u8 = 255;

    /// Parses a message of a packet from `src` to `dst`, whose checksum has been verified:
    /// [`NeighborDiscovery`](crate::Icmpv6Message::NeighborDiscovery) contains it.
    pub fn parse(
        src: Ipv6Addr,
        dst: Ipv6Addr,
        hop_limit: u8,
        message: &'a [u8],
    ) -> Result<Self, ParseError> {
        // RFC 4861 7.1.1: "The IP Hop Limit field has a value of 255, i.e., the packet could not
        // possibly have been forwarded by a router."
        if hop_limit != Self::HOP_LIMIT {
            return Err(ParseError::BadHopLimit);
        }
        let mut fields = Reader(message);
        let [icmp_type, code, _, _] = fields.array()?;
        if code != 0 {
            return Err(ParseError::UnknownType);
        }
        match icmp_type {
            ROUTER_SOLICITATION => parse_router_solicitation(src, fields),
            ROUTER_ADVERTISEMENT => parse_router_advertisement(src, fields),
            NEIGHBOR_SOLICITATION => parse_neighbor_solicitation(src, dst, fields),
            NEIGHBOR_ADVERTISEMENT => parse_neighbor_advertisement(dst, fields),
            _ => Err(ParseError::UnknownType),
        }
    }

    /// Returns the length of the message in bytes.
    pub fn wire_len(&self) -> usize {
        let (fixed, options) = match self {
            Self::RouterSolicitation { source_link_layer } => {
                (8, link_layer_len(source_link_layer))
            }
            Self::RouterAdvertisement(advertisement) => (16, advertisement.options.0.len()),
            Self::NeighborSolicitation { source_link_layer, .. } => {
                (24, link_layer_len(source_link_layer))
            }
            Self::NeighborAdvertisement { target_link_layer, .. } => {
                (24, link_layer_len(target_link_layer))
            }
        };
        options.saturating_add(fixed)
    }

    /// Writes the message with its checksum to the front of `buf`; returns its bytes. The packet
    /// goes from `src` to `dst` with [`NdpMessage::HOP_LIMIT`].
    ///
    /// # Panics
    /// If `buf` is shorter than [`NdpMessage::wire_len`].
    pub fn emit(&self, src: Ipv6Addr, dst: Ipv6Addr, buf: &mut [u8]) -> usize {
        let len = self.wire_len();
        let message = buf.split_at_mut_checked(len).expect("buffer shorter than what is sent").0;
        self.emit_fields(Writer(message));
        let checksum = pseudo_header(src, dst, len).add_bytes(message).finish();
        let (_, field) = message.split_at_mut(2);
        Writer(field).u16(checksum);
        len
    }

    /// Writes everything but the checksum, which is left 0.
    fn emit_fields(&self, mut fields: Writer<'_>) {
        match self {
            Self::RouterSolicitation { source_link_layer } => {
                fields.bytes(&[ROUTER_SOLICITATION, 0, 0, 0]);
                fields.u32(0);
                emit_link_layer(&mut fields, SOURCE_LINK_LAYER, source_link_layer);
            }
            Self::RouterAdvertisement(advertisement) => advertisement.emit_fields(fields),
            Self::NeighborSolicitation { target, source_link_layer } => {
                fields.bytes(&[NEIGHBOR_SOLICITATION, 0, 0, 0]);
                fields.u32(0);
                fields.bytes(&target.octets());
                emit_link_layer(&mut fields, SOURCE_LINK_LAYER, source_link_layer);
            }
            Self::NeighborAdvertisement { target, flags, target_link_layer } => {
                fields.bytes(&[NEIGHBOR_ADVERTISEMENT, 0, 0, 0]);
                fields.bytes(&[flags.to_byte(), 0, 0, 0]);
                fields.bytes(&target.octets());
                emit_link_layer(&mut fields, TARGET_LINK_LAYER, target_link_layer);
            }
        }
    }
}

impl NeighborFlags {
    const fn from_byte(byte: u8) -> Self {
        Self { router: byte & 0x80 != 0, solicited: byte & 0x40 != 0, overrides: byte & 0x20 != 0 }
    }

    const fn to_byte(self) -> u8 {
        (self.router as u8) << 7 | (self.solicited as u8) << 6 | (self.overrides as u8) << 5
    }
}

impl RouterAdvertisement<'_> {
    fn emit_fields(&self, mut fields: Writer<'_>) {
        let flags = u8::from(self.managed) << 7 | u8::from(self.other_config) << 6;
        fields.bytes(&[ROUTER_ADVERTISEMENT, 0, 0, 0, self.hop_limit, flags]);
        fields.u16(self.router_lifetime);
        fields.u32(self.reachable_time);
        fields.u32(self.retrans_timer);
        fields.bytes(self.options.0);
    }
}

impl PrefixInformation {
    /// Parses the option after its type and length.
    fn parse(mut fields: Reader<'_>) -> Result<Self, ParseError> {
        let [prefix_len, flags] = fields.array()?;
        let (valid_lifetime, preferred_lifetime) = (fields.u32()?, fields.u32()?);
        fields.u32()?;
        Ok(Self {
            prefix_len,
            on_link: flags & 0x80 != 0,
            autonomous: flags & 0x40 != 0,
            valid_lifetime,
            preferred_lifetime,
            prefix: Ipv6Addr::from(fields.array::<16>()?),
        })
    }
}

impl<'a> NdpOptions<'a> {
    /// Checks the options at the end of a message.
    fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let mut rest = Reader(bytes);
        while let [_, units, ..] = *rest.0 {
            // RFC 4861 4.6: "Nodes MUST silently discard an ND packet that contains an option with
            // length zero."
            if units == 0 {
                return Err(ParseError::BadOption);
            }
            rest.bytes(usize::from(units).saturating_mul(8))?;
        }
        if rest.0.is_empty() { Ok(Self(bytes)) } else { Err(ParseError::Truncated) }
    }

    fn source_link_layer(self) -> Option<MacAddress> {
        self.into_iter().find_map(|option| match option {
            NdpOption::SourceLinkLayer(mac) => Some(mac),
            _ => None,
        })
    }

    fn target_link_layer(self) -> Option<MacAddress> {
        self.into_iter().find_map(|option| match option {
            NdpOption::TargetLinkLayer(mac) => Some(mac),
            _ => None,
        })
    }
}

/// Yields each option; a message of 1280 bytes has at most 158.
#[derive(Clone, Copy, Debug)]
pub struct NdpOptionsIter<'a>(Reader<'a>);

impl<'a> IntoIterator for NdpOptions<'a> {
    type Item = NdpOption;
    type IntoIter = NdpOptionsIter<'a>;

    fn into_iter(self) -> NdpOptionsIter<'a> {
        NdpOptionsIter(Reader(self.0))
    }
}

impl Iterator for NdpOptionsIter<'_> {
    type Item = NdpOption;

    fn next(&mut self) -> Option<NdpOption> {
        let [kind, units] = self.0.array().ok()?;
        let body = self.0.bytes(usize::from(units).saturating_mul(8).saturating_sub(2)).ok()?;
        let mut body = Reader(body);
        let option = match kind {
            SOURCE_LINK_LAYER => body.array().map(MacAddress).map(NdpOption::SourceLinkLayer),
            TARGET_LINK_LAYER => body.array().map(MacAddress).map(NdpOption::TargetLinkLayer),
            PREFIX_INFORMATION => PrefixInformation::parse(body).map(NdpOption::Prefix),
            MTU => body.bytes(2).and_then(|_| body.u32()).map(NdpOption::Mtu),
            _ => Ok(NdpOption::Other(kind)),
        };
        Some(option.unwrap_or(NdpOption::Other(kind)))
    }
}

fn parse_router_solicitation<'a>(
    src: Ipv6Addr,
    mut fields: Reader<'a>,
) -> Result<NdpMessage<'a>, ParseError> {
    fields.u32()?;
    let source_link_layer = NdpOptions::parse(fields.0)?.source_link_layer();
    // RFC 4861 6.1.1: "If the IP source address is the unspecified address, there is no source
    // link-layer address option in the message."
    if src.is_unspecified() && source_link_layer.is_some() {
        return Err(ParseError::BadOption);
    }
    Ok(NdpMessage::RouterSolicitation { source_link_layer })
}

fn parse_router_advertisement<'a>(
    src: Ipv6Addr,
    mut fields: Reader<'a>,
) -> Result<NdpMessage<'a>, ParseError> {
    // RFC 4861 6.1.2: "IP Source Address is a link-local address."
    if !src.is_unicast_link_local() {
        return Err(ParseError::BadAddress);
    }
    let [hop_limit, flags] = fields.array()?;
    Ok(NdpMessage::RouterAdvertisement(RouterAdvertisement {
        hop_limit,
        managed: flags & 0x80 != 0,
        other_config: flags & 0x40 != 0,
        router_lifetime: fields.u16()?,
        reachable_time: fields.u32()?,
        retrans_timer: fields.u32()?,
        options: NdpOptions::parse(fields.0)?,
    }))
}

fn parse_neighbor_solicitation<'a>(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    mut fields: Reader<'a>,
) -> Result<NdpMessage<'a>, ParseError> {
    fields.u32()?;
    let target = parse_target(&mut fields)?;
    let source_link_layer = NdpOptions::parse(fields.0)?.source_link_layer();
    if src.is_unspecified() {
        // RFC 4861 7.1.1: "If the IP source address is the unspecified address, the IP destination
        // address is a solicited-node multicast address."
        if dst != solicited_node(dst) {
            return Err(ParseError::BadAddress);
        }
        // RFC 4861 7.1.1: "If the IP source address is the unspecified address, there is no source
        // link-layer address option in the message."
        if source_link_layer.is_some() {
            return Err(ParseError::BadOption);
        }
    }
    Ok(NdpMessage::NeighborSolicitation { target, source_link_layer })
}

fn parse_neighbor_advertisement<'a>(
    dst: Ipv6Addr,
    mut fields: Reader<'a>,
) -> Result<NdpMessage<'a>, ParseError> {
    let [flags, _, _, _] = fields.array()?;
    let flags = NeighborFlags::from_byte(flags);
    let target = parse_target(&mut fields)?;
    let target_link_layer = NdpOptions::parse(fields.0)?.target_link_layer();
    // RFC 4861 7.1.2: "If the IP Destination Address is a multicast address the Solicited flag is
    // zero."
    if dst.is_multicast() && flags.solicited {
        return Err(ParseError::BadAddress);
    }
    Ok(NdpMessage::NeighborAdvertisement { target, flags, target_link_layer })
}

/// Parses the target. RFC 4861 7.1.1 and 7.1.2: "Target Address is not a multicast address."
fn parse_target(fields: &mut Reader<'_>) -> Result<Ipv6Addr, ParseError> {
    let target = Ipv6Addr::from(fields.array::<16>()?);
    if target.is_multicast() { Err(ParseError::BadAddress) } else { Ok(target) }
}

fn link_layer_len(mac: &Option<MacAddress>) -> usize {
    if mac.is_some() { 8 } else { 0 }
}

fn emit_link_layer(fields: &mut Writer<'_>, kind: u8, mac: &Option<MacAddress>) {
    if let Some(mac) = mac {
        fields.bytes(&[kind, 1]);
        fields.bytes(&mac.0);
    }
}

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOR_SOLICITATION: u8 = 135;
const NEIGHBOR_ADVERTISEMENT: u8 = 136;

const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;
const PREFIX_INFORMATION: u8 = 3;
const MTU: u8 = 5;

#[cfg(test)]
mod tests;
