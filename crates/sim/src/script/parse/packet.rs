//! `<` and `>`: a packet.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Address, Endpoint};

use super::lexer::Cursor;
use super::{ParseError, icmp, options, skip_unsupported};
use crate::script::ast::{
    Ack, Action, Direction, Ecn, IpMarks, OptionList, Packet, PacketBody, PacketEnds, Seq,
    TcpPacket,
};

/// Reads a packet from its arrow on.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Action, ParseError> {
    let direction = if cursor.eat("<") { Direction::In } else { Direction::Out };
    if direction == Direction::Out {
        cursor.expect(">", "< or >")?;
    }
    let mut marks = IpMarks::default();
    while is_marks(cursor) {
        if let Some(unknown) = read_marks(cursor, &mut marks)? {
            return Ok(skip_unsupported(cursor, &unknown));
        }
    }
    // Some scripts quote before they name the error, some behind it.
    let is_quoted = cursor.sees("[") && !sees_ends(cursor);
    let quoted = if is_quoted { Some(icmp::read_quoted(cursor)?) } else { None };
    let ends = read_ends(cursor)?;
    let word = cursor.peek_word();
    if PROTOCOLS.contains(&word) {
        return Ok(skip_unsupported(cursor, word));
    }
    let body = match quoted {
        None if word != "icmp" => match read_segment(cursor)? {
            Ok(segment) => PacketBody::Tcp(segment),
            Err(unknown) => return Ok(skip_unsupported(cursor, &unknown)),
        },
        quoted => PacketBody::Icmp(icmp::read(cursor, quoted)?),
    };
    Ok(Action::Packet(Packet { direction, marks, ends, body }))
}

/// Whether `(…)` or `[…]` is next and holds marks, not a quoted segment or an address.
fn is_marks(cursor: &mut Cursor<'_>) -> bool {
    let mut inside = cursor.clone();
    (inside.eat("(") || inside.eat("["))
        && inside.peek().is_some_and(|c| c.is_ascii_lowercase())
        && !sees_ends(cursor)
        && inside.peek_word() != "tcp"
        && !PROTOCOLS.contains(&inside.peek_word())
}

/// The marks between brackets; gives back one that is not known.
fn read_marks(cursor: &mut Cursor<'_>, marks: &mut IpMarks) -> Result<Option<String>, ParseError> {
    let end = if cursor.eat("(") { ")" } else { "]" };
    if end == "]" {
        cursor.expect("[", "( or [")?;
    }
    loop {
        match cursor.word("a mark: ect0, ect1, ce, noecn, tos, ttl, …")? {
            "ect0" => marks.ecn = Some(Ecn::Ect0),
            "ect1" => marks.ecn = Some(Ecn::Ect1),
            "ect01" => marks.ecn = Some(Ecn::Ect0OrEct1),
            "ce" => marks.ecn = Some(Ecn::Ce),
            "noecn" => marks.ecn = Some(Ecn::NotEct),
            // `ecn ect0`
            "ecn" => continue,
            "tos" | "class" => marks.tos = Some(cursor.number("a traffic class, 0 to 255")?),
            "ttl" | "hlim" => marks.ttl = Some(cursor.number("a hop limit, 0 to 255")?),
            unknown => return Ok(Some(format!("the mark {unknown}"))),
        }
        if cursor.eat(end) {
            return Ok(None);
        }
        cursor.eat(",");
    }
}

/// Whether an address and port are next, or a port and an arrow.
fn sees_ends(cursor: &Cursor<'_>) -> bool {
    let mut ahead = cursor.clone();
    read_end(&mut ahead).is_some() && ahead.sees(">")
}

/// `from > to`, if that is next.
pub(super) fn read_ends(cursor: &mut Cursor<'_>) -> Result<Option<PacketEnds>, ParseError> {
    if !sees_ends(cursor) {
        return Ok(None);
    }
    let meaning = "an address and a port";
    let from = read_end(cursor).ok_or_else(|| cursor.error(meaning))?;
    cursor.expect(">", "> between the ends of a packet")?;
    let at = cursor.clone();
    let to = read_end(cursor).ok_or_else(|| at.error(meaning))?;
    cursor.eat(":");
    Ok(Some(PacketEnds { from, to }))
}

/// `192.0.2.1:80`, `[2001:db8::1]:80`, or a bare port at the script's own address.
fn read_end(cursor: &mut Cursor<'_>) -> Option<Endpoint> {
    cursor.skip_blank();
    let text = cursor.take_while(|c| c.is_ascii_hexdigit() || matches!(c, '.' | ':' | '[' | ']'));
    let address = text.trim_end_matches(':').parse::<SocketAddr>().ok().map(Endpoint::from);
    let own = || text.parse().ok().map(|port| Endpoint::new(Address::from_v4_octets([0; 4]), port));
    address.or_else(own)
}

/// A segment, or what in it is not supported.
fn read_segment(cursor: &mut Cursor<'_>) -> Result<Result<TcpPacket, String>, ParseError> {
    let flags = read_flags(cursor)?;
    let (seq, len) = read_seq(cursor)?;
    let ack = if cursor.eat_word("ack") { Some(read_ack(cursor)?) } else { None };
    let win = match cursor.eat_word("win") {
        // A window that may be any is one that is not written.
        true if cursor.eat("...") => None,
        true => Some(cursor.number("a window as in the header, 0 to 65535")?),
        false => None,
    };
    let urg = match cursor.eat_word("urg") {
        true => Some(cursor.number("an urgent pointer, 0 to 65535")?),
        false => None,
    };
    let options = match cursor.eat("<") {
        true => match options::read(cursor)? {
            Ok(options) => options,
            Err(unknown) => return Ok(Err(unknown)),
        },
        false => OptionList::These(Vec::new()),
    };
    Ok(Ok(TcpPacket { flags, seq, len, ack, win, urg, options }))
}

/// Flags in any order; a digit is the ACE field, of which AE is the highest bit.
pub(super) fn read_flags(cursor: &mut Cursor<'_>) -> Result<TcpFlags, ParseError> {
    cursor.skip_blank();
    let at = cursor.clone();
    let written = cursor.take_while(|c| !c.is_whitespace());
    let bits = written.chars().try_fold(0, |bits, c| flag_of(c).map(|flag| bits | flag.bits()));
    match bits {
        Some(bits) if !written.is_empty() => Ok(TcpFlags::from_bits(bits)),
        _ => Err(at.error("flags: S F R P . E W U A, or - for none")),
    }
}

fn flag_of(letter: char) -> Option<TcpFlags> {
    let flag = match letter {
        'S' => TcpFlags::SYN,
        'F' => TcpFlags::FIN,
        'R' => TcpFlags::RST,
        'P' => TcpFlags::PSH,
        '.' => TcpFlags::ACK,
        'U' => TcpFlags::URG,
        'E' => TcpFlags::ECE,
        'W' => TcpFlags::CWR,
        // The bit was NS before it became AE.
        'A' | 'N' => TcpFlags::AE,
        '-' => TcpFlags::NONE,
        '0'..='7' => return letter.to_digit(8).map(ace_flags),
        _ => return None,
    };
    Some(flag)
}

fn ace_flags(ace: u32) -> TcpFlags {
    const ACE: [(u32, TcpFlags); 3] = [(4, TcpFlags::AE), (2, TcpFlags::CWR), (1, TcpFlags::ECE)];
    let bits = ACE.iter().filter(|(bit, _)| ace & bit != 0);
    TcpFlags::from_bits(bits.fold(0, |bits, (_, flag)| bits | flag.bits()))
}

/// `0:0(0)`, `1:1001(1000)!`, `...`, `...(0)`: where a segment begins, and its length.
pub(super) fn read_seq(cursor: &mut Cursor<'_>) -> Result<(Seq, u32), ParseError> {
    if cursor.eat("...") {
        let len = if cursor.eat("(") { read_len(cursor)? } else { 0 };
        return Ok((Seq::Any, len));
    }
    cursor.skip_blank();
    let at = cursor.clone();
    let begin: u32 = cursor.number("a sequence number")?;
    cursor.expect(":", ": and the end of the segment")?;
    let end: u32 = cursor.number("a sequence number")?;
    cursor.expect("(", "( and the length of the segment")?;
    let len = read_len(cursor)?;
    if end.wrapping_sub(begin) != len {
        return Err(at.error("a length that is the end less the beginning"));
    }
    Ok((if cursor.eat_here("!") { Seq::Absolute(begin) } else { Seq::Relative(begin) }, len))
}

fn read_len(cursor: &mut Cursor<'_>) -> Result<u32, ParseError> {
    let len: u16 = cursor.number("a length, 0 to 65535")?;
    cursor.expect(")", ") behind the length")?;
    Ok(u32::from(len))
}

fn read_ack(cursor: &mut Cursor<'_>) -> Result<Ack, ParseError> {
    if cursor.eat("...") {
        return Ok(Ack::Any);
    }
    let number = cursor.number("an acknowledgment number")?;
    Ok(if cursor.eat_here("!") { Ack::Absolute(number) } else { Ack::Relative(number) })
}

/// What may stand where flags do, and is not TCP.
const PROTOCOLS: &[&str] = &[
    "addr", "encap", "udp", "udplite", "sctp", "dccp", "ipv4", "ipv6", "gre", "mpls", "psp",
    "vxlan", "arp",
];
