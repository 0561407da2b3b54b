//! `icmp unreachable …`: an ICMP error about a segment.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use super::lexer::Cursor;
use super::{ParseError, parts};
use crate::ast::{IcmpPacket, Quoted};

/// Reads from `icmp` on; `quoted` is the quotation before it.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    mut quoted: Option<Quoted>,
) -> Result<IcmpPacket, ParseError> {
    if !cursor.eat_word("icmp") {
        return Err(cursor.error("icmp behind a quoted segment"));
    }
    let kind = cursor.word("a type of ICMP message")?.to_string();
    let code = read_code(cursor);
    let mut mtu = read_mtu(cursor)?;
    let id = if cursor.eat_word("id") {
        Some(cursor.number("an identifier, 0 to 65535")?)
    } else {
        None
    };
    if quoted.is_none() && cursor.sees("[") {
        quoted = Some(read_quoted(cursor)?);
        // Some scripts write the MTU before the quotation, some after it.
        mtu = mtu.or(read_mtu(cursor)?);
    }
    Ok(IcmpPacket { kind, code, mtu, id, quoted: quoted.map(Box::new) })
}

fn read_mtu(cursor: &mut Cursor<'_>) -> Result<Option<u32>, ParseError> {
    if cursor.eat_word("mtu") { cursor.number("an MTU").map(Some) } else { Ok(None) }
}

/// A name or a number on the same line: a number on the next one is a time.
fn read_code(cursor: &mut Cursor<'_>) -> Option<String> {
    let mut ahead = cursor.clone();
    ahead.take_while(|c| c == ' ' || c == '\t');
    let code = ahead.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_code = !code.is_empty() && !matches!(code, "mtu" | "id");
    is_code.then(|| {
        *cursor = ahead;
        code.to_string()
    })
}

/// `[1:1001(1000)]`, with ends and flags before the numbers if they are written, and `first 8`
/// after them if a router cut it so short. Receivers of the error ignore the rest of the quoted
/// header.
pub(super) fn read_quoted(cursor: &mut Cursor<'_>) -> Result<Quoted, ParseError> {
    cursor.expect("[", "[ and a quoted segment")?;
    cursor.eat_word("tcp");
    let ends = parts::read_ends(cursor)?;
    let mut ahead = cursor.clone();
    let flags = match parts::read_seq(&mut ahead) {
        Ok(_) => None,
        Err(_) => Some(parts::read_flags(cursor)?),
    };
    let (seq, len) = parts::read_seq(cursor)?;
    let first = match cursor.eat_word("first") {
        true => Some(cursor.number("the bytes that are quoted of the segment")?),
        false => None,
    };
    cursor.expect("]", "] behind the quoted segment")?;
    Ok(Quoted { flags, seq, len, ends, first })
}
