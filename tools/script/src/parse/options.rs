//! `<mss 1460,nop,…>`: the options of a segment.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::ParseError;
use super::lexer::Cursor;
use crate::ast::{OptionList, TcpOption};

/// Reads after `<` up to `>`. Returns the name of an unknown option.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Result<OptionList, String>, ParseError> {
    if cursor.eat("...") {
        cursor.expect(">", "> behind the options")?;
        return Ok(Ok(OptionList::Any));
    }
    let mut options = Vec::new();
    if cursor.eat(">") {
        return Ok(Ok(OptionList::These(options)));
    }
    loop {
        match read_one(cursor)? {
            Ok(option) => options.push(option),
            Err(name) => return Ok(Err(format!("the TCP option {name}"))),
        }
        if cursor.eat(">") {
            return Ok(Ok(OptionList::These(options)));
        }
        cursor.expect(",", "a comma or > behind an option")?;
    }
}

fn read_one(cursor: &mut Cursor<'_>) -> Result<Result<TcpOption, String>, ParseError> {
    let option = match cursor.word("an option: mss, wscale, sackOK, sack, TS, nop, eol, FO, …")? {
        "eol" | "EOL" => TcpOption::Eol,
        "nop" | "NOP" => TcpOption::Nop,
        "mss" | "MSS" => TcpOption::Mss(cursor.number("an MSS, 0 to 65535")?),
        "wscale" | "WSCALE" => TcpOption::WindowScale(cursor.number("a shift, 0 to 255")?),
        "sackOK" | "sackok" => TcpOption::SackPermitted,
        "sack" => TcpOption::Sack(read_blocks(cursor)?),
        "TS" | "ts" => read_timestamps(cursor)?,
        // A cookie with an undefined name.
        "FO" | "FOEXP" if !is_hex(cursor.peek_word()) => {
            return Ok(Err(format!("FO {}", cursor.peek_word())));
        }
        "FO" => TcpOption::FastOpen(read_hex(cursor)?),
        "FOEXP" => TcpOption::FastOpenExperimental(read_hex(cursor)?),
        "md5" => match cursor.peek_word() {
            "valid" => {
                cursor.eat_word("valid");
                TcpOption::Md5
            }
            "invalid" => return Ok(Err("md5 invalid".to_string())),
            _ => {
                // The digest depends on a key that a script does not have, so only its presence
                // counts.
                read_hex(cursor)?;
                TcpOption::Md5
            }
        },
        "raw" => TcpOption::Raw(read_hex(cursor)?),
        "ECN" | "AccECN" => read_accurate_ecn(cursor)?,
        "kind" => TcpOption::Other {
            kind: cursor.number("the kind of an option, 0 to 255")?,
            data: read_hex(cursor)?,
        },
        unknown => return Ok(Err(unknown.to_string())),
    };
    Ok(Ok(option))
}

fn read_blocks(cursor: &mut Cursor<'_>) -> Result<Vec<(u32, u32)>, ParseError> {
    let mut blocks = Vec::new();
    while cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
        let begin = cursor.number("the left edge of a block")?;
        cursor.expect(":", ": and the right edge of the block")?;
        blocks.push((begin, cursor.number("the right edge of a block")?));
    }
    Ok(blocks)
}

fn read_timestamps(cursor: &mut Cursor<'_>) -> Result<TcpOption, ParseError> {
    let (mut val, mut ecr) = (None, None);
    for (name, meaning, number) in [("val", "val", &mut val), ("ecr", "ecr", &mut ecr)] {
        if !cursor.eat_word(name) {
            return Err(cursor.error(meaning));
        }
        if !cursor.eat("...") {
            *number = Some(cursor.number("a timestamp")?);
        }
    }
    Ok(match (val, ecr) {
        (Some(val), Some(ecr)) => TcpOption::Timestamps { val, ecr },
        (val, ecr) => TcpOption::SomeTimestamps { val, ecr },
    })
}

fn is_hex(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_hexdigit())
}

/// Bytes in hexadecimal digits, may be empty.
fn read_hex(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, ParseError> {
    cursor.skip_blank();
    let at = cursor.clone();
    cursor.eat_here("0x");
    let digits = cursor.take_while(|c| c.is_ascii_hexdigit());
    let bytes: Option<Vec<u8>> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect();
    bytes.filter(|bytes| bytes.len() <= LONGEST_OPTION).ok_or_else(|| {
        at.error("bytes in pairs of hexadecimal digits, as many as an option can have")
    })
}

/// Counters of Accurate ECN. Their order gives the kind.
// RFC 9768 3.2.3: order 0 (kind 172) has EE0B first, order 1 (kind 174) has EE1B.
fn read_accurate_ecn(cursor: &mut Cursor<'_>) -> Result<TcpOption, ParseError> {
    const ORDERS: [(u8, [&str; 3]); 2] =
        [(172, ["e0b", "ceb", "e1b"]), (174, ["e1b", "ceb", "e0b"])];
    let first = cursor.peek_word();
    let order = ORDERS.iter().find(|(_, names)| names.first() == Some(&first));
    let (kind, names) = order.ok_or_else(|| cursor.error("e0b or e1b"))?;
    let mut data = Vec::new();
    for name in names {
        if cursor.eat_word(name) {
            let counter: u32 = cursor.number("a counter of 24 bits")?;
            // The highest byte does not fit in the field's 24 bits.
            let [_, bytes @ ..] = counter.to_be_bytes();
            data.extend(bytes);
        }
    }
    Ok(TcpOption::Other { kind: *kind, data })
}

/// 40 bytes of options, minus kind and length.
const LONGEST_OPTION: usize = 38;
