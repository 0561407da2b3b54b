//! `axum::serve` over Whimbrel's listeners.

use std::convert::Infallible;
use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;

use axum::extract::Request;
use axum::response::Response;
use axum::serve::IncomingStream;
use tower_service::Service;

use crate::{TcpListener, TcpStream};

impl axum::serve::Listener for TcpListener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    /// Waits for ever once the stack has ended, because axum has no way to report that. [`serve()`]
    /// ends then.
    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        match Self::accept(self).await {
            Ok(accepted) => accepted,
            Err(_) => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Self::local_addr(self)
    }
}

/// Serves like [`axum::serve()`] until the stack ends, and returns the reason
/// ([`Stack::ended`](crate::Stack::ended)). `axum::serve` itself would wait for ever.
///
/// For a graceful shutdown, await both:
///
/// ```
/// # use whimbrel::{Stack, TcpListener};
/// # async fn run(stack: Stack, listener: TcpListener, routes: axum::Router) -> std::io::Result<()> {
/// # let asked = std::future::pending::<()>();
/// let ended = stack.ended();
/// let until = async move { tokio::select! { () = asked => {}, _ = ended => {} } };
/// axum::serve(listener, routes).with_graceful_shutdown(until).await
/// # }
/// ```
///
/// # Cancel safety
///
/// Dropping the future closes the listener. Connections that were accepted go on, as with
/// `axum::serve`.
pub async fn serve<M, S>(listener: TcpListener, make_service: M) -> io::Result<()>
where
    M: for<'a> Service<IncomingStream<'a, TcpListener>, Error = Infallible, Response = S>
        + Send
        + 'static,
    for<'a> <M as Service<IncomingStream<'a, TcpListener>>>::Future: Send,
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let ended = listener.stack_ended();
    tokio::select! {
        served = axum::serve(listener, make_service).into_future() => served,
        why = ended => Err(why),
    }
}
