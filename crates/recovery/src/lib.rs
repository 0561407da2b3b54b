//! Congestion control and loss recovery of TCP: what is in flight, what of it was lost, and how much
//! may leave.
//!
//! Nothing here knows a header or a counter. Positions are 64-bit stream offsets, time is an argument,
//! and what a caller may want to count is returned as [`RecoveryEvents`].
//!
//! A sender has a [`Flight`](flight::Flight), its [`Recovery`], and a [`Window`](cc::Window) that a
//! [`CongestionControl`](cc::CongestionControl) sets. Of five segments the first is lost, and the four
//! behind it arrive:
//!
//! ```
//! use core::time::Duration;
//! use whimbrel_recovery::base::Instant;
//! use whimbrel_recovery::cc::{Algorithm, CcState, Control, SlowStart, Window};
//! use whimbrel_recovery::flight::{Delivered, Flight};
//! use whimbrel_recovery::{Acked, Path, Reaction, Recovery};
//!
//! const MSS: u16 = 1_000;
//! let (mut flight, mut recovery) = (Flight::default(), Recovery::default());
//! let mut window = Window::new(Algorithm::CUBIC, MSS.into());
//! let mut cc = CcState::default();
//!
//! // All five leave at once.
//! let sent = Instant::ZERO;
//! flight.transmit(0..5_000, MSS, sent);
//!
//! // 100 ms later the peer names the last four.
//! let mut delivered = Delivered::default();
//! flight.sack(1_000..5_000, &mut delivered);
//! let path = Path {
//!     now: sent + Duration::from_millis(100),
//!     sack: true,
//!     mss: MSS.into(),
//!     srtt: Some(Duration::from_millis(100)),
//!     min_rtt: None,
//!     reorders: false,
//! };
//! let acked = Acked {
//!     advances: false,
//!     text: 0,
//!     delivered,
//!     duplicate: None,
//!     is_duplicate: true,
//!     echoed: None,
//!     rtt: None,
//!     can_send_new: false,
//!     path,
//!     slow_start: SlowStart::default(),
//! };
//! let mut control = Control { window: &mut window, state: &mut cc };
//! let (reaction, events) = recovery.on_ack(&mut flight, &mut control, &acked);
//!
//! assert_eq!(reaction, Reaction::None);
//! assert!(events.sack_recovery);
//! assert_eq!(flight.lost().first(), Some(0..1_000));
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cc;
pub mod flight;
mod pacer;
mod recovery;
mod route_metrics;

pub use pacer::{Pacer, PacingRatios};
pub use recovery::{Acked, CaState, MtuProbeOutcome, Path, Reaction, Recovery, RecoveryEvents};
pub use route_metrics::RouteMetrics;
pub use whimbrel_base as base;
