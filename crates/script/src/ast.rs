//! A script as it was written: nothing here knows what a name means.

mod call;
mod packet;
mod snippet;
mod time;

pub use call::{Arg, CallStep, Expected, Field};
pub use packet::{
    Ack, Direction, Ecn, IcmpPacket, IpMarks, OptionList, Packet, PacketBody, PacketEnds, Quoted,
    Seq, TcpOption, TcpPacket,
};
pub use snippet::{Operator, Snippet, Statement, Term, Unary};
pub use time::{Ending, EventTime};

use alloc::string::String;
use alloc::vec::Vec;

/// A packet script as it was read: options, then steps in their order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// `--name=value` lines, in order.
    pub options: Vec<OptionLine>,
    /// The block of shell lines at the head, if there is one.
    pub setup: Option<Shell>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// The block of shell lines at the foot, if there is one.
    pub cleanup: Option<Shell>,
}

/// An option of the script's own: `--name=value`, or `--name`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionLine {
    /// Where it stands (1 ..).
    pub line: u32,
    /// The name, without the dashes in front.
    pub name: String,
    /// What stands behind `=`, if there is one.
    pub value: Option<String>,
}

/// A shell command: the text between backquotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shell {
    /// Where it begins (1 ..).
    pub line: u32,
    /// Between the quotes; may have many lines.
    pub text: String,
}

/// Something that happens or is expected, and when.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Where it stands (1 ..).
    pub line: u32,
    /// The time, absolute or since the step before.
    pub when: EventTime,
    /// What happens at that time.
    pub action: Action,
}

/// What a step has the script do, or the host.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A packet, in or out.
    Packet(Packet),
    /// A call of the application.
    Call(CallStep),
    /// Statements about `tcp_info`, between `%{` and `}%`.
    Snippet(Snippet),
    /// A backquoted command in the middle.
    Shell(Shell),
    /// Something of the language's that this parser knows and does not support: UDP, GRE, … The
    /// script is skipped, with this text as the reason.
    Unsupported(String),
}
