//! Connections for hyper-util's pooling client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tower_service::Service;

use crate::{Stack, TcpStream};

/// Opens connections of a stack for `hyper_util::client::legacy::Client`, like hyper-util's
/// `HttpConnector` for kernel sockets.
///
/// The port defaults to 80, and to 443 for `https`. Names are resolved by the machine, except over a
/// stack of a `sim::World` (feature `sim`), whose hosts have names of their own.
#[derive(Clone, Debug)]
pub struct Connector {
    stack: Stack,
    enforce_http: bool,
}

impl Connector {
    /// Creates a connector for `http` URIs over connections of `stack`.
    pub const fn new(stack: Stack) -> Self {
        Self { stack, enforce_http: true }
    }

    /// Refuses URIs of schemes other than `http` (the default), because they would not be encrypted.
    /// Pass `false` if another connector wraps this one and encrypts.
    pub const fn enforce_http(&mut self, is_enforced: bool) {
        self.enforce_http = is_enforced;
    }

    /// Returns host and port of a URI.
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
        Box::pin(async move {
            let (host, port) = target?;
            #[cfg(feature = "sim")]
            if let Some(names) = stack.names() {
                let addr = (names.lookup(&host)?, port);
                return TcpStream::connect(&stack, addr).await.map(TokioIo::new);
            }
            TcpStream::connect(&stack, (host, port)).await.map(TokioIo::new)
        })
    }
}

impl Connection for TcpStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
