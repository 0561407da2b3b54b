//! The files that are being sent: of any number of them, a bounded number is open.
//!
//! A slow reader reads rarely. At the limit, the cache closes the file that was read longest ago, and
//! opens it again for its reader's next piece; it must then be the same by device, inode, length and
//! time of change. Readers of one file share a descriptor. Rejected: a descriptor for each response,
//! because a hundred peers who never read take all; a limit on responses, for the same reason; and
//! opening for each piece, because each replaced file would cut its readers off.

use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use whimbrel_io::descriptors;

/// The open files of a server.
#[derive(Clone)]
pub(super) struct FileCache(Arc<Mutex<Files>>);

/// Identity that tells a file from another of its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    /// The file's length, bytes.
    pub(super) length: u64,
    changed: (i64, i64),
}

struct Files {
    /// Limit of open files.
    most: usize,
    /// Files that have readers, open or not.
    read: BTreeMap<Identity, ReadFile>,
    /// Those that are open, by their last use.
    uses: BTreeMap<u64, Identity>,
    clock: u64,
}

struct ReadFile {
    readers: usize,
    open: Option<(u64, File)>,
}

/// A reader of one of the files, which counts as long as it lives.
pub(super) struct Reader {
    file_cache: FileCache,
    identity: Identity,
    path: Box<Path>,
}

impl FileCache {
    /// Up to `most` open files, one at least.
    pub(super) fn new(most: usize) -> Self {
        let files =
            Files { most: most.max(1), read: BTreeMap::new(), uses: BTreeMap::new(), clock: 0 };
        Self(Arc::new(Mutex::new(files)))
    }

    /// Opens a file for a moment, as long as the caller has it. Without a free descriptor, a reader's
    /// is closed for it.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        self.open_by(File::options().read(true), path)
    }

    /// Opens a file in this way. Without a free descriptor, a reader's is closed for it.
    pub(super) fn open_by(&self, how: &OpenOptions, path: &Path) -> io::Result<File> {
        self.lock().open(how, path)
    }

    /// A reader of that file. It is opened when it is read.
    pub(super) fn reader(&self, path: &Path, identity: Identity) -> Reader {
        let none = ReadFile { readers: 0, open: None };
        self.lock().read.entry(identity).or_insert(none).readers += 1;
        Reader { file_cache: self.clone(), identity, path: path.into() }
    }

    /// Number of open files.
    #[cfg(test)]
    pub(super) fn open_files(&self) -> usize {
        self.lock().uses.len()
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// Up to `at_most` bytes from place `from` on; none at the end.
    pub(super) fn read(&self, from: u64, at_most: usize) -> io::Result<Bytes> {
        let mut files = self.file_cache.lock();
        let file = files.at(self.identity, &self.path)?;
        read_at(file, from, at_most as u64)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut files = self.file_cache.lock();
        let Some(file) = files.read.get_mut(&self.identity) else { return };
        file.readers -= 1;
        if file.readers == 0 {
            let last = files.read.remove(&self.identity).and_then(|file| file.open);
            if let Some((used, _)) = last {
                files.uses.remove(&used);
            }
        }
    }
}

impl Files {
    fn open(&mut self, how: &OpenOptions, path: &Path) -> io::Result<File> {
        loop {
            match how.open(path) {
                Err(error) if descriptors::are_used_up(&error) && self.close_oldest() => {}
                opened => return opened,
            }
        }
    }

    /// The file of a reader, open.
    fn at(&mut self, identity: Identity, path: &Path) -> io::Result<&File> {
        self.clock += 1;
        let now = self.clock;
        let open = self.read.get_mut(&identity).and_then(|file| file.open.take());
        let file = match open {
            Some((used, file)) => {
                self.uses.remove(&used);
                file
            }
            None => {
                while self.uses.len() >= self.most && self.close_oldest() {}
                let file = self.open(File::options().read(true), path)?;
                if Identity::of(&file.metadata()?) != identity {
                    return Err(io::Error::other("was changed while it was sent"));
                }
                file
            }
        };
        self.uses.insert(now, identity);
        let place = self.read.entry(identity).or_insert(ReadFile { readers: 0, open: None });
        Ok(&place.open.insert((now, file)).1)
    }

    /// Closes the file that was read longest ago. Returns true if there was one.
    fn close_oldest(&mut self) -> bool {
        let Some((_, identity)) = self.uses.pop_first() else { return false };
        if let Some(file) = self.read.get_mut(&identity) {
            file.open = None;
        }
        true
    }
}

impl Identity {
    /// The identity in this metadata.
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Up to `at_most` bytes from place `from` on. Not by pread(2), which the standard library has only
/// for buffers that were written before.
pub(super) fn read_at(mut file: &File, from: u64, at_most: u64) -> io::Result<Bytes> {
    let mut bytes = Vec::with_capacity(usize::try_from(at_most).unwrap_or(0));
    file.seek(SeekFrom::Start(from))?;
    file.take(at_most).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

#[cfg(test)]
#[path = "file_cache/tests.rs"]
mod tests;
