use std::cell::Cell;
use std::path::PathBuf;

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

/// The page at `now`, and how many names it cost a look at.
fn ask(listings: &mut Listings, folder: &Folder, now: Duration) -> (String, usize) {
    let looks = Cell::new(0);
    let root = PathNames::parse("/").unwrap();
    let response = listings.page(&folder.0, &root, now, |_, entry| {
        looks.set(looks.get() + 1);
        entry.file_type().ok()
    });
    let Body::Bytes(page) = response.unwrap().body else { panic!("a page is bytes") };
    (String::from_utf8(page.to_vec()).unwrap(), looks.get())
}

#[test]
fn a_page_that_is_asked_for_again_and_again_is_made_once_a_second() {
    let folder = Folder::of("listed-again", (0..100).map(|number| number.to_string()));
    let mut listings = Listings::default();
    let begin = folder.changed() + Duration::from_secs(1);
    let (page, looks) = ask(&mut listings, &folder, begin);
    assert!(looks == 100 && page.matches("<li>").count() == 100, "{page}");
    for millis in 0..1_000 {
        let again = ask(&mut listings, &folder, begin + Duration::from_millis(millis));
        assert_eq!(again, (page.clone(), 0));
    }
    assert_eq!(ask(&mut listings, &folder, begin + LIFETIME).1, 100);
}

#[test]
fn a_page_is_made_anew_when_a_name_came() {
    let folder = Folder::of("listed-anew", (0..3).map(|number| number.to_string()));
    let mut listings = Listings::default();
    // In the same step of the clock as the last change.
    let (_, looks) = ask(&mut listings, &folder, folder.changed());
    assert_eq!(looks, 3);
    fs::write(folder.0.join("new"), "").unwrap();
    assert_eq!(ask(&mut listings, &folder, folder.changed()).1, 4);
    let later = folder.changed() + Duration::from_millis(500);
    assert_eq!(ask(&mut listings, &folder, later).1, 4);
    assert_eq!(ask(&mut listings, &folder, later).1, 0);
}

#[test]
fn names_that_are_not_served_count_for_what_a_page_may_cost() {
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
    let mut listings = Listings::default();
    let now = folder.changed() + Duration::from_secs(1);
    for number in 0..100 {
        let path = PathNames::parse(&format!("/{number}/")).unwrap();
        listings.page(&folder.0, &path, now, |_, entry| entry.file_type().ok()).unwrap();
        assert!(listings.0.len() <= PAGES);
    }
}
