use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use whimbrel_apps::http::Status;
use whimbrel_wire::{Address, Endpoint};

use super::super::file_cache::FileCache;
use super::super::upload::tests::Folder;
use super::*;

/// Counts how often it was woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A table of four uploads into one folder.
struct Uploads {
    folder: Folder,
    table: UploadTable,
}

impl Uploads {
    fn new() -> Self {
        Self { folder: Folder::new(), table: UploadTable::new(4) }
    }

    fn begin(&self, host: u8) -> Result<ActiveUpload, Response> {
        let all = Arc::default();
        let upload = FileUpload::begin(self.folder.path(), "target", &FileCache::new(1), &all)?;
        self.table.admit(source(host), upload)
    }

    fn begin_each(&self, hosts: &[u8]) -> Vec<ActiveUpload> {
        hosts.iter().map(|host| self.begin(*host).ok().expect("a place")).collect()
    }
}

fn source(host: u8) -> Source {
    Source::of(Some(Endpoint::new(Address::from(Ipv4Addr::new(10, 0, 0, host)), 1)))
}

/// Which uploads gave way.
fn displaced(uploads: &mut [ActiveUpload]) -> Vec<usize> {
    let gone = |(at, upload): (usize, &mut ActiveUpload)| upload.displaced().map(|_| at);
    uploads.iter_mut().enumerate().filter_map(gone).collect()
}

#[test]
fn greediest_source_loses_oldest_upload_to_newcomer() {
    let uploads = Uploads::new();
    let mut begun = uploads.begin_each(&[2, 1, 1, 1]);
    let bell = Arc::new(Bell::default());
    begun[1].watch(&Arc::clone(&bell).into());
    assert!(uploads.table.check(source(3)).is_ok());
    assert_eq!(bell.0.load(Ordering::Relaxed), 0, "a check displaces none");
    begun.push(uploads.begin(3).ok().expect("a place"));
    assert_eq!(displaced(&mut begun), [1]);
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    assert_eq!(uploads.folder.files().len(), 4, "its file is gone at once");
    let refused = begun[1].write(b"late").expect_err("it gave way");
    assert_eq!(refused.status, Status::SERVICE_UNAVAILABLE);
    assert_eq!(Box::new(begun.remove(1)).finish().status, Status::SERVICE_UNAVAILABLE);
    // The others are as they were.
    for upload in begun {
        assert!(matches!(Box::new(upload).finish().status, Status::CREATED | Status::OK));
    }
    assert_eq!(uploads.folder.files().len(), 1);
}

#[test]
fn newcomer_that_would_only_trade_places_is_refused() {
    for (hosts, newcomer) in [
        // The greedy one itself; one with one fewer; one without any, where all have one.
        ([1, 1, 1, 1], 1),
        ([1, 1, 1, 2], 1),
        ([1, 1, 2, 2], 2),
        ([1, 1, 3, 2], 2),
        ([1, 2, 3, 4], 5),
    ] {
        let uploads = Uploads::new();
        let mut begun = uploads.begin_each(&hosts);
        let refused = uploads.begin(newcomer).err().expect("no place");
        assert_eq!(refused.status, Status::SERVICE_UNAVAILABLE, "{hosts:?}");
        assert!(uploads.table.check(source(newcomer)).is_err());
        assert!(displaced(&mut begun).is_empty(), "{hosts:?}");
        assert_eq!(uploads.folder.files().len(), 4, "{hosts:?}");
    }
}

#[test]
fn among_equally_greedy_sources_the_oldest_upload_gives_way() {
    for (hosts, oldest) in [([2, 1, 1, 2], 0), ([1, 2, 2, 1], 0)] {
        let uploads = Uploads::new();
        let mut begun = uploads.begin_each(&hosts);
        begun.push(uploads.begin(3).ok().expect("a place"));
        assert_eq!(displaced(&mut begun), [oldest]);
    }
}

#[test]
fn places_are_free_again_after_uploads() {
    let uploads = Uploads::new();
    for round in 0..3 {
        let mut begun = uploads.begin_each(&[1, 1, 1, 1]);
        assert!(uploads.begin(1).is_err(), "{round}");
        begun.extend([uploads.begin(2).ok(), uploads.begin(3).ok()].into_iter().flatten());
        assert_eq!(displaced(&mut begun), [0, 1], "{round}");
        drop(begun);
        assert_eq!(uploads.folder.files(), []);
    }
    let table = uploads.table.lock();
    assert!(table.count == 0 && table.of_sources.is_empty());
}
