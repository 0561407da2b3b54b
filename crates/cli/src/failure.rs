//! Why a command failed, and the exit code that says so.

use std::fmt::Display;
use std::process::ExitCode;

use anstyle::AnsiColor;
use whimbrel_io::{PacketError, ThreadError, TunError, WireError, WorkerError};
use whimbrel_kernel::{BridgeError, KernelHostError};
use whimbrel_stack::link::AddressConflict;

use crate::need::Need;
use crate::quantity::thousands;
use crate::streams;

/// Why a command failed. The text names what was wrong, the limit or value, and the remedy.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// It could not run, or ended before it was asked to: 1.
    Run(String),
    /// A usage error: 2.
    Usage(String),
    /// It ran, and the answer, which is printed, is no: 3.
    Answer,
    /// It ran, and did not all that it was asked for, as was told when it happened: 1.
    Told,
    /// It ran, and what was measured is what --fail-if names: 3.
    Verdict(String),
    /// It ran on a machine too busy for its figures to mean something, which is printed: 5.
    Busy,
    /// A privilege or a device is missing: 4.
    Missing {
        /// What, and how to get it.
        text: String,
        /// The lines of `whimbrel doctor` that look at it.
        needs: &'static [Need],
    },
}

impl Failure {
    /// It could not run.
    pub(crate) fn run(error: impl Display) -> Self {
        Self::Run(error.to_string())
    }

    /// What is wrong with the value of `option`.
    pub(crate) fn usage(option: &str, error: impl Display) -> Self {
        Self::Usage(format!("{option}: {error}"))
    }

    /// Tells the user, and says with which code to exit.
    pub(crate) fn report(self) -> ExitCode {
        let (text, code) = match self {
            Self::Run(text) => (text, 1),
            Self::Usage(text) => (format!("{text}\n\nFor more information, try '--help'."), 2),
            Self::Answer => return ExitCode::from(3),
            Self::Told => return ExitCode::from(1),
            Self::Busy => return ExitCode::from(5),
            Self::Verdict(text) => (text, 3),
            Self::Missing { text, needs } => (text + &lines(needs), 4),
        };
        let style = AnsiColor::Red.on_default().bold();
        streams::tell_in(style, "error:", &text);
        ExitCode::from(code)
    }
}

/// Of work whose answer is that of all together: somebody did not wait for that.
pub(crate) fn interrupted(done: u64, all: usize, of: &str) -> Failure {
    let (done, all) = (thousands(done), thousands(all as u64));
    Failure::run(format!("interrupted: {done} of {all} {of} were run, and say nothing of the rest"))
}

/// Says, while a stack goes on, that another station has one of its addresses.
pub(crate) fn tell_conflict(conflict: AddressConflict) {
    let AddressConflict { addr, station } = conflict;
    warn(&format!(
        "{addr} is in use by the station {station}, too: what is sent to it may reach either; give one \
         of both another address"
    ));
}

/// Tells the user what a command goes on in spite of.
pub(crate) fn warn(text: &str) {
    let style = AnsiColor::Yellow.on_default().bold();
    streams::tell_in(style, "warning:", text);
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        let needs: &[Need] = match &error {
            WireError::Tun(TunError::NoDevice(_)) => &[Need::Tun],
            WireError::Tun(TunError::Privilege { .. }) => TUN,
            WireError::Packet(PacketError::Privilege { .. }) => &[Need::NetRaw],
            WireError::Packet(PacketError::NoFamily(_)) => &[Need::Packet],
            WireError::Packet(PacketError::MachinesAddress(_)) => {
                return Self::Run(error.to_string() + &lines(&[Need::KernelAddresses]));
            }
            WireError::Unix(error) if error.is_privilege() => &[Need::UnixSockets],
            WireError::NoDevice => return Self::usage("--wire", error),
            _ => return Self::run(error),
        };
        Self::Missing { text: error.to_string(), needs }
    }
}

impl From<BridgeError> for Failure {
    fn from(error: BridgeError) -> Self {
        match error {
            BridgeError::Tun(error) => WireError::Tun(error).into(),
            BridgeError::Namespace { error: ref cause, .. }
                if cause.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                Self::Missing { text: error.to_string(), needs: &[Need::Namespaces] }
            }
            _ => Self::Run(error.to_string()),
        }
    }
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        Self::run(error)
    }
}

impl From<ThreadError> for Failure {
    fn from(error: ThreadError) -> Self {
        Self::run(error)
    }
}

impl From<KernelHostError> for Failure {
    fn from(error: KernelHostError) -> Self {
        match error {
            KernelHostError::Tun(error) => WireError::Tun(error).into(),
            KernelHostError::Privilege { .. } => Self::Missing {
                text: error.to_string(),
                needs: &[Need::Namespaces, Need::NetAdmin],
            },
            _ => Self::Run(error.to_string()),
        }
    }
}

fn lines(needs: &[Need]) -> String {
    match needs {
        [] => String::new(),
        [need] => format!(" (see the line {} of `whimbrel doctor`)", need.name()),
        needs => {
            let names: Vec<_> = needs.iter().map(|need| need.name()).collect();
            format!(" (see the lines {} of `whimbrel doctor`)", names.join(" and "))
        }
    }
}

/// What opening a device takes.
const TUN: &[Need] = &[Need::Tun, Need::NetAdmin];
