//! The [`Device`] trait for custom devices, and its types.
//!
//! [`StackBuilder::device`](crate::StackBuilder::device) takes a device and has an example. If there is
//! no descriptor that becomes readable when packets wait, use
//! [`StackBuilder::packets`](crate::StackBuilder::packets).

pub use whimbrel_base::Instant;
pub use whimbrel_base::packet::{RxChecksum, SegMeta, TxChecksum, TxSegment};
pub use whimbrel_io::device::{Device, DeviceCounters, MAX_BURST, TxOutcome};
pub use whimbrel_link::cut;
pub use whimbrel_stack::{Capabilities, Medium, RxFrame, Steering, TxBatch};
pub use whimbrel_wire::MacAddress;
