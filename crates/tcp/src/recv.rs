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
mod short_texts;

pub use buffer::{Held, RecvBuffer, Text};
pub use chunk_pool::ChunkPool;
pub use chunks::ChunkQueue;
pub(crate) use receiver::recv_scale;
pub use receiver::{Receiver, WindowBounds};
pub use right_sizing::{RightSizing, RoundTripEnd};
pub use sequence::RecvSequence;
pub use short_texts::ShortTexts;
