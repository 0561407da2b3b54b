//! The parser neither panics nor takes long on any text.

use super::*;

/// Pieces of the language, to be combined.
const PIECES: &[&str] = &[
    "0",
    "+.1",
    "...",
    "~",
    "<",
    ">",
    "S.",
    "1:1001(1000)",
    "ack",
    "win",
    "<mss",
    "sack",
    "TS val",
    "icmp",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "|",
    "=",
    "-1",
    "\"",
    "\\",
    "`",
    "%{",
    "}%",
    "assert",
    "not",
    "#ifdef A",
    "#else",
    "#endif",
    "-D A=b",
    "--mtu=1",
    "//",
    "/*",
    "*/",
    "\n",
    "é",
    "A",
    "0x",
    ".",
    "*",
    "!",
    "192.0.2.1:80",
    "[::1]:80",
    ",",
    ";",
    "write(3, ..., 5) = 5",
    "FO ab",
];

fn parse_all(text: &str) {
    for dialect in Dialect::ALL {
        if let Err(error) = parse(text, &Defines::of(dialect)) {
            assert!(
                error.line >= 1 && error.column >= 1 && !error.to_string().contains('\n'),
                "{error}"
            );
        }
    }
}

#[test]
fn pieces_thrown_together_never_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..20_000 {
        let separator = if random.bool() { " " } else { "" };
        let pieces = (0..random.usize(..30)).map(|_| *random.choice(PIECES).unwrap());
        parse_all(&pieces.collect::<Vec<_>>().join(separator));
    }
}

#[test]
fn arbitrary_bytes_never_panic() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.usize(..60)).map(|_| random.u8(..)).collect();
        parse_all(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn scripts_with_faults_never_panic() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..5_000 {
        let mut text: Vec<char> = SCRIPT.chars().collect();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..text.len());
            match random.u8(..4) {
                0 => drop(text.remove(at)),
                1 => text[at] = random.char(..),
                2 => text.splice(at..at, random.choice(PIECES).unwrap().chars()).for_each(drop),
                _ => text.truncate(at.max(100)),
            }
        }
        parse_all(&text.into_iter().collect::<String>());
    }
}

/// Work grows linearly with the text: these take well under a second.
#[test]
fn long_texts_are_read_in_one_pass() {
    let steps = "+0 < . 1:1(0) ack 1 win 5 <nop,nop,sack 1:2>\n".repeat(20_000);
    assert_eq!(read(&steps).steps.len(), 20_000);
    for piece in
        ["`", "/*", "%{", "\"", "-D A=b\n", "#ifdef A\n", "+0 udp ", "// ", "+0 < (a", "1", "#\n"]
    {
        parse_all(&piece.repeat(100_000));
    }
}
