//! What this process and its threads take of the machine, and what they start.

pub use crate::sys::bpf::pin_to;
pub use crate::sys::process::{CpuTime, cpu_time, end_with_starter};
