//! Failures of commands, and their exit codes.

use std::fmt::Display;
use std::process::ExitCode;

use anstyle::AnsiColor;
use whimbrel_io::{PacketError, ThreadError, TunError, WireError, WorkerError};
use whimbrel_kernel::{BridgeError, KernelHostError};
use whimbrel_stack::link::AddressConflict;

use crate::need::Need;
use crate::quantity::thousands;
use crate::streams;

/// Reason of a command's failure. The text names the fault, the limit or value, and the remedy.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// It could not run, or ended early: 1.
    Run(String),
    /// A usage error: 2.
    Usage(String),
    /// It ran, and the answer, which is printed, is no: 3.
    Answer,
    /// It ran, but incompletely, as already reported: 1.
    Told,
    /// It ran, and --fail-if is true of the result: 3.
    Verdict(String),
    /// It ran on a machine too busy for its figures to mean something, which is printed: 5.
    Busy,
    /// The program that it ran ended with this code, which is reported by nothing else.
    Program(u8),
    /// The program that it was to run could not be started or is lost: this code, as shells have it.
    NoProgram(String, u8),
    /// A privilege or a device is missing: 4.
    Missing {
        /// The requirement, and how to get it.
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

    /// A usage error about the value of `option`.
    pub(crate) fn usage(option: &str, error: impl Display) -> Self {
        Self::Usage(format!("{option}: {error}"))
    }

    /// Prints the error, and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (text, code) = match self {
            Self::Run(text) => (text, 1),
            Self::Usage(text) => (format!("{text}\n\nFor more information, try '--help'."), 2),
            Self::Answer => return ExitCode::from(3),
            Self::Told => return ExitCode::from(1),
            Self::Busy => return ExitCode::from(5),
            Self::Program(code) => return ExitCode::from(code),
            Self::NoProgram(text, code) => (text, code),
            Self::Verdict(text) => (text, 3),
            Self::Missing { text, needs } => (text + &lines(needs), 4),
        };
        let style = AnsiColor::Red.on_default().bold();
        streams::tell_in(style, "error:", &text);
        ExitCode::from(code)
    }
}

/// The failure of work that was interrupted, whose result needs all parts.
pub(crate) fn interrupted(done: u64, all: usize, of: &str) -> Failure {
    let (done, all) = (thousands(done), thousands(all as u64));
    Failure::run(format!("interrupted: {done} of {all} {of} have run; the result needs all"))
}

/// Reports, during a run, that another station has one of the stack's addresses.
pub(crate) fn tell_conflict(conflict: AddressConflict) {
    let AddressConflict { addr, station } = conflict;
    warn(&format!(
        "{addr} is also in use by the station {station}: packets may reach either; change the \
         address of one"
    ));
}

/// Warns the user of something that does not stop a command.
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

/// Requirements of opening a device.
const TUN: &[Need] = &[Need::Tun, Need::NetAdmin];
