//! The ends of a connection, for tonic's server.

use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::TcpStream;

/// `Server::serve_with_incoming` takes [`TcpListener::incoming`](crate::TcpListener::incoming), and
/// `Request::remote_addr` is the peer.
impl Connected for TcpStream {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        let (local_addr, remote_addr) = (self.local_addr().ok(), self.peer_addr().ok());
        TcpConnectInfo { local_addr, remote_addr }
    }
}
