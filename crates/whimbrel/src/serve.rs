//! `axum::serve` over our listeners.

use std::net::SocketAddr;

use crate::{TcpListener, TcpStream};

impl axum::serve::Listener for TcpListener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    /// An error means that the stack has ended: then there is nothing to accept, for ever.
    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        match Self::accept(self).await {
            Ok(accepted) => accepted,
            Err(_) => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        Self::local_addr(self)
    }
}
