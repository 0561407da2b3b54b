//! `<` and `>`: a packet.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::lexer::Cursor;
use super::parts::{read_ends, read_flags, read_seq, sees_ends};
use super::{ParseError, icmp, options, skip_unsupported};
use crate::ast::{Ack, Action, Direction, Ecn, IpMarks, OptionList, Packet, PacketBody, TcpPacket};

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
    // Some scripts quote before the error's name, some after it.
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

/// True if `(…)` or `[…]` is next with marks in it, not a quoted segment or an address.
fn is_marks(cursor: &mut Cursor<'_>) -> bool {
    let mut inside = cursor.clone();
    (inside.eat("(") || inside.eat("["))
        && inside.peek().is_some_and(|c| c.is_ascii_lowercase())
        && !sees_ends(cursor)
        && inside.peek_word() != "tcp"
        && !PROTOCOLS.contains(&inside.peek_word())
}

/// Marks between brackets; returns an unknown one.
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

/// A segment, or its unsupported part.
fn read_segment(cursor: &mut Cursor<'_>) -> Result<Result<TcpPacket, String>, ParseError> {
    let flags = read_flags(cursor)?;
    let (seq, len) = read_seq(cursor)?;
    let ack = if cursor.eat_word("ack") { Some(read_ack(cursor)?) } else { None };
    let win = match cursor.eat_word("win") {
        // `win ...` is the same as no window.
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

fn read_ack(cursor: &mut Cursor<'_>) -> Result<Ack, ParseError> {
    if cursor.eat("...") {
        return Ok(Ack::Any);
    }
    let number = cursor.number("an acknowledgment number")?;
    Ok(if cursor.eat_here("!") { Ack::Absolute(number) } else { Ack::Relative(number) })
}

/// Names of other protocols in place of flags.
const PROTOCOLS: &[&str] = &[
    "addr", "encap", "udp", "udplite", "sctp", "dccp", "ipv4", "ipv6", "gre", "mpls", "psp",
    "vxlan", "arp",
];
