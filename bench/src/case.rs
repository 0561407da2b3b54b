//! A case: a piece of work that every peer can be asked for. A peer is a program that is called
//! with a case and its limits and answers in lines `name value`.

use std::fmt;
use std::time::Duration;

use crate::Failure;

/// A measurement, and the number of connections during it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Case {
    /// Kind of measurement.
    pub(crate) kind: Kind,
    /// Records; of [`Kind::Ports`], the percentage that is taken; of [`Kind::Datagrams`], how many are under
    /// way at a time.
    pub(crate) scale: u32,
}

/// Kind of measurement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    /// CPU time of a short connection, both ends, with this many in TIME-WAIT.
    Churn,
    /// Churn with few connections at a time, whose records and code stay in caches.
    Few,
    /// CPU time of one call of connect to a destination to which so many ports are taken.
    Ports,
    /// Memory of a record in TIME-WAIT.
    TimeWait,
    /// Memory of a half-open connection at the listening end.
    Syn,
    /// Memory of one end of an idle connection.
    Idle,
    /// CPU time of one packet that comes alone to one of so many idle connections, at random.
    Packet,
    /// Churn where 256 segments arrive at once, each for a different connection.
    Burst,
    /// CPU time of a datagram there and back, both ends, each from a socket of its own.
    Datagrams,
}

impl Kind {
    const NAMES: [(Self, &str); 9] = [
        (Self::Churn, "churn"),
        (Self::Few, "few"),
        (Self::Ports, "ports"),
        (Self::TimeWait, "time-wait"),
        (Self::Syn, "syn"),
        (Self::Idle, "idle"),
        (Self::Packet, "packet"),
        (Self::Burst, "burst"),
        (Self::Datagrams, "datagrams"),
    ];

    /// Its name in calls of peers.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Unit of its values.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Churn
            | Self::Few
            | Self::Ports
            | Self::Packet
            | Self::Burst
            | Self::Datagrams => "us",
            Self::TimeWait | Self::Syn | Self::Idle => "B",
        }
    }

    /// The kind with this name.
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        let found = Self::NAMES.iter().find(|(_, candidate)| *candidate == name);
        found.map(|(kind, _)| *kind).ok_or_else(|| format!("{name}: no such case").into())
    }
}

/// Time limits of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// CPU time for coming to the scale; what was reached then is measured.
    pub(crate) fill: Duration,
    /// CPU time of what is measured.
    pub(crate) measure: Duration,
    /// Memory that it may fill, bytes.
    pub(crate) memory: u64,
}

impl Case {
    /// The words that call a peer's program.
    pub(crate) fn arguments(self, limits: &Limits) -> [String; 5] {
        [
            self.kind.name().to_owned(),
            self.scale.to_string(),
            limits.fill.as_millis().to_string(),
            limits.measure.as_millis().to_string(),
            (limits.memory >> 20).to_string(),
        ]
    }

    /// Reads the words of a case and its limits.
    pub(crate) fn read(words: &[String]) -> Result<(Self, Limits), Failure> {
        let [kind, scale, fill, measure, mebibytes] = words else {
            return Err("a peer is called with CASE SCALE FILL-MS MEASURE-MS MEMORY-MIB".into());
        };
        let limits = Limits {
            fill: Duration::from_millis(fill.parse()?),
            measure: Duration::from_millis(measure.parse()?),
            memory: mebibytes.parse::<u64>()? << 20,
        };
        Ok((Self { kind: Kind::named(kind)?, scale: scale.parse()? }, limits))
    }
}

/// A peer's answer to a case.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Answer {
    /// It did the work.
    Measured(Measured),
    /// It cannot, and why.
    Skipped(String),
}

/// Measurements of a peer.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Measured {
    /// The scale that was reached within the limits.
    pub(crate) scale: u64,
    /// Microseconds or bytes, see [`Kind::unit`].
    pub(crate) value: f64,
    /// Transferred amounts during the measurement.
    pub(crate) tally: Tally,
    /// Resources of the call, including setup, as its caller saw them.
    pub(crate) spent: Spent,
}

/// Resources of a call of a peer's program.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Spent {
    /// By the clock.
    pub(crate) wall: Duration,
    /// Of the processor.
    pub(crate) cpu: Duration,
}

/// Work of the applications: it proves that the work was done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tally {
    /// Connections from the first SYN to both ends closed; datagrams that came back.
    pub(crate) connections: u64,
    /// Bytes that servers read, compared with what clients sent.
    pub(crate) up: u64,
    /// Bytes that clients read, compared with what servers sent.
    pub(crate) down: u64,
}

impl Tally {
    /// The difference to `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            connections: self.connections - before.connections,
            up: self.up - before.up,
            down: self.down - before.down,
        }
    }

    /// Checks that each connection carried its request and its response. Connections in progress at the
    /// beginning or the end may carry theirs outside.
    pub(crate) fn check(self) -> Result<(), Failure> {
        let slack = u64::from(AT_A_TIME);
        let fits = |bytes: u64, size: usize| {
            bytes.is_multiple_of(size as u64)
                && (bytes / size as u64).abs_diff(self.connections) <= slack
        };
        if fits(self.up, REQUEST.len()) && fits(self.down, RESPONSE.len()) {
            return Ok(());
        }
        Err(format!("work was left out: {self:?}").into())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped(reason) => writeln!(f, "skip {reason}"),
            // The caller has seen its resources.
            Self::Measured(Measured { scale, value, tally, spent: _ }) => {
                writeln!(f, "scale {scale}\nvalue {value}")?;
                let Tally { connections, up, down } = tally;
                writeln!(f, "connections {connections}\nup {up}\ndown {down}")
            }
        }
    }
}

impl Answer {
    /// Reads what a peer wrote, and refuses what does not prove itself.
    pub(crate) fn read(kind: Kind, text: &str) -> Result<Self, Failure> {
        let mut measured = Measured::default();
        let Tally { connections, up, down } = &mut measured.tally;
        let mut named = 0;
        for line in text.lines() {
            let (name, value) = line.split_once(' ').ok_or_else(|| format!("{line}: no answer"))?;
            match name {
                "skip" => return Ok(Self::Skipped(value.to_owned())),
                "scale" => measured.scale = value.parse()?,
                "value" => measured.value = value.parse()?,
                "connections" => *connections = value.parse()?,
                "up" => *up = value.parse()?,
                "down" => *down = value.parse()?,
                _ => return Err(format!("{line}: not an answer").into()),
            }
            named += 1;
        }
        if named != 5 {
            return Err(format!("an answer has five lines, this has {named}").into());
        }
        if matches!(kind, Kind::Churn | Kind::Few) {
            if *connections == 0 {
                return Err("no connection was measured".into());
            }
            measured.tally.check()?;
        }
        if kind == Kind::Datagrams {
            let Tally { connections, up, down } = measured.tally;
            let bytes = connections * DATAGRAM as u64;
            if connections == 0 || (up, down) != (bytes, bytes) {
                return Err(format!("work was left out: {:?}", measured.tally).into());
            }
        }
        Ok(Self::Measured(measured))
    }
}

/// Connections that are under way at a time.
pub(crate) const AT_A_TIME: u32 = 64;
/// Connections at a time in [`Kind::Few`].
pub(crate) const FEW_AT_A_TIME: u32 = 4;
/// Text that a client sends in a short connection.
pub(crate) const REQUEST: [u8; 64] = [b'q'; 64];
/// Text that a server sends back.
pub(crate) const RESPONSE: [u8; 256] = [b'r'; 256];
/// Bytes of a datagram.
pub(crate) const DATAGRAM: usize = 64;
/// Ports that clients use, of each address.
pub(crate) const PORTS: std::ops::RangeInclusive<u16> = 1_024..=65_535;
/// The ports that are chosen from in [`Kind::Ports`]: Linux' and Whimbrel's default.
pub(crate) const CHOICE: std::ops::RangeInclusive<u16> = 32_768..=60_999;

/// Number of addresses that clients need: so few that most ports are used, 256 for 10,000,000.
pub(crate) fn client_addresses(waiting: u32) -> u32 {
    1 + waiting / 39_200
}

#[cfg(test)]
mod tests;
