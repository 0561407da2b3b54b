//! The new format: sections of blocks, each with its type and length (draft-ietf-opsawg-pcapng).

use alloc::vec::Vec;

use super::bytes::{ByteReader, Order};
use super::pcap::MOST;
use super::{Accepted, Block, Fault, Packet, link_type};
use crate::pcapng::{Direction, LinkType};

/// State of the file after the blocks so far.
#[derive(Default, Debug)]
pub(super) struct Reader {
    /// The byte order of this section, once it is known.
    order: Option<Order>,
    interfaces: Vec<Interface>,
    /// Packets dropped at interfaces of former sections.
    dropped_before: u64,
    link_type: Option<LinkType>,
    /// Number of skipped packets, and link type of the first.
    unknown: Option<(u64, u32)>,
    /// The time of the last packet.
    last: u64,
}

/// Description of an interface.
#[derive(Clone, Copy, Debug)]
struct Interface {
    /// Link layer of its frames, or the number of an unknown one. Only its packets need it.
    link_type: Result<LinkType, Fault>,
    /// Most captured bytes of a packet.
    snap: u32,
    /// Units of its time stamps in a second.
    units: u128,
    /// Seconds to add to its time stamps.
    lag: i64,
    /// Packets dropped in front of the capture, by its latest statistics.
    dropped: u64,
}

impl Reader {
    pub(super) const fn link_type(&self) -> Option<LinkType> {
        self.link_type
    }

    pub(super) const fn unknown(&self) -> Option<(u64, u32)> {
        self.unknown
    }

    /// Packets dropped in front of the capture, by all statistics so far.
    pub(super) fn dropped(&self) -> u64 {
        let dropped = self.interfaces.iter().map(|it| it.dropped);
        dropped.fold(self.dropped_before, u64::saturating_add)
    }

    /// Reads the block at the start of `rest`.
    pub(super) fn block<'a>(
        &mut self,
        rest: &'a [u8],
        accepted: Accepted,
    ) -> Result<Block<'a>, Fault> {
        let cut = |len: usize| Fault::Cut { missing: len.saturating_sub(rest.len()) };
        let little = ByteReader::new(rest, Order::Little);
        let is_section = little.u32_at(0) == Some(SECTION_HEADER);
        if is_section {
            self.order = Some(byte_order(little)?);
            self.dropped_before = self.dropped();
            self.interfaces.clear();
        }
        // The first block is a section header, by which the format was recognised.
        let order = self.order.ok_or(Fault::Magic)?;
        let numbers = ByteReader::new(rest, order);
        let head = numbers.u32_at(0).zip(numbers.u32_at(4)).ok_or_else(|| cut(FRAME))?;
        let (kind, len) = head;
        if len % 4 != 0 || (len as usize) < FRAME {
            return Err(Fault::Length(len));
        }
        if len > MOST_OF_BLOCK {
            return Err(Fault::Block(len));
        }
        let len = len as usize;
        let last = numbers.u32_at(len - 4).ok_or_else(|| cut(len))?;
        if last as usize != len {
            return Err(Fault::Lengths { first: len as u32, last });
        }
        let body = rest.get(8..len - 4).unwrap_or_default();
        let body = ByteReader::new(body, order);
        let packet = match kind {
            SECTION_HEADER => self.section(body).map(|()| None)?,
            INTERFACE_DESCRIPTION => self.interface(body).map(|()| None)?,
            SIMPLE_PACKET => {
                let packet = self.simple(body, accepted);
                self.skip_unknown(packet, accepted)?
            }
            ENHANCED_PACKET => {
                let packet = self.enhanced(body, accepted);
                self.skip_unknown(packet, accepted)?
            }
            INTERFACE_STATISTICS => {
                self.statistics(body);
                None
            }
            _ => None,
        };
        self.last = packet.map_or(self.last, |packet| packet.at);
        Ok(Block { len, packet })
    }

    fn section(&self, body: ByteReader<'_>) -> Result<(), Fault> {
        match body.u16_at(4) {
            Some(1) => Ok(()),
            Some(version) => Err(Fault::Version(version)),
            None => Err(short(body, "version")),
        }
    }

    fn interface(&mut self, body: ByteReader<'_>) -> Result<(), Fault> {
        let fixed = body.u16_at(0).zip(body.u32_at(4)).ok_or_else(|| short(body, "link type"))?;
        let mut interface = Interface {
            link_type: link_type(fixed.0.into()),
            snap: if fixed.1 == 0 { u32::MAX } else { fixed.1 },
            units: 1_000_000,
            lag: 0,
            dropped: 0,
        };
        for (code, value) in options(body.from(8)) {
            match (code, value.slice(0, 1)) {
                (IF_TSRESOL, Some(&[resolution])) => interface.units = units(resolution)?,
                (IF_TSOFFSET, _) => interface.lag = value.i64_at(0).unwrap_or(0),
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn enhanced<'a>(
        &mut self,
        body: ByteReader<'a>,
        accepted: Accepted,
    ) -> Result<Packet<'a>, Fault> {
        let number = |at| body.u32_at(at).ok_or_else(|| short(body, "fields"));
        let [interface, high, low] = [number(0)?, number(4)?, number(8)?];
        let [len, wire_len] = [number(12)?, number(16)?];
        let (interface, link_type) = self.described(interface, accepted)?;
        if len > MOST {
            return Err(Fault::Packet(len));
        }
        let len = len as usize;
        let bytes = body.slice(20, len).ok_or_else(|| short(body, "bytes of the packet"))?;
        let options = options(body.from(20 + len.next_multiple_of(4)));
        let flags = options.filter(|(code, _)| *code == EPB_FLAGS);
        let direction = flags.filter_map(|(_, value)| value.u32_at(0)).find_map(direction);
        let at = interface.nanoseconds(u64::from(high) << 32 | u64::from(low));
        Ok(Packet { at, direction, link_type, wire_len, bytes })
    }

    /// A packet of the first interface, without a time: it has that of the packet before it.
    fn simple<'a>(
        &mut self,
        body: ByteReader<'a>,
        accepted: Accepted,
    ) -> Result<Packet<'a>, Fault> {
        let wire_len = body.u32_at(0).ok_or_else(|| short(body, "length"))?;
        let (interface, link_type) = self.described(0, accepted)?;
        let len = wire_len.min(interface.snap);
        if len > MOST {
            return Err(Fault::Packet(len));
        }
        let bytes = body.slice(4, len as usize);
        let bytes = bytes.ok_or_else(|| short(body, "bytes of the packet"))?;
        Ok(Packet { at: self.last, direction: None, link_type, wire_len, bytes })
    }

    /// Counts a packet of an unknown link type instead of failing, where any is accepted.
    fn skip_unknown<'a>(
        &mut self,
        packet: Result<Packet<'a>, Fault>,
        accepted: Accepted,
    ) -> Result<Option<Packet<'a>>, Fault> {
        match packet {
            Err(Fault::LinkType(number)) if accepted == Accepted::All => {
                let (count, first) = self.unknown.unwrap_or((0, number));
                self.unknown = Some((count + 1, first));
                Ok(None)
            }
            packet => packet.map(Some),
        }
    }

    /// Notes an interface's count of dropped packets. Faulty statistics spoil no packet.
    fn statistics(&mut self, body: ByteReader<'_>) {
        let number = body.u32_at(0).and_then(|it| usize::try_from(it).ok());
        let Some(interface) = number.and_then(|it| self.interfaces.get_mut(it)) else { return };
        let counts =
            options(body.from(12)).filter(|(code, _)| matches!(*code, ISB_IFDROP | ISB_OSDROP));
        let counts = counts.filter_map(|(_, value)| value.i64_at(0)).map(i64::cast_unsigned);
        interface.dropped = counts.fold(0, u64::saturating_add);
    }

    /// Interface of a packet and its link layer, if that is accepted behind those before it.
    fn described(
        &mut self,
        number: u32,
        accepted: Accepted,
    ) -> Result<(Interface, LinkType), Fault> {
        let described = self.interfaces.len();
        let interface = self.interfaces.get(number as usize);
        let interface = *interface.ok_or(Fault::Interface { interface: number, described })?;
        let link_type = interface.link_type?;
        accepted.check(link_type, self.link_type)?;
        self.link_type.get_or_insert(link_type);
        Ok((interface, link_type))
    }
}

impl Interface {
    /// Time since 1970, clamped to the range of its type.
    fn nanoseconds(&self, stamp: u64) -> u64 {
        let nanos = u128::from(stamp) * NANOSECONDS / self.units;
        let lag = i128::from(self.lag) * NANOSECONDS as i128;
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX).saturating_add(lag);
        u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
    }
}

/// Byte order of a section's numbers.
fn byte_order(section: ByteReader<'_>) -> Result<Order, Fault> {
    match section.u32_at(8) {
        Some(BYTE_ORDER_MAGIC) => Ok(Order::Little),
        Some(magic) if magic.swap_bytes() == BYTE_ORDER_MAGIC => Ok(Order::Big),
        Some(magic) => Err(Fault::ByteOrder(magic)),
        None => Err(Fault::Cut { missing: SECTION - section.len() }),
    }
}

/// Units per second: a power of 10, or of 2 with the highest bit.
fn units(resolution: u8) -> Result<u128, Fault> {
    let (base, power) =
        if resolution < 0x80 { (10u128, resolution) } else { (2, resolution & 0x7f) };
    base.checked_pow(power.into()).ok_or(Fault::Resolution(resolution))
}

/// Codes and values, as far as they are valid: a bad option spoils no packet.
fn options(mut rest: ByteReader<'_>) -> impl Iterator<Item = (u16, ByteReader<'_>)> {
    core::iter::from_fn(move || {
        let (code, len) = rest.u16_at(0).zip(rest.u16_at(2))?;
        let len = usize::from(len);
        let value = rest.within(4, len).filter(|_| code != 0)?;
        rest = rest.from(4 + len.next_multiple_of(4));
        Some((code, value))
    })
}

fn direction(flags: u32) -> Option<Direction> {
    match flags & 0b11 {
        1 => Some(Direction::In),
        2 => Some(Direction::Out),
        _ => None,
    }
}

fn short(body: ByteReader<'_>, what: &'static str) -> Fault {
    Fault::Short { what, len: body.len() }
}

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;
const EPB_FLAGS: u16 = 2;
/// Bytes of a block around its body, and those of the shortest section header.
const FRAME: usize = 12;
const SECTION: usize = 28;
/// The longest block, bytes: a reader that reads in pieces holds a whole one.
const MOST_OF_BLOCK: u32 = 16 << 20;
const NANOSECONDS: u128 = 1_000_000_000;
