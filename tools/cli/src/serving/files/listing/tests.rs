use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A directory of files with these names, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn of(test: &str, names: impl Iterator<Item = String>) -> Self {
        let path = std::env::temp_dir().join(format!("whimbrel-{test}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        names.for_each(|name| fs::write(path.join(name), "").unwrap());
        Self(path)
    }

    fn changed(&self) -> Duration {
        changed(&fs::metadata(&self.0).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Listings that count the names they read.
struct Counted {
    listings: Listings,
    looks: Arc<AtomicUsize>,
}

fn counted() -> Counted {
    let looks = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&looks);
    let listings = Listings::new(move |_, entry| {
        counter.fetch_add(1, Ordering::Relaxed);
        entry.file_type().ok()
    });
    Counted { listings, looks }
}

impl Folder {
    fn directory(&self, path: &str) -> Arc<Directory> {
        let path = PathNames::parse(path).unwrap();
        Arc::new(Directory { found: self.0.clone(), path })
    }
}

/// The page at `now`, and the number of names read for it.
fn ask(counted: &Counted, folder: &Folder, now: Duration) -> (String, usize) {
    let Counted { listings, looks } = counted;
    let directory = folder.directory("/");
    let before = looks.load(Ordering::Relaxed);
    let listing = listings.fresh(&directory, now).unwrap();
    let listing = listing.unwrap_or_else(|| listings.make(&directory, now).unwrap());
    let page = String::from_utf8(listing.page.to_vec()).unwrap();
    (page, looks.load(Ordering::Relaxed) - before)
}

#[test]
fn repeatedly_requested_page_is_made_once_a_second() {
    let folder = Folder::of("listed-again", (0..100).map(|number| number.to_string()));
    let listings = counted();
    let begin = folder.changed() + Duration::from_secs(1);
    let (page, looks) = ask(&listings, &folder, begin);
    assert!(looks == 100 && page.matches("<li>").count() == 100, "{page}");
    for millis in 0..1_000 {
        let again = ask(&listings, &folder, begin + Duration::from_millis(millis));
        assert_eq!(again, (page.clone(), 0));
    }
    assert_eq!(ask(&listings, &folder, begin + LIFETIME).1, 100);
}

#[test]
fn page_is_remade_when_a_name_appears() {
    let folder = Folder::of("listed-anew", (0..3).map(|number| number.to_string()));
    let listings = counted();
    // In the same step of the clock as the last change.
    let (_, looks) = ask(&listings, &folder, folder.changed());
    assert_eq!(looks, 3);
    fs::write(folder.0.join("new"), "").unwrap();
    assert_eq!(ask(&listings, &folder, folder.changed()).1, 4);
    let later = folder.changed() + Duration::from_millis(500);
    assert_eq!(ask(&listings, &folder, later).1, 4);
    assert_eq!(ask(&listings, &folder, later).1, 0);
}

#[test]
fn name_is_read_only_in_its_turn() {
    let folder = Folder::of("listed-later", (0..9).map(|number| number.to_string()));
    let Counted { listings, looks } = counted();
    let directory = || Arc::unwrap_or_clone(folder.directory("/"));
    let Ok(SiteResponse::Long(work)) = listings.answer(directory(), now()) else {
        panic!("at once")
    };
    assert_eq!(looks.load(Ordering::Relaxed), 0);
    assert_eq!(work.make().status, Status::OK);
    assert_eq!(looks.load(Ordering::Relaxed), 9);
}

#[test]
fn dropped_page_is_made_again_and_checked_for_changes() {
    let folder = Folder::of("listed-apart", (0..9).map(|number| number.to_string()));
    let Counted { listings, looks } = counted();
    let directory = folder.directory("/");
    let listing = listings.make(&directory, now()).unwrap();
    let page = listing.page.clone();
    let Body::Source { length, mut source } = listings.response(listing).body else { panic!() };
    assert_eq!(length, page.len() as u64);
    let mut got = source.read(100).unwrap().to_vec();
    assert!(got.len() == 100 && !source.is_long());
    let others = |from: u32| {
        (from..from + PAGES as u32).for_each(|number| {
            _ = listings.make(&folder.directory(&format!("/{number}/")), now()).unwrap();
        });
    };
    others(0);
    let before = looks.load(Ordering::Relaxed);
    assert!(source.is_long());
    got.extend_from_slice(&source.read(100).unwrap());
    assert_eq!(looks.load(Ordering::Relaxed) - before, 9);
    assert_eq!(got[..], page[..200]);
    others(0);
    fs::write(folder.0.join("new"), "").unwrap();
    assert_eq!(source.read(100), Err(SourceError), "it would be parts of two pages");
}

#[test]
fn unserved_names_count_towards_page_cost() {
    let folder = Folder::of("listed-many", (0..MOST + 200).map(|number| number.to_string()));
    let looks = Cell::new(0);
    let (names, more) = names(&folder.0, |_, _| {
        looks.set(looks.get() + 1);
        None
    })
    .unwrap();
    assert_eq!((names.len(), more, looks.get()), (0, true, MOST));
}

#[test]
fn few_pages_are_kept() {
    let folder = Folder::of("listed-few", ["a".to_owned()].into_iter());
    let Counted { listings, .. } = counted();
    for number in 0..100 {
        listings.make(&folder.directory(&format!("/{number}/")), now()).unwrap();
        assert!(listings.lock().len() <= PAGES);
    }
}

/// Others request three directories in each hundredth of ten seconds. A page that one client requests
/// as often is made only once a second; if they request more than are kept, it is made each time, and
/// complete.
#[test]
fn page_in_use_is_kept_amid_flood_of_others() {
    let folder = Folder::of("listed-amid", (0..9).map(|number| number.to_string()));
    let begin = folder.changed() + Duration::from_secs(1);
    for (others, made) in [(PAGES - 1, 10), (PAGES, 1_000)] {
        let listings = counted();
        let (page, mut looks) = ask(&listings, &folder, begin);
        for burst in 1..1_000 {
            let at = begin + Duration::from_millis(10) * burst as u32;
            for other in 0..others {
                let other = folder.directory(&format!("/{}/", burst * others + other));
                listings.listings.make(&other, at).unwrap();
            }
            let (again, more) = ask(&listings, &folder, at);
            assert_eq!(again, page);
            looks += more;
        }
        assert_eq!(looks, 9 * made, "{others} others each time");
    }
}
