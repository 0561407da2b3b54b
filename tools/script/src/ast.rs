//! A script as written; names have no meaning here.

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

/// A packet script: options, then steps in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    /// `--name=value` lines, in order.
    pub options: Vec<OptionLine>,
    /// The block of shell lines at the head, if there is one.
    pub setup: Option<Shell>,
    /// Steps, in order.
    pub steps: Vec<Step>,
    /// The block of shell lines at the foot, if there is one.
    pub cleanup: Option<Shell>,
}

/// An option of the script: `--name=value`, or `--name`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionLine {
    /// Line number (from 1).
    pub line: u32,
    /// The name, without the dashes in front.
    pub name: String,
    /// Value after `=`, if there is one.
    pub value: Option<String>,
}

/// A shell command: the text between backquotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shell {
    /// First line (from 1).
    pub line: u32,
    /// Text between the quotes; may have many lines.
    pub text: String,
}

/// An action or an expectation, with its time.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Line number (from 1).
    pub line: u32,
    /// The time, absolute or since the step before.
    pub when: EventTime,
    /// Action at that time.
    pub action: Action,
}

/// Action of the script or the host.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// A packet, in or out.
    Packet(Packet),
    /// A call of the application.
    Call(CallStep),
    /// Statements about `tcp_info`, between `%{` and `}%`.
    Snippet(Snippet),
    /// A backquoted command between steps.
    Shell(Shell),
    /// A known but unsupported element of the language: UDP, GRE, … The script is skipped, with
    /// this text as the reason.
    Unsupported(String),
}
