//! What is served: one of the sites.

use whimbrel_apps::http::{Answer, FixedBody, Request, Site};

use super::files::FileRoot;
use super::plan::SitePlan;
use crate::failure::Failure;

/// One of the sites.
pub(crate) enum Content {
    /// The same body for every path.
    Fixed(FixedBody),
    /// Files.
    Files(FileRoot),
}

impl Content {
    /// What `plan` names, if it can be read.
    pub(crate) fn open(plan: &SitePlan) -> Result<Self, Failure> {
        match plan {
            SitePlan::Fixed(length) => Ok(Self::Fixed(FixedBody::new(*length))),
            SitePlan::Files { root, uploads } => {
                FileRoot::open(root, *uploads).map(Self::Files).map_err(|error| {
                    let root = root.display();
                    Failure::run(format!(
                        "--file-root {root}: {error}; give a directory that can be read"
                    ))
                })
            }
        }
    }
}

impl Site for Content {
    fn respond(&mut self, request: &Request<'_>) -> Answer {
        match self {
            Self::Fixed(site) => site.respond(request),
            Self::Files(site) => site.respond(request),
        }
    }
}
