//! Lines that count sockets: `sockstat`, `netstat` or `ss`, piped to `grep`.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use whimbrel_posix::state;
use whimbrel_stack::shard::SocketState;

use super::words::{Line, is_flag, substitution};
use super::{HowMany, ShellAct};
use crate::host::SocketFilter;

/// Count required by a line that begins with `name`.
pub(super) fn act(
    name: &str,
    arguments: &[String],
    rest: &[&[String]],
    line: &Line,
) -> Option<ShellAct> {
    if line.output.is_some() {
        return None;
    }
    let (filter, expected) = match name {
        "test" | "[" if rest.is_empty() => test(name, arguments)?,
        "test" | "[" => return None,
        _ => pipe(name, arguments, rest)?.judged()?,
    };
    let expected = if line.negated { expected.negated() } else { expected };
    Some(ShellAct::Count { filter, expected })
}

/// Filter of an `ss` command: options, states, and ports.
pub(super) fn ss_filter(arguments: &[String]) -> Option<SocketFilter> {
    let mut filter = SocketFilter::default();
    let mut words = arguments.iter().map(String::as_str).peekable();
    while let Some(letters) = words.peek().and_then(|word| word.strip_prefix('-')) {
        if !letters.chars().all(|letter| "tanleimopH46K".contains(letter)) {
            return None;
        }
        if letters.contains('l') {
            filter.states = vec!["LISTEN"];
        }
        words.next();
    }
    while words.next_if(|word| *word == "state").is_some() {
        let named = match words.next()? {
            "listening" => vec!["LISTEN"],
            "closed" => vec!["CLOSE"],
            "all" => Vec::new(),
            "connected" => connected(),
            one => states(one)?,
        };
        filter.states.extend(named);
    }
    let expression: Vec<&str> = words.collect();
    ports(&expression.join(" "), &mut filter)?;
    Some(filter)
}

/// States for `name`, by Linux' names.
pub(super) fn states(name: &str) -> Option<Vec<&'static str>> {
    match name {
        "FIN_WAIT" => Some(vec!["FIN_WAIT1", "FIN_WAIT2"]),
        "CLOSED" | "CLOSE" => Some(vec!["CLOSE"]),
        _ => Some(vec![linux_name(state::by_name(name)?)]),
    }
}

/// Every state with a peer.
pub(super) fn connected() -> Vec<&'static str> {
    [
        SocketState::SynSent,
        SocketState::SynReceived,
        SocketState::Established,
        SocketState::FinWait1,
        SocketState::FinWait2,
        SocketState::CloseWait,
        SocketState::Closing,
        SocketState::LastAck,
        SocketState::TimeWait,
    ]
    .map(linux_name)
    .to_vec()
}

fn linux_name(state: SocketState) -> &'static str {
    match state {
        SocketState::Listen => "LISTEN",
        SocketState::SynSent => "SYN_SENT",
        SocketState::SynReceived => "SYN_RECV",
        SocketState::Established => "ESTABLISHED",
        SocketState::FinWait1 => "FIN_WAIT1",
        SocketState::FinWait2 => "FIN_WAIT2",
        SocketState::CloseWait => "CLOSE_WAIT",
        SocketState::Closing => "CLOSING",
        SocketState::LastAck => "LAST_ACK",
        SocketState::TimeWait => "TIME_WAIT",
    }
}

/// State of the pipe so far.
struct Pipe {
    filter: SocketFilter,
    flow: Flow,
}

/// Input of the next command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flow {
    /// A line for each socket, after a title.
    Titled,
    /// A line for each socket; its command fails if there is none.
    Lines,
    /// Their number; true if its command fails at 0.
    Number { fails_at_none: bool },
    /// A number after its comparison.
    Judged(HowMany),
}

impl Pipe {
    /// The filter, and the count that satisfies the last command.
    fn judged(self) -> Option<(SocketFilter, HowMany)> {
        let expected = match self.flow {
            Flow::Titled => return None,
            Flow::Lines | Flow::Number { fails_at_none: true } => HowMany::AtLeast(1),
            Flow::Number { fails_at_none: false } => HowMany::AtLeast(0),
            Flow::Judged(expected) => expected,
        };
        Some((self.filter, expected))
    }
}

fn pipe(name: &str, arguments: &[String], rest: &[&[String]]) -> Option<Pipe> {
    let filter = match name {
        "ss" => ss_filter(arguments)?,
        "sockstat" => sockstat_filter(arguments)?,
        _ => netstat_filter(arguments)?,
    };
    let untitled = name == "ss" && arguments.iter().any(|word| is_flag(word, 'H'));
    let flow = if untitled { Flow::Lines } else { Flow::Titled };
    rest.iter().try_fold(Pipe { filter, flow }, |pipe, words| through(pipe, words))
}

/// Applies the next command of a pipe.
fn through(mut pipe: Pipe, words: &[String]) -> Option<Pipe> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (command, arguments) = words.split_first()?;
    match (command.rsplit('/').next()?, arguments, pipe.flow) {
        ("grep" | "egrep" | "fgrep", _, Flow::Titled | Flow::Lines) => {
            let grep = Grep::read(arguments)?;
            grep.narrow(&mut pipe.filter)?;
            pipe.flow =
                if grep.counts { Flow::Number { fails_at_none: true } } else { Flow::Lines };
        }
        ("grep" | "egrep" | "fgrep", _, Flow::Number { .. }) => {
            let number = Grep::read(arguments)?.pattern;
            let number = number.trim_start_matches('^').trim_end_matches('$');
            pipe.flow = Flow::Judged(HowMany::Exactly(number.parse().ok()?));
        }
        ("wc", ["-l"], Flow::Lines) => pipe.flow = Flow::Number { fails_at_none: false },
        ("tr", ["-d", " " | "[:space:]" | "[:blank:]"], Flow::Number { .. }) => {}
        _ => return None,
    }
    Some(pipe)
}

/// `grep` with its options.
struct Grep<'a> {
    pattern: &'a str,
    counts: bool,
    inverts: bool,
}

impl<'a> Grep<'a> {
    fn read(arguments: &[&'a str]) -> Option<Self> {
        let (pattern, options) = arguments.split_last()?;
        let letters =
            || options.iter().flat_map(|option| option.strip_prefix('-')).flat_map(str::chars);
        let known = options.iter().all(|option| option.starts_with('-'))
            && letters().all(|letter| "cqvEFwxi".contains(letter));
        let has = |wanted| letters().any(|letter| letter == wanted);
        known.then_some(Self { pattern, counts: has('c'), inverts: has('v') })
    }

    /// Narrows the filter to sockets whose line has the pattern.
    fn narrow(&self, filter: &mut SocketFilter) -> Option<()> {
        if self.inverts {
            // `grep -v grep` drops a line that does not exist here.
            return (self.pattern == "grep").then_some(());
        }
        // Every socket here is TCP, and belongs to the script.
        if matches!(self.pattern, "packetdril" | "packetdrill" | "tcp" | "tcp4" | "tcp6") {
            return Some(());
        }
        if let Some(port) = self.pattern.strip_prefix([':', '.']) {
            return set_once(&mut filter.port, port.trim_end().parse().ok()?);
        }
        let mut named = Vec::new();
        for name in self.pattern.split('|').map(|name| name.trim_end_matches('\\')) {
            named.extend(states(name)?);
        }
        // Both apply: the states of the tool's own options, and these.
        if filter.states.is_empty() {
            filter.states = named;
        } else {
            filter.states.retain(|state| named.contains(state));
            if filter.states.is_empty() {
                return None;
            }
        }
        Some(())
    }
}

fn sockstat_filter(arguments: &[String]) -> Option<SocketFilter> {
    let mut filter = SocketFilter::default();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let mut letters = word.strip_prefix('-')?.chars();
        while let Some(letter) = letters.next() {
            // A value may follow its letter, or be the next word.
            let mut value = || match core::mem::replace(&mut letters, "".chars()).as_str() {
                "" => words.next(),
                attached => Some(attached),
            };
            match letter {
                '4' | '6' | 's' | 'n' | 'q' | 'w' | 'v' => {}
                'c' => filter.states = connected(),
                'l' => filter.states = vec!["LISTEN"],
                'P' if value()? == "tcp" => {}
                'p' => set_once(&mut filter.port, value()?.parse().ok()?)?,
                _ => return None,
            }
        }
    }
    Some(filter)
}

fn netstat_filter(arguments: &[String]) -> Option<SocketFilter> {
    let mut filter = SocketFilter::default();
    let mut words = arguments.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        for letter in word.strip_prefix('-')?.chars() {
            match letter {
                'a' | 'n' | 't' | 'W' | '4' | '6' => {}
                'l' => filter.states = vec!["LISTEN"],
                // FreeBSD's option takes a protocol, Linux' no value.
                'p' => {
                    words.next_if(|next| *next == "tcp");
                }
                'f' => {
                    words.next_if(|next| matches!(*next, "inet" | "inet6"))?;
                }
                _ => return None,
            }
        }
    }
    Some(filter)
}

/// `sport = :8080`, `dport == :80 and sport = :8080`, in parentheses or not.
fn ports(expression: &str, filter: &mut SocketFilter) -> Option<()> {
    let plain = expression.replace(['(', ')', '='], " ");
    let mut words = plain.split_whitespace().filter(|word| *word != "and");
    while let Some(side) = words.next() {
        let port = words.next()?.strip_prefix(':')?.parse().ok()?;
        match side {
            "sport" => set_once(&mut filter.local_port, port)?,
            "dport" => set_once(&mut filter.remote_port, port)?,
            _ => return None,
        }
    }
    Some(())
}

fn set_once(port: &mut Option<u16>, to: u16) -> Option<()> {
    port.replace(to).is_none().then_some(())
}

/// `test $(… | wc -l) -eq 1`.
fn test(name: &str, arguments: &[String]) -> Option<(SocketFilter, HowMany)> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let words = match (name, words.as_slice()) {
        ("[", [inner @ .., "]"]) => inner,
        ("test", all) => all,
        _ => return None,
    };
    let [counted, operator, number] = words else { return None };
    let line = substitution(counted)?;
    let (first, rest) = line.stages.split_first()?;
    let (command, arguments) = first.split_first()?;
    let command = command.rsplit('/').next()?;
    if !matches!(command, "sockstat" | "netstat" | "ss") {
        return None;
    }
    let rest: Vec<&[String]> = rest.iter().map(Vec::as_slice).collect();
    let pipe = pipe(command, arguments, &rest)?;
    let Flow::Number { .. } = pipe.flow else { return None };
    let number: usize = number.parse().ok()?;
    let expected = match *operator {
        "-eq" | "=" | "==" => HowMany::Exactly(number),
        "-ne" | "!=" => HowMany::NotExactly(number),
        "-ge" => HowMany::AtLeast(number),
        "-gt" => HowMany::AtLeast(number.checked_add(1)?),
        "-le" => HowMany::AtMost(number),
        "-lt" => HowMany::AtMost(number.checked_sub(1)?),
        _ => return None,
    };
    Some((pipe.filter, expected))
}
