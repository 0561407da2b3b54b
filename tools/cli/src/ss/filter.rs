//! The filters of `ss`: states, ends and comparisons, joined by and, or and not.

use std::fs;
use std::net::IpAddr;

use serde_json::Value;

use super::states::States;
use super::{field, tokens};
use crate::failure::Failure;

/// A condition on a socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Filter {
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Not(Box<Self>),
    Address { end: End, prefix: Option<Prefix>, port: Option<u16> },
    Port { end: End, comparison: Comparison, port: u16 },
}

/// An end of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Local,
    Remote,
}

/// The addresses that begin with the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prefix {
    addr: IpAddr,
    bits: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Parses the states, if any are named, and the condition, if there is one.
pub(super) fn parse(words: &[String]) -> Result<(Option<States>, Option<Filter>), Failure> {
    let tokens = words.iter().flat_map(|word| tokens::split(word)).collect();
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let states = parser.states()?;
    let filter = if parser.peek().is_some() { Some(parser.list()?) } else { None };
    match parser.peek() {
        None => Ok((states, filter)),
        Some(rest) => {
            Err(wrong(&format!("{rest:?} follows a whole filter: join them by and, or or")))
        }
    }
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
    /// Brackets and negations around the current condition.
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn next(&mut self, wanted: &str) -> Result<String, Failure> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token.ok_or_else(|| wrong(&format!("the filter ends where {wanted} belongs")))
    }

    /// True if the next word is one of these, which is then taken.
    fn takes(&mut self, words: &[&str]) -> bool {
        let takes = self.peek().is_some_and(|token| words.contains(&token));
        self.at += usize::from(takes);
        takes
    }

    fn states(&mut self) -> Result<Option<States>, Failure> {
        let mut states = None;
        loop {
            let excludes = match self.peek() {
                Some("state") => false,
                Some("exclude" | "excl") => true,
                _ => return Ok(states),
            };
            self.at += 1;
            let name = self.next("a state")?;
            let named = States::named(&name).ok_or_else(|| {
                wrong(&format!("{name:?} is no state: use established, connected, all, …"))
            })?;
            let all = States::named("all").unwrap_or(States::NONE);
            states = Some(match excludes {
                true => states.unwrap_or(all).except(named),
                false => states.unwrap_or(States::NONE).and(named),
            });
        }
    }

    /// Conditions from left to right: in iproute2's ss, too, `and` binds no more than `or`. Side by side they are
    /// joined by and.
    fn list(&mut self) -> Result<Filter, Failure> {
        let mut filter = self.condition()?;
        loop {
            if self.takes(&["or", "|", "||"]) {
                filter = Filter::Or(filter.into(), self.condition()?.into());
            } else if self.takes(&["and", "&", "&&"]) || self.peek().is_some_and(|next| next != ")")
            {
                filter = Filter::And(filter.into(), self.condition()?.into());
            } else {
                return Ok(filter);
            }
        }
    }

    fn condition(&mut self) -> Result<Filter, Failure> {
        let word = self.next("a condition")?;
        if matches!(word.as_str(), "not" | "!" | "(") {
            self.depth += 1;
            if self.depth > MOST_NESTED {
                return Err(wrong(&format!("more than {MOST_NESTED} brackets and negations")));
            }
        }
        match word.as_str() {
            "not" | "!" => Ok(Filter::Not(self.condition()?.into())),
            "(" => {
                let filter = self.list()?;
                match self.next("a bracket )")?.as_str() {
                    ")" => Ok(filter),
                    other => Err(wrong(&format!("{other:?} stands where a bracket ) belongs"))),
                }
            }
            "dst" => self.address(End::Remote),
            "src" => self.address(End::Local),
            "dport" => self.port(End::Remote),
            "sport" => self.port(End::Local),
            "dev" | "fwmark" | "cgroup" | "autobound" => {
                Err(wrong(&format!("{word} is of the kernel's sockets: this stack's have none")))
            }
            "state" | "exclude" | "excl" => Err(wrong("states stand before all conditions")),
            other => Err(wrong(&format!(
                "{other:?} is no condition: use sport, dport, src, dst, not or a bracket"
            ))),
        }
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let sign = self.peek()?;
        let found = SIGNS.iter().find(|(signs, _)| signs.contains(&sign));
        self.at += usize::from(found.is_some());
        found.map(|(_, comparison)| *comparison)
    }

    fn address(&mut self, end: End) -> Result<Filter, Failure> {
        let comparison = self.comparison().unwrap_or(Comparison::Equal);
        let text = self.next("an address")?;
        let (host, port) = split_port(&text);
        let prefix = match host {
            "" | "*" => None,
            host => Some(Prefix::parse(host)?),
        };
        let port = port.filter(|port| *port != "*" && !port.is_empty()).map(port_of).transpose()?;
        let filter = Filter::Address { end, prefix, port };
        match comparison {
            Comparison::Equal => Ok(filter),
            Comparison::NotEqual => Ok(Filter::Not(filter.into())),
            _ => Err(wrong(&format!("{text}: addresses are equal or not: use = or !="))),
        }
    }

    fn port(&mut self, end: End) -> Result<Filter, Failure> {
        let comparison = self.comparison().unwrap_or(Comparison::Equal);
        let text = self.next("a port")?;
        let port = text.strip_prefix(':').unwrap_or(&text);
        if port == "*" {
            return Ok(Filter::Address { end, prefix: None, port: None });
        }
        Ok(Filter::Port { end, comparison, port: port_of(port)? })
    }
}

/// The host and the port of a text: `[fd00::1]:80`, `fd00::1`, `10.0.0.1:80`, `:80`.
fn split_port(text: &str) -> (&str, Option<&str>) {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']').unwrap_or((rest, ""));
        // A prefix length may stand behind the bracket.
        return match port.split_once(':') {
            Some(("", port)) => (host, Some(port)),
            _ => (host, None),
        };
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

fn port_of(text: &str) -> Result<u16, Failure> {
    if let Ok(port) = text.parse() {
        return Ok(port);
    }
    let services = fs::read_to_string("/etc/services").unwrap_or_default();
    let port_in = |line: &str| {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let (name, number) = (words.next()?, words.next()?);
        let is_named = name == text || words.any(|alias| alias == text);
        number.split('/').next()?.parse().ok().filter(|_| is_named)
    };
    let named = services.lines().find_map(port_in);
    named.ok_or_else(|| {
        wrong(&format!("{text:?} is no port: use 0 to 65535, or a name in /etc/services"))
    })
}

impl Prefix {
    fn parse(text: &str) -> Result<Self, Failure> {
        let refused =
            || wrong(&format!("{text:?} is no address: use ADDR or ADDR/BITS, in numbers"));
        let (addr, bits) = text.split_once('/').unwrap_or((text, ""));
        let addr: IpAddr = addr.parse().map_err(|_| refused())?;
        let most = if addr.is_ipv4() { 32 } else { 128 };
        let bits = if bits.is_empty() { most } else { bits.parse().map_err(|_| refused())? };
        Some(Self { addr, bits }).filter(|it| it.bits <= most).ok_or_else(refused)
    }

    fn contains(self, addr: IpAddr) -> bool {
        match (self.addr, addr) {
            (IpAddr::V4(own), IpAddr::V4(addr)) => {
                let differ = own.to_bits() ^ addr.to_bits();
                differ.checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(addr)) => {
                let differ = own.to_bits() ^ addr.to_bits();
                differ.checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl Filter {
    /// True if the socket meets the condition.
    pub(super) fn matches(&self, socket: &Value) -> bool {
        match self {
            Self::And(first, second) => first.matches(socket) && second.matches(socket),
            Self::Or(first, second) => first.matches(socket) || second.matches(socket),
            Self::Not(filter) => !filter.matches(socket),
            Self::Address { end, prefix, port } => {
                let end = end.of(socket);
                let addr = field(end, "addr").parse::<IpAddr>().ok();
                let within = prefix.is_none_or(|it| addr.is_some_and(|addr| it.contains(addr)));
                within && port.is_none_or(|port| end["port"] == port)
            }
            Self::Port { end, comparison, port } => {
                // A listener has no peer: port 0, as ss has it.
                let own = end.of(socket)["port"].as_u64().unwrap_or(0);
                comparison.holds(own, (*port).into())
            }
        }
    }
}

impl End {
    fn of(self, socket: &Value) -> &Value {
        match self {
            Self::Local => &socket["local"],
            Self::Remote => &socket["remote"],
        }
    }
}

impl Comparison {
    const fn holds(self, own: u64, other: u64) -> bool {
        match self {
            Self::Equal => own == other,
            Self::NotEqual => own != other,
            Self::Less => own < other,
            Self::LessOrEqual => own <= other,
            Self::Greater => own > other,
            Self::GreaterOrEqual => own >= other,
        }
    }
}

fn wrong(text: &str) -> Failure {
    Failure::usage("FILTER", text)
}

const SIGNS: [(&[&str], Comparison); 6] = [
    (&["=", "==", "eq"], Comparison::Equal),
    (&["!=", "ne", "neq"], Comparison::NotEqual),
    (&["<", "lt"], Comparison::Less),
    (&["<=", "le", "leq"], Comparison::LessOrEqual),
    (&[">", "gt"], Comparison::Greater),
    (&[">=", "ge", "geq"], Comparison::GreaterOrEqual),
];
/// Limit of brackets and negations in a filter.
const MOST_NESTED: usize = 64;

#[cfg(test)]
mod tests;
