//! A page that lists a directory.
//!
//! A page reads each name, which takes 3 ms for a thousand: it is made in a separate turn
//! ([`TurnBudget`](whimbrel_apps::effort::TurnBudget)), and one that was made within the last second is
//! used again. A response keeps no page: it reads the page piece by piece from the few that are kept,
//! and makes it again if it is no longer among them, as a file is opened again.

use std::fs::{self, DirEntry, FileType, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use whimbrel_apps::http::path::{PathNames, encode_name};
use whimbrel_apps::http::{
    Body, BodySource, LongAnswer, Response, SiteResponse, SourceError, Status,
};
use whimbrel_base::Foreign;

use super::{failed, now};

/// Pages, of which the [`PAGES`] last used are kept.
#[derive(Clone)]
pub(super) struct Listings {
    served: Arc<Served>,
    pages: Arc<Mutex<Vec<Listing>>>,
}

/// Type under which an entry of a directory is served, if it is.
type Served = dyn Fn(&PathNames, &DirEntry) -> Option<FileType> + Send + Sync;

/// The directory of a page: in the file system, and by its path below the root.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) found: PathBuf,
    pub(super) path: PathNames,
}

#[derive(Clone)]
struct Listing {
    directory: Arc<Directory>,
    made: Duration,
    page: Bytes,
    /// Identifies this page among those of the directory at other times.
    hash: u64,
}

impl Listings {
    /// Begins without pages, which will link to names that are `served`.
    pub(super) fn new(
        served: impl Fn(&PathNames, &DirEntry) -> Option<FileType> + Send + Sync + 'static,
    ) -> Self {
        Self { served: Arc::new(served), pages: Arc::default() }
    }

    /// Returns the answer with the page of a directory at `now`.
    pub(super) fn answer(&self, directory: Directory, now: Duration) -> io::Result<SiteResponse> {
        let directory = Arc::new(directory);
        let fresh = self.fresh(&directory, now)?;
        let work = || SiteResponse::Long(Box::new(PageWork { listings: self.clone(), directory }));
        Ok(fresh.map_or_else(work, |listing| self.response(listing).into()))
    }

    /// The page of a directory, if it was made within the last second and is still valid.
    fn fresh(&self, directory: &Directory, now: Duration) -> io::Result<Option<Listing>> {
        let changed = changed(&fs::metadata(&directory.found)?);
        let is_good =
            |it: &Listing| changed + CLOCK_TICK < it.made && now.saturating_sub(it.made) < LIFETIME;
        Ok(self.kept(directory).filter(is_good))
    }

    /// The kept page of a directory, of any age.
    fn kept(&self, directory: &Directory) -> Option<Listing> {
        let mut pages = self.lock();
        let place = pages.iter().position(|it| *it.directory == *directory)?;
        pages.get_mut(..=place)?.rotate_right(1);
        pages.first().cloned()
    }

    /// Makes the page of a directory at `now`, and keeps it.
    fn make(&self, directory: &Arc<Directory>, now: Duration) -> io::Result<Listing> {
        let page = page(&directory.found, &directory.path, &*self.served)?;
        // Its spare capacity would be kept with it.
        let page = Bytes::from(page.into_bytes().into_boxed_slice());
        let mut hasher = DefaultHasher::new();
        page.hash(&mut hasher);
        let directory = Arc::clone(directory);
        let listing = Listing { directory, made: now, page, hash: hasher.finish() };
        let mut pages = self.lock();
        pages.retain(|it| it.directory != listing.directory);
        pages.truncate(PAGES - 1);
        pages.insert(0, listing.clone());
        Ok(listing)
    }

    fn response(&self, listing: Listing) -> Response {
        let Listing { directory, page, hash, .. } = listing;
        let source = PageSource { listings: self.clone(), directory, hash, at: 0 };
        let body = Body::Source { length: page.len() as u64, source: Box::new(source) };
        Response::new(Status::OK, "text/html; charset=utf-8", body)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listing>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response that waits for its page to be made.
struct PageWork {
    listings: Listings,
    directory: Arc<Directory>,
}

impl LongAnswer for PageWork {
    fn make(self: Box<Self>) -> Response {
        let Self { listings, directory } = *self;
        // It may have been made for another request meanwhile.
        let listing = match listings.fresh(&directory, now()) {
            Ok(None) => listings.make(&directory, now()),
            Ok(Some(listing)) => Ok(listing),
            Err(error) => Err(error),
        };
        listing.map_or_else(|error| failed(&error), |listing| listings.response(listing))
    }
}

/// A page that is being sent.
struct PageSource {
    listings: Listings,
    directory: Arc<Directory>,
    hash: u64,
    /// Start of the next piece.
    at: usize,
}

impl BodySource for PageSource {
    fn read(&mut self, at_most: usize) -> Result<Bytes, SourceError> {
        let kept = self.listings.kept(&self.directory);
        let listing = kept.map_or_else(|| self.listings.make(&self.directory, now()), Ok);
        // The promised page was a different one.
        let listing = listing.ok().filter(|it| it.hash == self.hash).ok_or(SourceError)?;
        let rest = listing.page.get(self.at..).unwrap_or_default();
        // A slice would keep the whole page until its piece is acknowledged.
        let piece = Bytes::copy_from_slice(rest.get(..at_most).unwrap_or(rest));
        self.at += piece.len();
        Ok(piece)
    }

    fn is_long(&self) -> bool {
        self.listings.kept(&self.directory).is_none()
    }
}

/// When a name last came or went in a directory, since 1970.
fn changed(directory: &Metadata) -> Duration {
    let (seconds, nanos) = (directory.ctime(), directory.ctime_nsec());
    Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanos).unwrap_or(0))
}

fn page(directory: &Path, path: &PathNames, served: &Served) -> io::Result<String> {
    let (names, more) = names(directory, |name, entry| {
        let mut target = path.clone();
        target.names.push(name.into());
        target.directory = false;
        // As its own request will name it.
        let target = PathNames::parse(&target.encode()).ok()?;
        served(&target, entry)
    })?;
    let title = escape(&format!("/{}", path.names.join("/")));
    let mut page = format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
         <body><h1>{title}</h1>\n<ul>\n"
    );
    for name in names {
        let mut link = String::from("./");
        encode_name(name.trim_end_matches('/'), &mut link);
        let slash = if name.ends_with('/') { "/" } else { "" };
        page += &format!("<li><a href=\"{link}{slash}\">{}</a></li>\n", escape(&name));
    }
    page += "</ul>\n";
    if more {
        page += &format!("<p>and more: only {MOST} names were looked at</p>\n");
    }
    page += "</body></html>\n";
    Ok(page)
}

/// The UTF-8 and served ones of its first [`MOST`] names, in order, directories with a slash; and true
/// if there are more.
fn names(
    directory: &Path,
    served: impl Fn(&str, &DirEntry) -> Option<FileType>,
) -> io::Result<(Vec<String>, bool)> {
    let (mut names, mut looked_at) = (Vec::new(), 0);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if looked_at == MOST {
            names.sort_unstable();
            return Ok((names, true));
        }
        looked_at += 1;
        let Some(mut name) = entry.file_name().into_string().ok() else { continue };
        if name.starts_with('.') {
            continue;
        }
        let Some(kind) = served(&name, &entry) else { continue };
        if kind.is_dir() {
            name.push('/');
        }
        names.push(name);
    }
    names.sort_unstable();
    Ok((names, false))
}

/// Clients choose the names of uploads, and pages are also read on terminals.
fn escape(text: &str) -> String {
    let text = Foreign::new(text).to_string();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The most names of a directory that a page reads, which limits the wait of other requests.
const MOST: usize = 1_000;
/// The most kept pages: with the longest names each has 2 MB.
const PAGES: usize = 4;
/// Time for which a page is used though the files behind its links may have changed.
const LIFETIME: Duration = Duration::from_secs(1);
/// A directory that changes twice within one step of the system's clock keeps the same time.
const CLOCK_TICK: Duration = Duration::from_millis(20);

#[cfg(test)]
#[path = "listing/tests.rs"]
mod tests;
