//! The receiving half of a connection, its sequence space and its buffer.

mod buffer;
mod chunk_pool;
mod chunks;
mod log;
mod out_of_order;
mod part;
mod receiver;
mod right_sizing;
mod sequence;

pub use buffer::{Held, RecvBuffer, Text};
pub use chunk_pool::ChunkPool;
pub use chunks::ChunkQueue;
pub(crate) use receiver::recv_scale;
pub use receiver::{Receiver, WindowBounds};
pub use right_sizing::{RightSizing, RoundTripEnd};
pub use sequence::RecvSequence;

/// Memory for short texts of a shard's connections: at most what a second text of a byte would open for its
/// connection alone.
pub type ShortTexts = whimbrel_base::SharedChunks<2048>;
