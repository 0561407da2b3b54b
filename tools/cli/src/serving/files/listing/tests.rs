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
fn page_is_remade_if_made_within_clock_tick_of_change() {
    let folder = Folder::of("listed-tick", ["a".to_owned()].into_iter());
    let nanosecond = Duration::from_nanos(1);
    for (after, looks) in [(CLOCK_TICK, 1), (CLOCK_TICK + nanosecond, 0)] {
        let listings = counted();
        let made = folder.changed() + after;
        ask(&listings, &folder, made);
        assert_eq!(ask(&listings, &folder, made).1, looks, "{after:?}");
        assert_eq!(listings.listings.lock().len(), 1, "a page replaces its predecessor");
    }
    assert!(CLOCK_TICK >= Duration::from_millis(10), "the longest tick of Linux (CONFIG_HZ=100)");
}

#[test]
fn page_made_for_one_request_serves_all_that_wait() {
    let folder = Folder::of("listed-once", (0..9).map(|number| number.to_string()));
    while now() <= folder.changed() + CLOCK_TICK {
        std::thread::yield_now();
    }
    let Counted { listings, looks } = counted();
    let works =
        [(); 3].map(|()| PageWork { listings: listings.clone(), directory: folder.directory("/") });
    let at = now();
    for work in works {
        assert_eq!(Box::new(work).make().status, Status::OK);
    }
    // Unless the machine stood still for the page's whole lifetime.
    assert!(looks.load(Ordering::Relaxed) == 9 || now() - at >= LIFETIME);
}

#[test]
fn page_links_names_in_order_and_hides_dotted_ones() {
    let names = (0..99).map(|number| format!("{}", number * 37 % 99 + 100));
    let folder = Folder::of("listed-order", names.chain([".hidden".into(), "q&\"<>'".into()]));
    fs::create_dir(folder.0.join("dir")).unwrap();
    let served = |path: &PathNames, entry: &DirEntry| {
        assert!(!path.directory, "an entry is named as a file");
        entry.file_type().ok()
    };
    let page = page(&folder.0, &PathNames::parse("/up/").unwrap(), &served).unwrap();
    let links: Vec<_> =
        page.split("href=\"./").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let expected: Vec<_> = (100..199).map(|number| number.to_string()).collect();
    assert_eq!(links[..99], expected);
    assert!(
        links[99] == "dir/" && links[100].starts_with("q%26") && links.len() == 101,
        "{links:?}"
    );
    assert!(
        page.contains("<a href=\"./dir/\">dir/</a>") && page.contains("<h1>/up</h1>"),
        "{page}"
    );
    assert!(page.contains(">q&amp;&quot;&lt;&gt;'</a>"), "{page}");
    // Of too many names those that were looked at are in order, too.
    let folder = Folder::of("listed-cut", (0..1_100).map(|number| format!("{number:04}")));
    let (names, more) = self::names(&folder.0, |_, entry| entry.file_type().ok()).unwrap();
    assert!(more && names.len() == 1_000 && names.is_sorted());
}

#[test]
fn control_characters_of_names_are_not_on_page() {
    assert!(!escape("a\x1b[2J").contains('\x1b'));
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
    let first = source.read(100).unwrap();
    assert!(first.is_unique(), "a waiting piece keeps no page");
    let mut got = first.to_vec();
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
    let folder = Folder::of("listed-many", (0..1_200).map(|number| number.to_string()));
    let looks = Cell::new(0);
    let (names, more) = names(&folder.0, |_, _| {
        looks.set(looks.get() + 1);
        None
    })
    .unwrap();
    assert_eq!((names.len(), more, looks.get()), (0, true, 1_000));
}

#[test]
fn few_pages_are_kept() {
    let folder = Folder::of("listed-few", ["a".to_owned()].into_iter());
    let Counted { listings, .. } = counted();
    for number in 0..100 {
        listings.make(&folder.directory(&format!("/{number}/")), now()).unwrap();
        assert_eq!(listings.lock().len(), (number + 1).min(4));
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
