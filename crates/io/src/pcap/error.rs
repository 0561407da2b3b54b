//! Why a capture cannot be replayed.

use std::io;
use std::path::PathBuf;

use whimbrel_link::reader::ReadError;

use crate::entropy::EntropyError;
use crate::text;

/// Why a capture cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PcapError {
    /// The file cannot be read.
    #[error("cannot read the capture {path}: {error}; give a file that can be read", path = text::path(.path))]
    Unreadable {
        /// The path of the capture.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// What stands in it is no capture, or a damaged one.
    #[error("the capture {path} cannot be replayed: {error}", path = text::path(.path))]
    Damaged {
        /// The path of the capture.
        path: PathBuf,
        /// What is wrong, and where.
        error: ReadError,
    },
    /// The system gave no random bytes for a station's address.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}
