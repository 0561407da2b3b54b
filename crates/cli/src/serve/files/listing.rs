//! A page that names what a directory holds.
//!
//! Whoever asks for pages costs a look at each name; a page that was made within the last second is
//! therefore handed out again. (A hundred requests of 40 bytes in one segment would otherwise stall
//! everybody else for as many times 4 ms.)

use std::fs::{self, DirEntry, FileType, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_apps::http::path::{PathNames, encode_name};
use whimbrel_apps::http::{Body, Response, Status};

/// The pages that were made last, [`PAGES`] at most.
#[derive(Default)]
pub(super) struct Listings(Vec<Listing>);

struct Listing {
    path: PathNames,
    made: Duration,
    page: Bytes,
}

impl Listings {
    /// The page for `directory`, which is at `path`, at `now`: a link to each name in it that is served,
    /// as what `served` says.
    pub(super) fn page(
        &mut self,
        directory: &Path,
        path: &PathNames,
        now: Duration,
        served: impl Fn(&PathNames, &DirEntry) -> Option<FileType>,
    ) -> io::Result<Response> {
        self.0.retain(|listing| now.saturating_sub(listing.made) < LIFETIME);
        let changed = changed(&fs::metadata(directory)?);
        let is_good = |it: &&Listing| it.path == *path && changed + CLOCK_TICK < it.made;
        let page = match self.0.iter().find(is_good) {
            Some(listing) => listing.page.clone(),
            None => {
                let page = Bytes::from(page(directory, path, served)?);
                self.0.retain(|listing| listing.path != *path);
                self.0.truncate(PAGES - 1);
                self.0.insert(0, Listing { path: path.clone(), made: now, page: page.clone() });
                page
            }
        };
        Ok(Response::new(Status::OK, "text/html; charset=utf-8", Body::Bytes(page)))
    }
}

/// When a name last came or went in a directory, since 1970.
fn changed(directory: &Metadata) -> Duration {
    let (seconds, nanos) = (directory.ctime(), directory.ctime_nsec());
    Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanos).unwrap_or(0))
}

fn page(
    directory: &Path,
    path: &PathNames,
    served: impl Fn(&PathNames, &DirEntry) -> Option<FileType>,
) -> io::Result<String> {
    let (names, more) = names(directory, |name, entry| {
        let mut target = path.clone();
        target.names.push(name.into());
        target.directory = false;
        // As it will be asked for.
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

/// Of its first [`MOST`] names, in order, those that are UTF-8 and served, directories with a slash; and
/// whether there are more.
fn names(
    directory: &Path,
    served: impl Fn(&str, &DirEntry) -> Option<FileType>,
) -> io::Result<(Vec<String>, bool)> {
    let (mut names, mut looked_at) = (Vec::new(), 0);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if looked_at == MOST {
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The most names of a directory that a page costs a look at: more would delay every connection.
const MOST: usize = 1_000;
/// The most pages that are kept: of the longest names each is of 2 MB.
const PAGES: usize = 4;
/// For how long a page is handed out though what is behind its links may be other by now.
const LIFETIME: Duration = Duration::from_secs(1);
/// A directory that changes twice within one step of the system's clock bears the same time.
const CLOCK_TICK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests;
