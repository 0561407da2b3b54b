//! A file on its way in: written beside its place, and moved there when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use whimbrel_apps::http::{Response, Status, Upload};

/// A file on its way in. Readers see the old one or the new one, never a part. It is not forced to
/// the disk: a crash of the machine may lose it.
pub(super) struct FileUpload {
    file: File,
    temporary: Temporary,
    target: PathBuf,
    octets: u64,
}

impl FileUpload {
    /// Will put what comes at `name` in `parent`, which exists. `number` differs between uploads
    /// of this process.
    pub(super) fn begin(parent: &Path, name: &str, number: u64) -> Result<Self, Response> {
        let target = parent.join(name);
        // A symbolic link is replaced itself, not what it leads to.
        let there = fs::symlink_metadata(&target);
        if there.is_ok_and(|there| !there.is_file() && !there.is_symlink()) {
            let text = "what is there is no file, and PUT replaces only files\n";
            return Err(Response::text(Status::CONFLICT, text));
        }
        let temporary = parent.join(format!(".whimbrel-{}-{number}.part", std::process::id()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(|error| failed(&error))?;
        Ok(Self { file, temporary: Temporary(temporary), target, octets: 0 })
    }

    fn put_in_place(&self) -> io::Result<Status> {
        let status = if self.target.exists() { Status::OK } else { Status::CREATED };
        fs::rename(&self.temporary.0, &self.target)?;
        Ok(status)
    }
}

impl Upload for FileUpload {
    fn write(&mut self, octets: &[u8]) -> Result<(), Response> {
        self.octets += octets.len() as u64;
        self.file.write_all(octets).map_err(|error| failed(&error))
    }

    fn finish(self: Box<Self>) -> Response {
        match self.put_in_place() {
            Ok(status) => Response::text(status, format!("{} octets written\n", self.octets)),
            Err(error) => failed(&error),
        }
    }
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
