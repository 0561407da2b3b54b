//! The control socket of a running stack: lists, counters and settings for `whimbrel ss` and its like.
//!
//! The protocol is JSON Lines over a Unix stream socket, described in docs/CONTROL.md. Only the user of this
//! process and root are served. A thread for each client asks the shards, which answer between bursts.
//!
//! | bound | value |
//! |---|---|
//! | clients at a time | 8; of a full table, one that asked for nothing for 5 s gives way |
//! | bytes of a request | 64 KiB |
//! | time for a client to take an answer | 5 s |
//! | bytes of a capture's frames that wait for a client | 4 MiB |
//! | records that wait for a client | 256, one slice of a listing |

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, Scope};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::descriptors::SpareDescriptor;
use crate::poll::{Interest, PollFd, ppoll};
use crate::{Inspect, Stop};
use clients::Clients;
use place::SocketFile;
use service::Service;

pub(crate) mod ask;
mod client;
mod clients;
pub(crate) mod figures;
mod frames;
mod lines;
mod listing;
mod peer;
mod place;
mod record;
pub(crate) mod request;
mod service;
mod settings;

pub use place::{ControlPlace, connect, folders};

/// Description of the process, for its clients.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControlInfo {
    /// Name of the command or program.
    pub command: String,
    /// Version of Whimbrel.
    pub version: &'static str,
    /// Origins of the tunables that are not defaults, by name.
    pub origins: Vec<(String, String)>,
}

impl ControlInfo {
    /// Describes a program by this name, whose tunables are the defaults or its own.
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), version: env!("CARGO_PKG_VERSION"), origins: Vec::new() }
    }

    /// Adds the origins of tunables: for each a name, and a text such as `file x.toml, line 3`.
    pub fn with_origins(mut self, origins: Vec<(String, String)>) -> Self {
        self.origins = origins;
        self
    }
}

/// A host of the process, with all of its shards.
#[derive(Clone)]
pub struct ControlHost {
    /// Its name, if the process has several hosts: `client` or `server`.
    pub(crate) name: Option<&'static str>,
    pub(crate) shards: Vec<Arc<dyn Inspect>>,
}

impl ControlHost {
    /// The only host of the process, with these shards.
    pub fn new(shards: Vec<Arc<dyn Inspect>>) -> Self {
        Self { name: None, shards }
    }

    /// One of several hosts of the process.
    pub fn named(name: &'static str, shards: Vec<Arc<dyn Inspect>>) -> Self {
        Self { name: Some(name), shards }
    }
}

impl std::fmt::Debug for ControlHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shards = self.shards.len();
        f.debug_struct("ControlHost").field("name", &self.name).field("shards", &shards).finish()
    }
}

/// Reason why there is no control socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The folder is unsafe, or cannot be made.
    #[error("{folder}: {why}; {remedy}")]
    Folder {
        /// The path of the folder, ready to be printed.
        folder: String,
        /// The reason, which continues the path: "has mode 755, so that others can use it".
        why: String,
        /// A command line, or a change of the folder, that helps.
        remedy: &'static str,
    },
    /// Something is at the path.
    #[error("{path}: {why}")]
    Taken {
        /// The path of the socket, ready to be printed.
        path: String,
        /// Obstacle and remedy.
        why: &'static str,
    },
    /// The system refused the socket.
    #[error("{path}: {error}; use a path of at most 107 bytes in a folder that you can write to")]
    Bind {
        /// The path of the socket, ready to be printed.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// The system gave no thread or descriptor.
    #[error("cannot serve the control socket: {0}")]
    System(#[from] io::Error),
}

/// A running control socket. Dropping it ends its clients and removes the socket.
#[derive(Debug)]
pub struct ControlServer {
    file: SocketFile,
    stop: Stop,
    clients: Arc<Clients>,
}

impl ControlServer {
    /// Serves `hosts` at `place`.
    ///
    /// # Errors
    ///
    /// [`ControlError`]: the folder is a symbolic link or open to others, a process listens there, or the
    /// system refuses.
    pub fn start(
        place: &ControlPlace,
        info: ControlInfo,
        hosts: Vec<ControlHost>,
    ) -> Result<Self, ControlError> {
        let (file, listener) = SocketFile::bind(place)?;
        let stop = Stop::new()?;
        let clients = Arc::<Clients>::default();
        let service = Arc::new(Service::new(info, hosts));
        let accepting = Accepting { listener, service, stop: stop.clone() };
        let known = Arc::clone(&clients);
        let thread = thread::Builder::new().name("whimbrel-ctl".into());
        // It ends by `stop`, and is not waited for: a client's thread may wait for a shard of this thread's.
        drop(thread.spawn(move || accepting.run(&known))?);
        Ok(Self { file, stop, clients })
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.stop.set();
        self.clients.end();
    }
}

/// Parts of the thread that accepts clients.
struct Accepting {
    listener: UnixListener,
    service: Arc<Service>,
    stop: Stop,
}

impl Accepting {
    /// Accepts clients until the server is dropped.
    fn run(self, clients: &Clients) {
        let mut spare = SpareDescriptor::of(&self.listener);
        thread::scope(|scope| {
            while !self.stop.is_set() {
                let mut fds = [
                    PollFd::new(&self.listener, Interest::Read),
                    PollFd::new(&self.stop, Interest::Read),
                ];
                if ppoll(&mut fds, None).is_err() {
                    break;
                }
                match spare.accept(&self.listener, UnixListener::accept) {
                    Ok((stream, _)) => self.take(stream, clients, scope),
                    Err(_) => {
                        // No descriptor is left, or the client has gone.
                        clients.end_silent();
                        thread::sleep(ACCEPT_PAUSE);
                    }
                }
            }
        });
    }

    /// Serves a client in a thread, or tells it why not.
    fn take<'s>(&'s self, stream: UnixStream, clients: &'s Clients, scope: &'s Scope<'s, '_>) {
        let stream = Arc::new(stream);
        let own = Arc::clone(&stream);
        let thread = thread::Builder::new().name("whimbrel-ctl".into());
        let (refused, begun) = match client::admit(&stream, clients) {
            Ok(admitted) => {
                let serve = move || client::serve(&own, &admitted, &self.service, &self.stop);
                let why = "the system gave no thread: end other processes, or try again".into();
                (("busy", why), thread.spawn_scoped(scope, serve).is_ok())
            }
            Err(refused) => match clients.note_refusal() {
                None => (refused, false),
                Some(counted) => {
                    let why = refused.clone();
                    let refuse = move || {
                        let _counted = counted;
                        client::refuse_and_wait(&own, &why);
                    };
                    (refused, thread.spawn_scoped(scope, refuse).is_ok())
                }
            },
        };
        if !begun {
            client::refuse(&stream, &refused);
        }
    }
}

/// Adds the members of an object to another.
fn extend(object: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        object.extend(more);
    }
}

/// Pause after a refused accept(2).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
