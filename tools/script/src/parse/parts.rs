//! Parts common to a packet and one quoted in an ICMP error: ends, flags, sequence numbers.

use core::net::SocketAddr;

use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Address, Endpoint};

use super::ParseError;
use super::lexer::Cursor;
use crate::ast::{PacketEnds, Seq};

/// True if an address and port are next, or a port and an arrow.
pub(super) fn sees_ends(cursor: &Cursor<'_>) -> bool {
    let mut ahead = cursor.clone();
    read_end(&mut ahead).is_some() && ahead.sees(">")
}

/// `from > to`, if it is next.
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

/// `192.0.2.1:80`, `[2001:db8::1]:80`, or only a port at the script's own address.
fn read_end(cursor: &mut Cursor<'_>) -> Option<Endpoint> {
    cursor.skip_blank();
    let text = cursor.take_while(|c| c.is_ascii_hexdigit() || matches!(c, '.' | ':' | '[' | ']'));
    let address = text.trim_end_matches(':').parse::<SocketAddr>().ok().map(Endpoint::from);
    let own = || text.parse().ok().map(|port| Endpoint::new(Address::from_v4_bytes([0; 4]), port));
    address.or_else(own)
}

/// Flags in any order; a digit is the ACE field, with AE as its highest bit.
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
        // AE was NS before.
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

/// `0:0(0)`, `1:1001(1000)!`, `...`, `...(0)`: start and length of a segment.
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
