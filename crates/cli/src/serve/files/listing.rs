//! A page that names what a directory holds.

use std::fs;
use std::io;
use std::path::Path;

use bytes::Bytes;
use whimbrel_apps::http::path::{PathNames, encode_name};
use whimbrel_apps::http::{Body, Response, Status};

/// The page for `directory`, which is at `path`: a link to each name in it that `is_served`.
pub(super) fn page(
    directory: &Path,
    path: &PathNames,
    is_served: impl Fn(&PathNames) -> bool,
) -> io::Result<Response> {
    let (names, more) = names(directory, |name| {
        let mut target = path.clone();
        target.names.push(name.into());
        target.directory = false;
        // As it will be asked for.
        PathNames::parse(&target.encode()).is_ok_and(|target| is_served(&target))
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
        page += &format!("<p>and more: only {MOST} are shown</p>\n");
    }
    page += "</body></html>\n";
    let body = Body::Bytes(Bytes::from(page));
    Ok(Response::new(Status::OK, "text/html; charset=utf-8", body))
}

/// Its first [`MOST`] names in order, directories with a slash, of those that are UTF-8 and served; and
/// whether there are more.
fn names(directory: &Path, is_served: impl Fn(&str) -> bool) -> io::Result<(Vec<String>, bool)> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Some(mut name) = entry.file_name().into_string().ok() else { continue };
        if name.starts_with('.') || !is_served(&name) {
            continue;
        }
        if names.len() == MOST {
            return Ok((names, true));
        }
        if entry.path().is_dir() {
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

/// The most names on a page: reading more would delay every connection.
const MOST: usize = 1_000;
