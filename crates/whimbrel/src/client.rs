//! Connections for the pooling client of hyper-util.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tower_service::Service;

use crate::{Stack, TcpStream};

/// Opens a stack's connections for `hyper_util::client::legacy::Client`, as that crate's
/// `HttpConnector` opens the kernel's.
///
/// It goes to host and port of the URI, and without a port to 80, or to 443 for `https`.
#[derive(Clone, Debug)]
pub struct Connector {
    stack: Stack,
    enforce_http: bool,
}

impl Connector {
    /// Of connections that `stack` makes, for `http` alone.
    pub const fn new(stack: Stack) -> Self {
        Self { stack, enforce_http: true }
    }

    /// Whether URIs of other schemes than `http` are refused (so from the start), because nobody would
    /// encrypt what they ask to be encrypted. `false` for who wraps this in a connector that does.
    pub const fn enforce_http(&mut self, is_enforced: bool) {
        self.enforce_http = is_enforced;
    }

    /// Where a URI leads.
    fn target(&self, uri: &Uri) -> io::Result<(String, u16)> {
        let refused = |why: &str| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("cannot connect to {uri}: {why}"))
        };
        let scheme = uri.scheme_str().ok_or_else(|| refused("no scheme, give http://HOST/"))?;
        if self.enforce_http && scheme != "http" {
            return Err(refused("not http; with enforce_http(false) the caller encrypts"));
        }
        let host = uri.host().ok_or_else(|| refused("no host, give http://HOST/"))?;
        // RFC 3986 3.2.2: an IPv6 address stands in brackets.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let usual = if scheme == "https" { 443 } else { 80 };
        Ok((host.to_owned(), uri.port_u16().unwrap_or(usual)))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let target = self.target(&uri);
        let stack = self.stack.clone();
        Box::pin(async move { TcpStream::connect(&stack, target?).await.map(TokioIo::new) })
    }
}

impl Connection for TcpStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
