//! An incoming file: written next to its place, and moved there when complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_apps::http::{Response, Status, Upload};
use whimbrel_io::{descriptors, entropy};

use super::file_cache::FileCache;
use super::unavailable;

/// A file on its way in. Readers see the old one or the new one, never a part. It is not forced to
/// the disk: a crash of the machine may lose it.
pub(super) struct FileUpload {
    file: File,
    /// Bytes that are not written yet: less than a piece.
    pending: Vec<u8>,
    /// Shared by all uploads, and by their site.
    all: Arc<()>,
    temporary: Temporary,
    target: PathBuf,
    bytes: u64,
}

impl FileUpload {
    /// Begins an upload to `name` in `parent`, which exists.
    pub(super) fn begin(
        parent: &Path,
        name: &str,
        file_cache: &FileCache,
        all: &Arc<()>,
    ) -> Result<Self, Response> {
        let target = parent.join(name);
        // A symbolic link is replaced itself, not its target.
        let there = fs::symlink_metadata(&target);
        if there.is_ok_and(|there| !there.is_file() && !there.is_symlink()) {
            let text = "the target is not a file, and PUT replaces only files\n";
            return Err(Response::text(Status::CONFLICT, text));
        }
        let (file, temporary) =
            create_sibling(parent, file_cache).map_err(|error| failed(&error))?;
        Ok(Self { file, pending: Vec::new(), all: Arc::clone(all), temporary, target, bytes: 0 })
    }

    /// Writes bytes; small pieces wait until they are worth a system call.
    fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let piece = self.piece();
        while self.pending.len() + bytes.len() >= piece {
            if self.pending.is_empty() {
                return self.file.write_all(bytes);
            }
            let room = piece.saturating_sub(self.pending.len());
            let (front, rest) = bytes.split_at(room.min(bytes.len()));
            self.pending.extend_from_slice(front);
            self.file.write_all(&self.pending)?;
            self.pending.clear();
            bytes = rest;
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    /// Number of bytes that this upload may keep: together uploads keep [`PIECE`], and the first ones
    /// some more.
    fn piece(&self) -> usize {
        // One is no upload's, but the site's.
        let uploads = Arc::strong_count(&self.all).saturating_sub(1).max(1);
        (PIECE / uploads).max(LEAST)
    }

    fn put_in_place(&mut self) -> io::Result<Status> {
        self.file.write_all(&self.pending)?;
        let status = if self.target.exists() { Status::OK } else { Status::CREATED };
        fs::rename(&self.temporary.0, &self.target)?;
        Ok(status)
    }
}

impl Upload for FileUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Response> {
        self.bytes += bytes.len() as u64;
        self.take(bytes).map_err(|error| failed(&error))
    }

    fn finish(mut self: Box<Self>) -> Response {
        match self.put_in_place() {
            Ok(status) => Response::text(status, format!("{} bytes written\n", self.bytes)),
            Err(error) => failed(&error),
        }
    }
}

/// A new file in `parent`, by a name that no user can have taken before, neither for a file nor for a
/// link to another user's file, which O_EXCL would not follow.
fn create_sibling(parent: &Path, file_cache: &FileCache) -> io::Result<(File, Temporary)> {
    let name = entropy::name().map_err(io::Error::other)?;
    let path = parent.join(format!(".whimbrel-{name}.part"));
    let file = file_cache.open_by(OpenOptions::new().write(true).create_new(true), &path)?;
    Ok((file, Temporary(path)))
}

/// Removed when it goes, unless it was moved.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // Not there any more if it was moved.
        let _ = fs::remove_file(&self.0);
    }
}

fn failed(error: &io::Error) -> Response {
    if descriptors::are_used_up(error) {
        return unavailable("no file descriptor is free (`ulimit -n`): try again\n");
    }
    let status = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Status::FORBIDDEN,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Status::INSUFFICIENT_STORAGE,
        _ => Status::INTERNAL_SERVER_ERROR,
    };
    Response::text(status, format!("cannot write the file: {error}\n"))
}

/// Bytes written at once, and so the most that one upload holds in memory. Without it, chunks of one
/// byte would cost a system call each. A client of HTTP/2 may have a hundred.
const PIECE: usize = 16 << 10;
/// The least if there are many uploads.
const LEAST: usize = 512;

#[cfg(test)]
#[path = "upload/tests.rs"]
pub(super) mod tests;
