//! The site of files below a directory.
//!
//! A path is resolved name by name below the root ([`PathNames`]), then by the system, and the result
//! must still lie below the root, so neither `..` nor a symbolic link leads outside. Names that begin
//! with a dot are not served. A user who can write below the root may change it between the check and
//! the use, so do not serve a root that an adversary on this machine can write to.
//!
//! Files are read on the shard's own thread, [`Limits::piece`](whimbrel_apps::http::Limits) at a
//! time: a cold disk delays every connection by its latency. How many are open is bounded, however
//! many peers read slowly ([`file_cache`]); uploads, which must not be closed, are too.

use std::borrow::Cow;
use std::fs::{self, DirEntry, File, FileType, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use whimbrel_apps::effort::LOOK;
use whimbrel_apps::http::path::PathNames;
use whimbrel_apps::http::{
    Body, BodySource, EntityTag, Judgment, Method, RangeOutcome, Request, Response, Site,
    SiteResponse, SourceError, Status, Upload, Validators, content_type, validators,
};
use whimbrel_apps::source::Source;
use whimbrel_io::{descriptors, text};

use super::plan::Uploads;
use crate::streams;

// Named by their files, so that tests elsewhere find them, too.
#[path = "files/file_cache.rs"]
mod file_cache;
#[path = "files/listing.rs"]
mod listing;
#[path = "files/upload.rs"]
mod upload;
#[path = "files/upload_table.rs"]
mod upload_table;

use file_cache::{FileCache, Identity, Reader};
use listing::{Directory, Listings};
use upload::FileUpload;
use upload_table::{ActiveUpload, UploadTable};

/// Files below a directory.
pub(crate) struct FileRoot {
    names: Names,
    uploads: Uploads,
    file_cache: FileCache,
    listings: Listings,
    upload_table: UploadTable,
    /// One for each upload whose file is open, and this one.
    uploading: Arc<()>,
}

impl FileRoot {
    /// Opens the files below `root`, with at most `files` open at a time, and as many active uploads.
    pub(crate) fn open(root: &Path, uploads: Uploads, files: usize) -> io::Result<Self> {
        let root = root.canonicalize()?;
        // Fails if it is no directory, or may not be read.
        fs::read_dir(&root)?;
        let (file_cache, uploading) = (FileCache::new(files), Arc::default());
        let names = Names { root: root.into(), file_cache: file_cache.clone() };
        let looked_up = names.clone();
        let listings = Listings::new(move |path, entry| looked_up.served(path, entry));
        let upload_table = UploadTable::new(files);
        Ok(Self { names, uploads, file_cache, listings, upload_table, uploading })
    }

    fn get(&self, path: PathNames, request: &Request<'_>) -> SiteResponse {
        let Some(found) = self.names.resolve(&path) else {
            return Response::not_found(request).into();
        };
        if found.is_dir() {
            return self.directory(found, path, request);
        }
        if path.directory || !found.is_file() {
            return Response::not_found(request).into();
        }
        self.file(&found, request).unwrap_or_else(|error| failed(&error)).into()
    }

    fn directory(&self, found: PathBuf, path: PathNames, request: &Request<'_>) -> SiteResponse {
        if !path.directory {
            // Without the slash, relative links in the page would lead to the parent directory.
            let location = format!("{}/", path.encode());
            return Response::text(Status::MOVED_PERMANENTLY, format!("see {location}\n"))
                .with_field("Location", location)
                .into();
        }
        let mut index = path.clone();
        index.names.push(INDEX.into());
        match self.names.resolve(&index).filter(|index| index.is_file()) {
            Some(index) => self.file(&index, request).map(SiteResponse::from),
            None => self.listings.answer(Directory { found, path }, now()),
        }
        .unwrap_or_else(|error| failed(&error).into())
    }

    fn put(&self, path: &PathNames, request: &Request<'_>) -> SiteResponse {
        if self.uploads == Uploads::Refused {
            return Response::method_not_allowed(READING).into();
        }
        // RFC 9110 14.5: "An origin server SHOULD respond with a 400 (Bad Request) status code if
        // it receives Content-Range on a PUT for a target resource that does not support partial
        // PUT requests."
        if request.fields.first("content-range").is_some() {
            let text = "PUT replaces a whole file: send no Content-Range\n";
            return Response::text(Status::BAD_REQUEST, text).into();
        }
        let mut parent = path.clone();
        let Some(name) = parent.names.pop().filter(|_| !path.directory && !path.is_hidden()) else {
            let text = "PUT needs the name of a file that does not begin with a dot\n";
            return Response::text(Status::FORBIDDEN, text).into();
        };
        let Some(parent) = self.names.resolve(&parent).filter(|parent| parent.is_dir()) else {
            let text = "PUT creates no directories, and this path's does not exist\n";
            return Response::text(Status::CONFLICT, text).into();
        };
        let target = parent.join(&name);
        let there = fs::metadata(&target).ok().filter(Metadata::is_file);
        let version = there.as_ref().map(|there| validators_of(there, now()));
        if validators::judge(request, version.as_ref()) != Judgment::Holds {
            return Response::precondition_failed().into();
        }
        match self.begin_upload(&parent, &name, request.source) {
            Ok(upload) => {
                let is_conditional = validators::is_conditional(request);
                let judged = is_conditional.then(|| (target, there.as_ref().map(Identity::of)));
                SiteResponse::Upload(Box::new(JudgedUpload { upload, judged }))
            }
            Err(response) => response.into(),
        }
    }

    fn begin_upload(
        &self,
        parent: &Path,
        name: &str,
        source: Source,
    ) -> Result<ActiveUpload, Response> {
        // A refused upload makes no file.
        self.upload_table.check(source)?;
        // An upload that cannot begin displaces none.
        let upload = FileUpload::begin(parent, name, &self.file_cache, &self.uploading)?;
        self.upload_table.admit(source, upload)
    }

    /// The response with a file, or with the requested part of it.
    fn file(&self, path: &Path, request: &Request<'_>) -> io::Result<Response> {
        // What cannot be read is known before the response begins.
        let file = self.file_cache.open(path)?;
        let metadata = file.metadata()?;
        let version = validators_of(&metadata, now());
        match validators::judge(request, Some(&version)) {
            Judgment::Holds => {}
            Judgment::NotModified => return Ok(version.not_modified()),
            Judgment::Failed => return Ok(Response::precondition_failed()),
        }
        let identity = Identity::of(&metadata);
        let length = identity.length;
        let media = content_type(&text::path(path).to_string());
        let at_once = AT_ONCE.min(request.at_once as u64);
        let body = |first, count| match count <= at_once {
            true => whole(&file, first, count).map(Body::Bytes),
            false => Ok(self.source(identity, path, first..first + count)),
        };
        let response = match validators::range(request, length, &version) {
            RangeOutcome::Whole => Response::new(Status::OK, media, body(0, length)?),
            RangeOutcome::Part(range) => {
                Response::partial(range, length, media, body(range.first, range.length())?)
            }
            RangeOutcome::Unsatisfiable => return Ok(Response::range_not_satisfiable(length)),
        };
        Ok(version.mark(response.with_field("Accept-Ranges", "bytes")))
    }

    /// A part of a file piece by piece: it is opened again for the first of them. A response that is not
    /// read keeps no descriptor.
    fn source(&self, identity: Identity, path: &Path, part: Range<u64>) -> Body {
        let source = FileSource { reader: self.file_cache.reader(path, identity), at: part.start };
        Body::Source { length: part.end - part.start, source: Box::new(source) }
    }
}

/// A part of a file at once.
fn whole(file: &File, first: u64, length: u64) -> io::Result<Bytes> {
    let bytes = file_cache::read_at(file, first, length)?;
    let complete = bytes.len() as u64 == length;
    complete.then_some(bytes).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// The files and directories below the root that paths of requests lead to.
#[derive(Clone)]
struct Names {
    /// The directory's canonical path, with which that of each file that is served begins.
    root: Arc<Path>,
    file_cache: FileCache,
}

impl Names {
    /// File of a path that exists, lies below the root and is not hidden.
    fn resolve(&self, path: &PathNames) -> Option<PathBuf> {
        // No system has longer paths, and a long one would be copied again and again.
        if path.is_hidden() || path.names.iter().map(String::len).sum::<usize>() > LONGEST {
            return None;
        }
        let found = self.root.join(path.names.iter().collect::<PathBuf>()).canonicalize().ok()?;
        let below = found.strip_prefix(&self.root).ok()?;
        let hidden = below.components().any(|name| name.as_os_str().as_encoded_bytes()[0] == b'.');
        (!hidden).then_some(found)
    }

    /// Type under which a path to this entry of a served directory would be served: it can be resolved,
    /// and read.
    fn served(&self, path: &PathNames, entry: &DirEntry) -> Option<FileType> {
        let kind = entry.file_type().ok()?;
        let (found, kind) = if kind.is_symlink() {
            let found = self.resolve(path)?;
            let kind = fs::metadata(&found).ok()?.file_type();
            (found, kind)
        } else {
            (entry.path(), kind)
        };
        let can_be_read = match kind {
            _ if kind.is_dir() => fs::read_dir(&found).is_ok(),
            // A pipe would not be opened before another process writes.
            _ => kind.is_file() && self.file_cache.open(&found).is_ok(),
        };
        can_be_read.then_some(kind)
    }
}

/// An upload, with the conditions of its request.
struct JudgedUpload {
    upload: ActiveUpload,
    /// For a request with conditions: its target, and the file's identity when they held.
    judged: Option<(PathBuf, Option<Identity>)>,
}

impl Upload for JudgedUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Response> {
        self.upload.write(bytes)
    }

    fn watch(&mut self, waker: &Waker) {
        self.upload.watch(waker);
    }

    fn displaced(&mut self) -> Option<Response> {
        self.upload.displaced()
    }

    fn finish(self: Box<Self>) -> Response {
        // RFC 9110 13.1.1: "An origin server that evaluates an If-Match condition MUST NOT perform the
        // requested method if the condition evaluates to false." It is performed now, and another
        // upload may have ended since the head of this one came.
        if let Some((target, before)) = &self.judged
            && fs::metadata(target).ok().filter(Metadata::is_file).as_ref().map(Identity::of)
                != *before
        {
            return Response::precondition_failed();
        }
        Box::new(self.upload).finish()
    }
}

impl Site for FileRoot {
    fn respond(&mut self, request: &Request<'_>) -> SiteResponse {
        let known = matches!(request.method, Method::Get | Method::Head | Method::Put);
        if !known {
            let writing = self.uploads == Uploads::Allowed;
            return Response::method_not_allowed(if writing { WRITING } else { READING }).into();
        }
        let path = match PathNames::parse(request.path()) {
            Ok(path) => path,
            Err(fault) => return Response::text(Status::BAD_REQUEST, format!("{fault}\n")).into(),
        };
        match request.method {
            Method::Put => self.put(&path, request),
            _ => self.get(path, request),
        }
    }

    /// A path is resolved, and its file opened, inspected and read: 20 us.
    fn cost(&self) -> u64 {
        6 * LOOK
    }
}

struct FileSource {
    reader: Reader,
    /// Start of the next piece.
    at: u64,
}

impl BodySource for FileSource {
    fn read(&mut self, at_most: usize) -> Result<Bytes, SourceError> {
        let fault = match self.reader.read(self.at, at_most) {
            Ok(bytes) if !bytes.is_empty() => {
                self.at += bytes.len() as u64;
                return Ok(bytes);
            }
            Ok(_) => "became shorter while it was sent".to_owned(),
            Err(error) => error.to_string(),
        };
        // A closed standard error is no reason to stop.
        streams::tell(&format!("{}: {fault}\n", text::path(self.reader.path())));
        Err(SourceError)
    }
}

/// Validators of this version of a file: its inode, its length, and the system's time of its last
/// change, which users cannot set back, unlike the file's own time. The tag is weak as long as the file
/// may change again within that clock's step with the same three values.
fn validators_of(metadata: &Metadata, now: Duration) -> Validators {
    let seconds = u64::try_from(metadata.ctime()).unwrap_or(0);
    let nanos = u32::try_from(metadata.ctime_nsec()).unwrap_or(0);
    let changed = Duration::new(seconds, nanos);
    let (inode, length) = (metadata.ino(), metadata.len());
    let opaque = format!("{inode:x}-{length:x}-{:x}", changed.as_nanos());
    let is_settled = now.saturating_sub(changed) >= CLOCK_STEP;
    let tag = if is_settled { EntityTag::strong } else { EntityTag::weak };
    let modified = u64::try_from(metadata.mtime()).unwrap_or(0);
    Validators { tag: tag(opaque), modified, now: now.as_secs() }
}

/// The system's time, since 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn failed(error: &io::Error) -> Response {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Response::text(Status::NOT_FOUND, "the file was removed or replaced\n")
        }
        io::ErrorKind::PermissionDenied => {
            Response::text(Status::FORBIDDEN, "the server may not read this file\n")
        }
        _ if descriptors::are_used_up(error) => {
            unavailable("no file descriptor is free (`ulimit -n`): try again\n")
        }
        _ => Response::text(Status::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

/// 503: others have all there is, for now.
fn unavailable(text: impl Into<Cow<'static, str>>) -> Response {
    Response::text(Status::SERVICE_UNAVAILABLE, text).with_field("Retry-After", "1")
}

/// No file system that is common counts in larger steps: those of FAT are of two seconds.
const CLOCK_STEP: Duration = Duration::from_secs(2);
const INDEX: &str = "index.html";
const READING: &str = "GET, HEAD";
const WRITING: &str = "GET, HEAD, PUT";
/// The longest path that Linux takes (`PATH_MAX`), bytes.
const LONGEST: usize = 4_096;
/// Files up to this are read whole, bytes.
const AT_ONCE: u64 = 64 << 10;

#[cfg(test)]
#[path = "files/tests.rs"]
mod tests;
