//! From a capture to the cause and the setting: what happened to whose TCP, in which frames, and what to
//! change.
//!
//! An [`Explainer`] takes the packets of a capture one at a time, in a single pass, and models each flow: its
//! handshake, both directions with windows and what is in flight, losses, and who waits for whom. Its
//! [`Report`] has the findings, worst first, and where the time of each flow went. Comments in captures are
//! never read, and nothing is decided that the place of the capture does not show.
//!
//! Memory is bounded whatever the file has: the flows that are silent for longest are judged early and summed
//! up ([`Explainer::MOST_FLOWS`]).
//!
//! ```
//! use whimbrel_explain::{Explainer, Id};
//! use whimbrel_link::pcapng::LinkType;
//! use whimbrel_link::reader::Packet;
//!
//! // A SYN from 10.0.0.1 to port 80 of 10.0.0.2, and another, 1 s later; nothing comes back.
//! let mut syn = [0; 40];
//! syn[..4].copy_from_slice(&[0x45, 0, 0, 40]);
//! syn[9] = 6;
//! syn[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
//! syn[20..24].copy_from_slice(&[0x80, 1, 0, 80]);
//! (syn[32], syn[33]) = (0x50, 2);
//! let packet = |at| Packet { at, direction: None, link_type: LinkType::Raw, wire_len: 40, bytes: &syn };
//! let mut explainer = Explainer::new();
//! explainer.take(&packet(1_000_000_000));
//! explainer.take(&packet(2_000_000_000));
//! let report = explainer.finish();
//! assert_eq!(report.findings[0].id, Id::SynUnanswered);
//! assert_eq!(report.findings[0].frames, [2]);
//! ```
#![forbid(unsafe_code)]

mod duplicates;
mod evidence;
mod explainer;
mod findings;
mod flow;
mod half;
mod id;
mod ports;
mod report;
mod segment;
mod shares;
mod table;

pub use evidence::{Evidence, Socket};
pub use explainer::Explainer;
pub use findings::Confidence;
pub use id::Id;
pub use report::{Finding, FlowReport, Place, Report};
pub use shares::{TimeShares, Wait};
pub use whimbrel_link as link;
