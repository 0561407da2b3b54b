//! Errors of reading a capture.

use std::io;
use std::path::PathBuf;

use whimbrel_link::reader::ReadError;

use crate::entropy::EntropyError;
use crate::text;

/// Reason why a capture cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PcapError {
    /// The file cannot be read.
    #[error("cannot read the capture {path}: {error}; give a file that can be read", path = text::path(.path))]
    Unreadable {
        /// Path of the capture.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is not a capture, or is damaged.
    #[error("the capture {path} cannot be replayed: {error}", path = text::path(.path))]
    Damaged {
        /// Path of the capture.
        path: PathBuf,
        /// The fault and its place.
        error: ReadError,
    },
    /// The system returned no random bytes for a station's address.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}
