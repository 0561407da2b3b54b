//! What a device of your own is made of: the trait, and the types that it speaks of.
//!
//! [`StackBuilder::device`](crate::StackBuilder::device) takes it, and shows one. If all that you have is
//! packets, and no descriptor that becomes readable when some wait,
//! [`StackBuilder::packets`](crate::StackBuilder::packets) is what you want.

pub use whimbrel_base::Instant;
pub use whimbrel_base::packet::{RxChecksum, SegMeta, TxChecksum, TxSegment};
pub use whimbrel_io::device::{Device, DeviceCounters, MAX_BURST, TxOutcome};
pub use whimbrel_link::cut;
pub use whimbrel_stack::{Capabilities, Medium, RxFrame, Steering, TxBatch};
pub use whimbrel_wire::MacAddress;
