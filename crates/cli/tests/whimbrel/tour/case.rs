//! One wrong use, as data.

use crate::running::Signal;

use super::peers::Peer;

/// A command line, where it is run, and what must come of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// The words behind `whimbrel`; what stands between two `'` is one word. `AT` is the address of the
    /// peer.
    pub(super) line: &'static str,
    /// What a shell does around it; `@` stands for the command.
    pub(super) frame: &'static str,
    /// How it has to end.
    pub(super) end: End,
    /// Words that the message must hold.
    pub(super) says: &'static [&'static str],
    /// Where the result goes.
    pub(super) stdout: Stdout,
    /// Where it is run.
    pub(super) within: Within,
    /// Who answers, on the machine's own loopback.
    pub(super) peer: Option<Peer>,
    /// What it is sent when it is under way.
    pub(super) signal: Option<(Ready, Signal)>,
    /// Files that it is to leave in its folder.
    pub(super) leaves: &'static [&'static str],
}

/// How a command ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// With this exit code.
    Code(i32),
    /// The signal takes it, as the system has it.
    BySignal,
    /// It goes on, and SIGTERM then ends it with 0.
    GoesOn,
}

/// Where a command's result goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stdout {
    /// To the test.
    Read,
    /// To a disk that is full.
    Full,
    /// To a pipe that nobody reads.
    Closed,
}

/// Where a command is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Within {
    /// As whoever runs the test.
    Anywhere,
    /// As somebody without any rights.
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
    /// `line` means nothing: a usage error that says this.
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

    /// `line` ends like this, and says this.
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

    /// Whether both are the same use.
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
