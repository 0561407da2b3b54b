//! The server behind `forward`, and attempts to connect to it.

use std::fmt;
use std::io;
use std::os::unix::net::SocketAddr;
use std::path::PathBuf;

use whimbrel_apps::{ConnError, Destination};
use whimbrel_io::{WireSpec, text};
use whimbrel_kernel::sockets::SocketId;

use crate::drive::{KernelNet, conn_error};
use crate::failure::Failure;
use crate::target::{self, Typed};

/// The server, by the kernel's sockets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Server {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A TCP port, at the addresses of its host in the order of attempts; at least one.
    Tcp(Vec<Destination>),
}

/// Result of an attempt to connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    /// The connection is open.
    Open(SocketId),
    /// An event reports whether it opens.
    Opening(SocketId),
    /// The server, or this machine, has no room now, and nothing reports when there is some.
    Busy,
    /// It failed.
    Failed(ConnError),
}

impl Server {
    /// Returns the server of `--to` behind this wire.
    pub(crate) fn parse(typed: &str, wire: &WireSpec) -> Result<Self, Failure> {
        if let Some(path) = typed.strip_prefix("unix:") {
            if path.is_empty() {
                return Err(Failure::usage("--to", format!("unix: has no path: {EXAMPLE}")));
            }
            return match SocketAddr::from_pathname(path) {
                Ok(_) => Ok(Self::Unix(path.into())),
                Err(error) => {
                    let text = format!("unix:{path}: {error}: use a path of at most 107 bytes");
                    Err(Failure::usage("--to", text))
                }
            };
        }
        let refused = || Failure::usage("--to", format!("{typed:?} is no server: {EXAMPLE}"));
        let (host, port) = target::split(typed).ok_or_else(refused)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(refused)?;
        let example = Typed { option: "--to", example: EXAMPLE };
        let found = target::look_up(host, port, true, example)?;
        let is_own =
            |found: &&Destination| wire.addresses().iter().any(|own| own.addr == found.at.addr);
        if let Some(own) = found.iter().find(is_own) {
            let text = format!(
                "{} is the address of the wire, so connections would return here: use the address \
                 of the server on this machine, for example 127.0.0.1:{port}",
                own.at
            );
            return Err(Failure::usage("--to", text));
        }
        if found.is_empty() {
            return Err(Failure::run(format!("{host} has no address; {EXAMPLE}")));
        }
        Ok(Self::Tcp(found))
    }

    /// Number of addresses to try.
    pub(crate) fn addresses(&self) -> usize {
        match self {
            Self::Unix(_) => 1,
            Self::Tcp(at) => at.len(),
        }
    }

    /// Attempts to connect to the address numbered `number`.
    pub(crate) fn connect(&self, net: &mut KernelNet, number: usize) -> Attempt {
        match self {
            Self::Unix(path) => match net.connect_unix(path) {
                Ok(id) => Attempt::Open(id),
                // unix(7): the backlog of the listening socket is full.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Attempt::Busy,
                // No socket of this name: its server has not started.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Attempt::Failed(ConnError::Refused)
                }
                Err(error) => Attempt::Failed(conn_error(&error)),
            },
            Self::Tcp(at) => {
                let Some(at) = at.get(number) else { return Attempt::Failed(ConnError::System) };
                match net.connect_tcp(*at) {
                    Ok(id) => Attempt::Opening(id),
                    // No port of this machine is free towards it.
                    Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => Attempt::Busy,
                    Err(error) => Attempt::Failed(conn_error(&error)),
                }
            }
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", text::path(path)),
            Self::Tcp(at) => {
                let all: Vec<_> = at.iter().map(|it| it.at.to_string()).collect();
                f.write_str(&all.join(" or "))
            }
        }
    }
}

const EXAMPLE: &str = "give unix:PATH or HOST:PORT, as in unix:/run/nginx.sock or 127.0.0.1:8080";
