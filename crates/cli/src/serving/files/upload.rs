//! A file on its way in: written beside its place, and moved there when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Weak;

use whimbrel_apps::http::{Response, Status, Upload};
use whimbrel_io::entropy;

/// A file on its way in. Readers see the old one or the new one, never a part. It is not forced to
/// the disk: a crash of the machine may lose it.
pub(super) struct FileUpload {
    file: File,
    /// What came and is not written yet: less than a piece.
    pending: Vec<u8>,
    /// Those that go on, of which each has one.
    all: Weak<()>,
    temporary: Temporary,
    target: PathBuf,
    octets: u64,
}

impl FileUpload {
    /// Will put what comes at `name` in `parent`, which exists.
    pub(super) fn begin(parent: &Path, name: &str, all: Weak<()>) -> Result<Self, Response> {
        let target = parent.join(name);
        // A symbolic link is replaced itself, not what it leads to.
        let there = fs::symlink_metadata(&target);
        if there.is_ok_and(|there| !there.is_file() && !there.is_symlink()) {
            let text = "what is there is no file, and PUT replaces only files\n";
            return Err(Response::text(Status::CONFLICT, text));
        }
        let (file, temporary) = create_beside(parent).map_err(|error| failed(&error))?;
        Ok(Self { file, pending: Vec::new(), all, temporary, target, octets: 0 })
    }

    /// Writes what came, if a peer sends little at a time not before it is worth a system call.
    fn take(&mut self, mut octets: &[u8]) -> io::Result<()> {
        let piece = self.piece();
        while self.pending.len() + octets.len() >= piece {
            if self.pending.is_empty() {
                return self.file.write_all(octets);
            }
            let room = piece.saturating_sub(self.pending.len());
            let (front, rest) = octets.split_at(room.min(octets.len()));
            self.pending.extend_from_slice(front);
            self.file.write_all(&self.pending)?;
            self.pending.clear();
            octets = rest;
        }
        self.pending.extend_from_slice(octets);
        Ok(())
    }

    /// What this upload may keep: together they keep [`PIECE`], and some more of those that were first.
    fn piece(&self) -> usize {
        // One is no upload's, but the site's.
        let uploads = self.all.strong_count().saturating_sub(1).max(1);
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
    fn write(&mut self, octets: &[u8]) -> Result<(), Response> {
        self.octets += octets.len() as u64;
        self.take(octets).map_err(|error| failed(&error))
    }

    fn finish(mut self: Box<Self>) -> Response {
        match self.put_in_place() {
            Ok(status) => Response::text(status, format!("{} bytes written\n", self.octets)),
            Err(error) => failed(&error),
        }
    }
}

/// A new file in `parent`, by a name that nobody can have taken beforehand: neither with a file of
/// their own nor with a link to somebody else's, which O_EXCL would not follow.
fn create_beside(parent: &Path) -> io::Result<(File, Temporary)> {
    let name = entropy::name().map_err(io::Error::other)?;
    let path = parent.join(format!(".whimbrel-{name}.part"));
    let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
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
    let status = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Status::FORBIDDEN,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Status::INSUFFICIENT_STORAGE,
        _ => Status::INTERNAL_SERVER_ERROR,
    };
    Response::text(status, format!("cannot write the file: {error}\n"))
}

/// What is written at once, bytes, and so what an upload holds in memory at most if it is alone. A peer that
/// sends chunks of one byte would otherwise cost a system call for each. A client of HTTP/2 may have a hundred.
const PIECE: usize = 16 << 10;
/// The same where there are many.
const LEAST: usize = 512;

#[cfg(test)]
#[path = "upload/tests.rs"]
mod tests;
