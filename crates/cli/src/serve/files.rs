//! The site of files below a directory.
//!
//! A path is resolved name by name below the root ([`PathNames`]), then by the system, and what
//! comes out must still lie below the root, so neither `..` nor a symbolic link leads outside.
//! Names that begin with a dot are not served. Who can write below the root may change it between
//! the check and the use: give no root that an adversary on this machine can write to.
//!
//! Files are read on the shard's own thread, [`Limits::piece`](whimbrel_apps::http::Limits) at a
//! time: a cold disk delays every connection by its latency.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use whimbrel_apps::http::path::PathNames;
use whimbrel_apps::http::{
    Answer, Body, BodySource, Method, RangeOutcome, Request, Response, Site, SourceError, Status,
    content_type,
};

use super::plan::Uploads;

mod listing;
mod upload;

use upload::FileUpload;

/// Files below a directory.
pub(crate) struct FileRoot {
    /// Canonical.
    root: PathBuf,
    uploads: Uploads,
}

impl FileRoot {
    /// The files below `root`.
    pub(crate) fn open(root: &Path, uploads: Uploads) -> io::Result<Self> {
        let root = root.canonicalize()?;
        // Fails if it is no directory, or may not be read.
        fs::read_dir(&root)?;
        Ok(Self { root, uploads })
    }

    fn get(&self, path: &PathNames, request: &Request<'_>) -> Response {
        let Some(found) = self.resolve(path) else { return Response::not_found(request) };
        if found.is_dir() {
            return self.directory(&found, path, request);
        }
        if path.directory || !found.is_file() {
            return Response::not_found(request);
        }
        file(&found, request).unwrap_or_else(|error| failed(&error, request))
    }

    /// Where a path leads, if it exists, lies below the root and is not hidden.
    fn resolve(&self, path: &PathNames) -> Option<PathBuf> {
        if path.is_hidden() {
            return None;
        }
        let found = self.root.join(path.names.iter().collect::<PathBuf>()).canonicalize().ok()?;
        let below = found.strip_prefix(&self.root).ok()?;
        let hidden = below.components().any(|name| name.as_os_str().as_encoded_bytes()[0] == b'.');
        (!hidden).then_some(found)
    }

    fn directory(&self, found: &Path, path: &PathNames, request: &Request<'_>) -> Response {
        if !path.directory {
            // Relative links in the page would lead beside it.
            let location = format!("{}/", path.encode());
            return Response::text(Status::MOVED_PERMANENTLY, format!("see {location}\n"))
                .with_field("Location", location);
        }
        let mut index = path.clone();
        index.names.push(INDEX.into());
        match self.resolve(&index).filter(|index| index.is_file()) {
            Some(index) => file(&index, request),
            None => listing::page(found, path),
        }
        .unwrap_or_else(|error| failed(&error, request))
    }

    fn put(&self, path: &PathNames, request: &Request<'_>) -> Answer {
        if self.uploads == Uploads::Refused {
            return Response::method_not_allowed(READING).into();
        }
        // RFC 9110 14.5: "An origin server SHOULD respond with a 400 (Bad Request) status code if
        // it receives Content-Range on a PUT for a target resource that does not support partial
        // PUT requests."
        if request.fields.first("content-range").is_some() {
            let text = "PUT replaces a file whole: send no Content-Range\n";
            return Response::text(Status::BAD_REQUEST, text).into();
        }
        let mut parent = path.clone();
        let Some(name) = parent.names.pop().filter(|_| !path.directory && !path.is_hidden()) else {
            let text = "PUT needs the name of a file, which does not begin with a dot\n";
            return Response::text(Status::FORBIDDEN, text).into();
        };
        let Some(parent) = self.resolve(&parent).filter(|parent| parent.is_dir()) else {
            let text = "PUT makes no directories, and the one of this path is not there\n";
            return Response::text(Status::CONFLICT, text).into();
        };
        match FileUpload::begin(&parent, &name) {
            Ok(upload) => Answer::Upload(Box::new(upload)),
            Err(response) => response.into(),
        }
    }
}

impl Site for FileRoot {
    fn respond(&mut self, request: &Request<'_>) -> Answer {
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
            _ => self.get(&path, request).into(),
        }
    }
}

/// The response that carries a file, or the part of it that is asked for.
fn file(path: &Path, request: &Request<'_>) -> io::Result<Response> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let media = content_type(&path.to_string_lossy());
    let response = match request.range(length) {
        RangeOutcome::Whole => Response::new(Status::OK, media, body(file, length, path)?),
        RangeOutcome::Part(range) => {
            file.seek(SeekFrom::Start(range.first))?;
            Response::partial(range, length, media, body(file, range.length(), path)?)
        }
        RangeOutcome::Unsatisfiable => return Ok(Response::range_not_satisfiable(length)),
    };
    Ok(response.with_field("Accept-Ranges", "bytes"))
}

/// The next `length` octets of `file`: at once if they are few, so that what goes wrong has a
/// status.
fn body(file: File, length: u64, path: &Path) -> io::Result<Body> {
    if length > AT_ONCE {
        let source = FileSource { file, path: path.into() };
        return Ok(Body::Source { length, source: Box::new(source) });
    }
    let octets = read(&file, length)?;
    if octets.len() as u64 == length {
        Ok(Body::Bytes(octets))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn read(file: &File, at_most: u64) -> io::Result<Bytes> {
    let mut octets = Vec::with_capacity(usize::try_from(at_most).unwrap_or(0));
    file.take(at_most).read_to_end(&mut octets)?;
    Ok(octets.into())
}

struct FileSource {
    file: File,
    path: PathBuf,
}

impl BodySource for FileSource {
    fn read(&mut self, at_most: usize) -> Result<Bytes, SourceError> {
        let fault = match read(&self.file, at_most as u64) {
            Ok(octets) if !octets.is_empty() => return Ok(octets),
            Ok(_) => "became shorter while it was sent".to_owned(),
            Err(error) => error.to_string(),
        };
        // Nobody may be there to read it: that is no reason to stop serving.
        let _ = writeln!(io::stderr(), "{}: {fault}", self.path.display());
        Err(SourceError)
    }
}

fn failed(error: &io::Error, request: &Request<'_>) -> Response {
    match error.kind() {
        io::ErrorKind::NotFound => Response::not_found(request),
        io::ErrorKind::PermissionDenied => {
            Response::text(Status::FORBIDDEN, "the server may not read this file\n")
        }
        _ => Response::text(Status::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

const INDEX: &str = "index.html";
const READING: &str = "GET, HEAD";
const WRITING: &str = "GET, HEAD, PUT";
/// Files up to this are read whole, octets.
const AT_ONCE: u64 = 64 << 10;

#[cfg(test)]
mod tests;
