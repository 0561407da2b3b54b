use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// An empty directory, removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("whimbrel-upload-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Its contents: names and sizes, in order.
    pub(crate) fn files(&self) -> Vec<(String, u64)> {
        let entries = fs::read_dir(&self.0).unwrap().map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())
        });
        let mut files: Vec<_> = entries.collect();
        files.sort();
        files
    }

    fn begin(&self) -> FileUpload {
        FileUpload::begin(&self.0, "target", &FileCache::new(1), &Arc::default())
            .map_err(|refused| refused.status)
            .unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn temporary_name_is_unpredictable() {
    let folder = Folder::new();
    let uploads = [folder.begin(), folder.begin()];
    let digits = folder.files().into_iter().map(|(name, _)| {
        let digits = name.strip_prefix(".whimbrel-").and_then(|name| name.strip_suffix(".part"));
        u128::from_str_radix(digits.unwrap(), 16).unwrap()
    });
    let numbers: Vec<_> = digits.collect();
    // Two random numbers are not near each other: 96 bits would have to agree.
    assert!(numbers[0] >> 32 != numbers[1] >> 32, "{numbers:x?}");
    drop(uploads);
    assert_eq!(folder.files(), [], "what was not finished goes");
}

#[test]
fn one_byte_chunks_are_written_together() {
    let folder = Folder::new();
    let mut upload = folder.begin();
    let mut write = |bytes: &[u8]| upload.write(bytes).map_err(|refused| refused.status).unwrap();
    (0..PIECE - 1).for_each(|at| write(&[at as u8]));
    assert_eq!(folder.files()[0].1, 0, "nothing was worth a system call yet");
    write(&[7, 8, 9]);
    assert_eq!(folder.files()[0].1, PIECE as u64);
    // Large pieces bypass the buffer, after the bytes in it.
    write(&vec![1; 3 * PIECE]);
    assert!(folder.files()[0].1 > 3 * PIECE as u64);
    Box::new(upload).finish();
    let written = fs::read(folder.0.join("target")).unwrap();
    let mut sent: Vec<u8> = (0..PIECE - 1).map(|at| at as u8).collect();
    sent.extend([7, 8, 9]);
    sent.resize(sent.len() + 3 * PIECE, 1);
    assert!(written == sent, "{} bytes of {}", written.len(), sent.len());
}

#[test]
fn upload_memory_is_bounded_for_any_piece_size() {
    let folder = Folder::new();
    let mut upload = folder.begin();
    for size in [1, 1_448, PIECE - 1, PIECE, PIECE + 1, 7, 600_000] {
        upload.write(&vec![0; size]).map_err(|refused| refused.status).unwrap();
        assert!(upload.pending.len() < PIECE, "{size}");
        assert!(upload.pending.capacity() <= 2 * PIECE, "{size}");
    }
}

#[test]
fn failed_upload_is_reported_and_removed() {
    let folder = Folder::new();
    let mut upload = folder.begin();
    upload.write(b"text").map_err(|refused| refused.status).unwrap();
    // A directory exists there by now: no file is renamed to that.
    fs::create_dir(folder.0.join("target")).unwrap();
    let response = Box::new(upload).finish();
    assert_eq!(response.status, Status::INTERNAL_SERVER_ERROR);
    assert_eq!(folder.files().len(), 1, "{:?}", folder.files());
}
