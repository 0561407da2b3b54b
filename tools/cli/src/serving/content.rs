//! The served content: one of the sites.

use whimbrel_apps::http::{FixedBody, Request, Site, SiteResponse};
use whimbrel_io::{descriptors, text};

use super::files::FileRoot;
use super::plan::SitePlan;
use crate::failure::Failure;

/// One of the sites.
pub(crate) enum Content {
    /// One body for every path.
    Fixed(FixedBody),
    /// The files below a directory (`--file-root`).
    Files(FileRoot),
}

impl Content {
    /// Opens the content of `plan`. Each of `shards` gets a share of the process's descriptors.
    pub(crate) fn open(plan: &SitePlan, shards: usize) -> Result<Self, Failure> {
        match plan {
            SitePlan::Fixed(length) => Ok(Self::Fixed(FixedBody::new(*length))),
            SitePlan::Files { root, uploads } => FileRoot::open(root, *uploads, open_files(shards))
                .map(Self::Files)
                .map_err(|error| {
                    let root = text::path(root);
                    Failure::run(format!(
                        "--file-root {root}: {error}; use a directory that can be read"
                    ))
                }),
        }
    }
}

impl Site for Content {
    fn respond(&mut self, request: &Request<'_>) -> SiteResponse {
        match self {
            Self::Fixed(site) => site.respond(request),
            Self::Files(site) => site.respond(request),
        }
    }

    fn cost(&self) -> u64 {
        match self {
            Self::Fixed(site) => site.cost(),
            Self::Files(site) => site.cost(),
        }
    }
}

/// Number of open files, and of uploads, for each of `shards`: the process's limit, raised as far as
/// possible, less [`OTHERS`].
fn open_files(shards: usize) -> usize {
    let limit = descriptors::raise_limit().unwrap_or(0);
    let left = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(OTHERS);
    (left / 2 / shards.max(1)).clamp(FEWEST, MOST)
}

/// Descriptors for all else: the wire, clocks, a directory that is listed, a file that is looked at.
const OTHERS: usize = 32;
/// With fewer, files are opened for each piece.
const FEWEST: usize = 4;
/// More save nothing: opening a file anew takes a hundredth of what sending a piece of it takes.
const MOST: usize = 1_024;
