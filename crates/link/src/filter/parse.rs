//! Parses the words of a filter.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use whimbrel_wire::{Address, Family, Protocol};

use super::words::{FilterError, Word, split};
use super::{Kind, Side, Term};

pub(super) fn parse(text: &str) -> Result<Term, FilterError> {
    let end = text.len() + 1;
    let mut parser = Parser { words: split(text), at: 0, end, last: None, depth: 0 };
    let term = parser.expression()?;
    match parser.next() {
        None => Ok(term),
        Some(word) => Err(wrong(word, "and, or, or the end")),
    }
}

struct Parser<'a> {
    words: Vec<Word<'a>>,
    at: usize,
    /// Column after the text.
    end: usize,
    /// Side and field of the last address or number.
    last: Option<(Side, FilterField)>,
    /// Open parentheses and `not`s.
    depth: u32,
}

/// Field that an address or a number belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FilterField {
    Host,
    Net,
    Port,
    Range,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).map(|word| word.text)
    }

    fn next(&mut self) -> Option<Word<'a>> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    /// Takes the next word if it is one of `texts`, and returns true.
    fn take(&mut self, texts: &[&str]) -> bool {
        let found = self.peek().is_some_and(|next| texts.contains(&next));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: &str) -> Result<Word<'a>, FilterError> {
        let text = || format!("the filter ends where {wanted} should stand");
        let missing = FilterError { column: self.end, text: text() };
        self.next().ok_or(missing)
    }

    fn expect_sign(&mut self, sign: &str) -> Result<(), FilterError> {
        let word = self.expect(sign)?;
        if word.text == sign { Ok(()) } else { Err(wrong(word, sign)) }
    }

    fn expression(&mut self) -> Result<Term, FilterError> {
        let mut left = self.term()?;
        loop {
            let join = if self.take(&["and", "&&"]) {
                Term::And
            } else if self.take(&["or", "||"]) {
                Term::Or
            } else {
                return Ok(left);
            };
            left = join(Box::new([left, self.term()?]));
        }
    }

    fn term(&mut self) -> Result<Term, FilterError> {
        let word = self.expect(TERMS)?;
        if self.depth == DEEPEST {
            let text = format!("more than {DEEPEST} parentheses within each other");
            return Err(FilterError { column: word.column, text });
        }
        self.depth += 1;
        let term = self.term_of(word);
        self.depth -= 1;
        term
    }

    fn term_of(&mut self, word: Word<'a>) -> Result<Term, FilterError> {
        if let Some(kind) = kind(word.text) {
            if word.text == "tcp" && self.take(&["["]) {
                return self.flags();
            }
            let Some("src" | "dst" | "host" | "net" | "port" | "portrange") = self.peek() else {
                return Ok(Term::Is(kind));
            };
            let first = self.expect(TERMS)?;
            return Ok(Term::And(Box::new([Term::Is(kind), self.qualified(first)?])));
        }
        match word.text {
            "(" => {
                let term = self.expression()?;
                self.expect_sign(")")?;
                Ok(term)
            }
            "not" | "!" => Ok(Term::Not(Box::new(self.term()?))),
            "less" => self.length().map(Term::Less),
            "greater" => self.length().map(Term::Greater),
            _ => self.qualified(word),
        }
    }

    /// `[src|dst] [host|net|port|portrange] ID`, or only an ID after the last one's words.
    fn qualified(&mut self, first: Word<'a>) -> Result<Term, FilterError> {
        let mut word = first;
        let mut side = None;
        if let Some(said) = self.side(word.text) {
            side = Some(said);
            word = self.expect("an address")?;
        }
        let mut what = match word.text {
            "host" => Some(FilterField::Host),
            "net" => Some(FilterField::Net),
            "port" => Some(FilterField::Port),
            "portrange" => Some(FilterField::Range),
            _ => None,
        };
        if what.is_some() {
            word = self.expect("an address or a number")?;
        } else if side.is_none()
            && let Some((last_side, last_what)) = self.last
        {
            (side, what) = (Some(last_side), Some(last_what));
        } else if address(word.text).is_none() {
            return Err(wrong(word, if side.is_some() { "host, net, port" } else { TERMS }));
        }
        let (side, what) = (side.unwrap_or(Side::Either), what.unwrap_or(FilterField::Host));
        self.last = Some((side, what));
        identify(word, side, what)
    }

    /// `src`, `dst`, `src or dst`, `src and dst`.
    fn side(&mut self, first: &str) -> Option<Side> {
        let (side, other) = match first {
            "src" => (Side::Source, "dst"),
            "dst" => (Side::Destination, "src"),
            _ => return None,
        };
        let [join, next] = [0, 1].map(|ahead| self.words.get(self.at + ahead).map(|it| it.text));
        let both = match join {
            Some("or") => Side::Either,
            Some("and") => Side::Both,
            _ => return Some(side),
        };
        if next != Some(other) {
            return Some(side);
        }
        self.at += 2;
        Some(both)
    }

    fn length(&mut self) -> Result<usize, FilterError> {
        let word = self.expect("a number of bytes")?;
        word.text.parse().map_err(|_| wrong(word, "a number of bytes"))
    }

    /// After `tcp[`: `tcpflags] & (tcp-syn|tcp-fin) != 0`, or without a mask.
    fn flags(&mut self) -> Result<Term, FilterError> {
        let field = self.expect("tcpflags")?;
        if !["tcpflags", "13"].contains(&field.text) {
            return Err(wrong(field, "tcpflags"));
        }
        self.expect_sign("]")?;
        let mask = if self.take(&["&"]) { self.bits()? } else { u8::MAX };
        let comparison = self.expect("==, or !=")?;
        let equal = match comparison.text {
            "=" | "==" => true,
            "!=" => false,
            _ => return Err(wrong(comparison, "==, or !=")),
        };
        Ok(Term::Flags { mask, equal, value: self.bits()? })
    }

    /// One flag, or several in parentheses.
    fn bits(&mut self) -> Result<u8, FilterError> {
        if !self.take(&["("]) {
            return self.flag();
        }
        let mut bits = self.flag()?;
        while self.take(&["|"]) {
            bits |= self.flag()?;
        }
        self.expect_sign(")")?;
        Ok(bits)
    }

    fn flag(&mut self) -> Result<u8, FilterError> {
        let word = self.expect(FLAGS)?;
        let place = FLAG_NAMES.iter().position(|name| *name == word.text);
        let number = || match word.text.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => word.text.parse().ok(),
        };
        place.map(|place| 1 << place).or_else(number).ok_or_else(|| wrong(word, FLAGS))
    }
}

/// Term of an address or a number.
fn identify(word: Word<'_>, side: Side, what: FilterField) -> Result<Term, FilterError> {
    let text = word.text;
    let (term, example) = match what {
        FilterField::Host => {
            (address(text).map(|addr| Term::Host(side, addr)), "an address (10.0.0.1)")
        }
        FilterField::Net => (net(text, side), "a network: 10.0.0.0/24"),
        FilterField::Port => {
            (text.parse().ok().map(|port| Term::Ports(side, port, port)), "a port (0 to 65535)")
        }
        FilterField::Range => (range(text, side), "two ports: 8000-8080"),
    };
    term.ok_or_else(|| wrong(word, example))
}

fn kind(text: &str) -> Option<Kind> {
    Some(match text {
        "ip" => Kind::Family(Family::V4),
        "ip6" => Kind::Family(Family::V6),
        "arp" => Kind::Arp,
        "tcp" => Kind::Protocol(Protocol::TCP),
        "udp" => Kind::Protocol(Protocol::UDP),
        "icmp" => Kind::Protocol(Protocol::ICMP),
        "icmp6" => Kind::Protocol(Protocol::ICMPV6),
        _ => return None,
    })
}

fn address(text: &str) -> Option<Address> {
    text.parse::<IpAddr>().ok().map(Address::from)
}

fn net(text: &str, side: Side) -> Option<Term> {
    let (addr, len) = text.split_once('/')?;
    let (addr, len) = (address(addr)?, len.parse().ok()?);
    let bits = if addr.is_v4() { 32 } else { 128 };
    (len <= bits).then_some(Term::Net(side, addr, len))
}

fn range(text: &str, side: Side) -> Option<Term> {
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(Term::Ports(side, first, last))
}

fn wrong(word: Word<'_>, wanted: &str) -> FilterError {
    let text: String = format!("{:?} stands where {wanted} should", word.text);
    FilterError { column: word.column, text }
}

/// Deepest nesting of parentheses and `not`s.
const DEEPEST: u32 = 64;
const TERMS: &str = "ip, ip6, arp, tcp, udp, icmp, icmp6, src, dst, host, net, port, portrange, \
                     less, greater, not or (";
const FLAGS: &str = "tcp-fin, tcp-syn, tcp-rst, tcp-push, tcp-ack, tcp-urg, tcp-ece, tcp-cwr or 0 \
                     to 255";
/// From the lowest bit on.
const FLAG_NAMES: [&str; 8] =
    ["tcp-fin", "tcp-syn", "tcp-rst", "tcp-push", "tcp-ack", "tcp-urg", "tcp-ece", "tcp-cwr"];
