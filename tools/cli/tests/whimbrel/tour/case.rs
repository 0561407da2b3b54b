//! One wrong use, as data.

use crate::running::Signal;

use super::peers::Peer;

/// A command line, where it is run, and what must come of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// The words behind `whimbrel`; what stands between two `'` is one word. `AT` is the address of the
    /// peer.
    pub(super) line: &'static str,
    /// Shell line around it; `@` stands for the command.
    pub(super) frame: &'static str,
    /// Its required end.
    pub(super) end: End,
    /// Words that the message must hold.
    pub(super) says: &'static [&'static str],
    /// Destination of the result.
    pub(super) stdout: Stdout,
    /// Place of the run.
    pub(super) within: Within,
    /// Server on the machine's own loopback.
    pub(super) peer: Option<Peer>,
    /// Signal sent to it while it runs.
    pub(super) signal: Option<(Ready, Signal)>,
    /// Files that it is to leave in its folder.
    pub(super) leaves: &'static [&'static str],
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// With this exit code.
    Code(i32),
    /// The signal kills it, by the system's default.
    BySignal,
    /// It continues, and SIGTERM then ends it with 0.
    GoesOn,
}

/// Destination of a command's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stdout {
    /// To the test.
    Read,
    /// To a disk that is full.
    Full,
    /// A pipe without a reader.
    Closed,
}

/// Place of a command's run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Within {
    /// With the test's own rights.
    Anywhere,
    /// As a user without any rights.
    Ordinary,
    /// By root in a network namespace with a veth pair, `vkernel` and `vstack`.
    Net,
}

/// When a command is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ready {
    /// When it handles signals.
    Handling,
    /// When it has written a line, too.
    Telling,
}

impl Case {
    /// `line` is a usage error with this text.
    pub(super) const fn usage(line: &'static str, says: &'static [&'static str]) -> Self {
        Self::ends(line, End::Code(2), says)
    }

    /// `line` cannot be done.
    pub(super) const fn fails(line: &'static str, says: &'static [&'static str]) -> Self {
        Self::ends(line, End::Code(1), says)
    }

    /// A privilege or a device is missing for `line`.
    pub(super) const fn lacks(line: &'static str, says: &'static [&'static str]) -> Self {
        Self::ends(line, End::Code(4), says)
    }

    /// `line` is not wrong, whatever happens around it.
    pub(super) const fn works(line: &'static str) -> Self {
        Self::ends(line, End::Code(0), &[])
    }

    /// `line` ends like this, with this text.
    pub(super) const fn ends(line: &'static str, end: End, says: &'static [&'static str]) -> Self {
        Self {
            line,
            frame: "exec @",
            end,
            says,
            stdout: Stdout::Read,
            within: Within::Anywhere,
            peer: None,
            signal: None,
            leaves: &[],
        }
    }

    /// A shell does this around it.
    pub(super) const fn framed(self, frame: &'static str) -> Self {
        Self { frame, ..self }
    }

    /// It is run there.
    pub(super) const fn within(self, within: Within) -> Self {
        Self { within, ..self }
    }

    /// Its result goes there.
    pub(super) const fn into(self, stdout: Stdout) -> Self {
        Self { stdout, ..self }
    }

    /// It leaves these files.
    pub(super) const fn leaving(self, leaves: &'static [&'static str]) -> Self {
        Self { leaves, ..self }
    }

    /// This is its peer.
    pub(super) const fn with(self, peer: Peer) -> Self {
        Self { peer: Some(peer), ..self }
    }

    /// It is sent this signal.
    pub(super) const fn sent(self, ready: Ready, signal: Signal) -> Self {
        Self { signal: Some((ready, signal)), ..self }
    }

    /// True if both are the same use.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let of = |case: &Self| (case.line, case.frame, case.stdout, case.within, case.peer);
        of(self) == of(other) && self.signal == other.signal
    }

    /// Its words, for a peer at this address.
    pub(super) fn words(&self, at: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (place, part) in self.line.replace("AT", at).split('\'').enumerate() {
            match place % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }
}
