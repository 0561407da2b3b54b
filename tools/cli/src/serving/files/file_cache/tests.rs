use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A directory of files, each of which repeats its number; removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(files: u8) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = format!("whimbrel-shelf-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        (0..files)
            .for_each(|number| fs::write(folder.join(number.to_string()), [number; 100]).unwrap());
        Self(folder)
    }

    fn path(&self, number: u8) -> PathBuf {
        self.0.join(number.to_string())
    }

    fn reader(&self, file_cache: &FileCache, number: u8) -> Reader {
        let path = self.path(number);
        file_cache.reader(&path, Identity::of(&fs::metadata(&path).unwrap()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn readers_beyond_open_file_limit_read_their_own_file() {
    let (folder, file_cache) = (Folder::new(5), FileCache::new(2));
    let readers: Vec<_> = (0..5).map(|number| folder.reader(&file_cache, number)).collect();
    assert_eq!(file_cache.open_files(), 0);
    for from in (0..100).step_by(10) {
        for (number, reader) in (0..).zip(&readers) {
            assert_eq!(reader.read(from, 10).unwrap(), [number; 10][..]);
            assert!(file_cache.open_files() <= 2);
        }
    }
    assert!(readers[0].read(100, 10).unwrap().is_empty(), "the end");
    drop(readers);
    assert_eq!(file_cache.open_files(), 0);
    assert!(file_cache.lock().read.is_empty());
}

/// A hundred read a piece by turns, two of them each time before one that reads on: its file is open all the time.
#[test]
fn file_in_use_stays_open_amid_flood_of_others() {
    let (folder, file_cache) = (Folder::new(101), FileCache::new(3));
    let others: Vec<_> = (0..100).map(|number| folder.reader(&file_cache, number)).collect();
    let honest = folder.reader(&file_cache, 100);
    honest.read(0, 1).unwrap();
    for burst in 0..1_000 {
        for other in 2 * burst..2 * burst + 2 {
            assert_eq!(others[other % 100].read(50, 50).unwrap(), [(other % 100) as u8; 50][..]);
        }
        assert!(file_cache.lock().read[&honest.identity].open.is_some(), "closed in {burst}");
        assert_eq!(honest.read(burst as u64 % 100, 1).unwrap(), [100][..]);
        assert_eq!(file_cache.open_files(), 3);
    }
}

#[test]
fn readers_of_one_file_share_a_descriptor() {
    let (folder, file_cache) = (Folder::new(1), FileCache::new(9));
    let readers: Vec<_> = (0..5).map(|_| folder.reader(&file_cache, 0)).collect();
    readers.iter().for_each(|reader| assert_eq!(reader.read(90, 90).unwrap().len(), 10));
    assert_eq!(file_cache.open_files(), 1);
    let mut readers = readers.into_iter();
    readers.by_ref().take(4).for_each(drop);
    assert_eq!(file_cache.open_files(), 1, "the last still reads");
    drop(readers);
    assert_eq!(file_cache.open_files(), 0);
}

#[test]
fn replaced_file_is_not_mistaken_for_the_old() {
    let (folder, file_cache) = (Folder::new(2), FileCache::new(1));
    let reader = folder.reader(&file_cache, 0);
    assert_eq!(reader.read(0, 10).unwrap(), [0; 10][..]);
    fs::rename(folder.path(1), folder.path(0)).unwrap();
    assert_eq!(reader.read(10, 10).unwrap(), [0; 10][..], "it is open still");
    fs::write(folder.path(1), [7; 100]).unwrap();
    assert_eq!(folder.reader(&file_cache, 1).read(0, 10).unwrap(), [7; 10][..]);
    let error = reader.read(20, 10).unwrap_err();
    assert_eq!(error.to_string(), "was changed while it was sent");
}
