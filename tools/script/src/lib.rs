//! Packet scripts: what a peer sends, what an application calls, and what must come of it, line by
//! line, in the language of packetdrill.
//!
//! ```text
//! text --parse--> Script --Setup::of--> what is configured
//!                   |
//!                   run: calls and packets go to a ScriptHost, what comes out is matched
//!
//! CallStep --lower--> Call --ScriptHost--> Returned --judge_call--> what it taught, or a mismatch
//! ```
//!
//! A [`ScriptHost`](host::ScriptHost) is a stack under test: a shard in virtual time, or a kernel.
#![forbid(unsafe_code)]

extern crate alloc;

pub mod ast;
pub mod call;
pub mod dialect;
pub mod host;
pub mod judge_call;
pub mod lower;
mod lower_error;
pub mod names;
pub mod packet;
pub mod parse;
pub mod report;
pub mod run;
pub mod setup;
pub mod shard_host;
pub mod shell;
pub mod snippet;
mod value;
