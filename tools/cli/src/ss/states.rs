//! States under the names of `ss`.

use serde_json::Value;

use super::field;

/// States that are selected, by their place in [`STATES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct States(u16);

impl States {
    /// None.
    pub(super) const NONE: Self = Self(0);

    /// The states of this name in a filter.
    pub(super) fn named(name: &str) -> Option<Self> {
        let of = |names: &[&str]| {
            let bit = |(place, state): (usize, &State)| match names.contains(&state.filter) {
                true => 1 << place,
                false => 0,
            };
            Self(STATES.iter().enumerate().map(bit).sum())
        };
        let without = |names: &[&str]| Self(of(ALL).0 & !of(names).0);
        Some(match name {
            "all" => of(ALL),
            "connected" => without(&["closed", "listening"]),
            "synchronized" => without(&["closed", "listening", "syn-sent"]),
            "bucket" => of(&["syn-recv", "time-wait"]),
            "big" => without(&["syn-recv", "time-wait"]),
            "listen" => of(&["listening"]),
            name => Some(of(&[name])).filter(|states| *states != Self::NONE)?,
        })
    }

    /// The states of -a, -l or neither.
    pub(super) fn of_options(all: bool, listening: bool) -> Self {
        let most = "connected";
        let named = |name| Self::named(name).unwrap_or(Self::NONE);
        match (all, listening) {
            (true, _) => named("all"),
            (false, true) => Self(named("listening").0 | named("closed").0),
            (false, false) => Self(named(most).0 & !named("bucket").0),
        }
    }

    /// Those of both.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of the first that are not in the other.
    pub(super) const fn except(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Number of states.
    pub(super) const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// True if the state of the socket is one of them.
    pub(super) fn contain(self, socket: &Value) -> bool {
        let place = STATES.iter().position(|state| state.column == column(socket));
        place.is_some_and(|place| self.0 & (1 << place) != 0)
    }
}

/// The state of a socket as a column has it; an unconnected UDP socket is UNCONN.
pub(super) fn column(socket: &Value) -> &'static str {
    if field(socket, "transport") == "udp" {
        return if socket["remote"].is_null() { "UNCONN" } else { "ESTAB" };
    }
    let name = field(socket, "state");
    STATES.iter().find(|state| state.rfc == name).map_or("UNKNOWN", |state| state.column)
}

struct State {
    /// RFC 9293's name.
    rfc: &'static str,
    column: &'static str,
    filter: &'static str,
}

const fn state(rfc: &'static str, column: &'static str, filter: &'static str) -> State {
    State { rfc, column, filter }
}

const STATES: [State; 11] = [
    state("ESTABLISHED", "ESTAB", "established"),
    state("SYN-SENT", "SYN-SENT", "syn-sent"),
    state("SYN-RECEIVED", "SYN-RECV", "syn-recv"),
    state("FIN-WAIT-1", "FIN-WAIT-1", "fin-wait-1"),
    state("FIN-WAIT-2", "FIN-WAIT-2", "fin-wait-2"),
    state("TIME-WAIT", "TIME-WAIT", "time-wait"),
    state("", "UNCONN", "closed"),
    state("CLOSE-WAIT", "CLOSE-WAIT", "close-wait"),
    state("LAST-ACK", "LAST-ACK", "last-ack"),
    state("LISTEN", "LISTEN", "listening"),
    state("CLOSING", "CLOSING", "closing"),
];
const ALL: &[&str] = &[
    "established",
    "syn-sent",
    "syn-recv",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "closed",
    "close-wait",
    "last-ack",
    "listening",
    "closing",
];
