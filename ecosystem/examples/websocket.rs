//! WebSockets: axum serves, tokio-tungstenite connects. Neither needs glue.

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::routing::any;
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use whimbrel::{Stack, TcpListener, TcpStream};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let echoed = echo(vec![7; 1_000_000]).await?;
    println!("{} bytes came back", echoed.len());
    Ok(())
}

/// Sends a message to a server that sends it back.
pub(crate) async fn echo(message: Vec<u8>) -> Outcome<Vec<u8>> {
    let (near, far) = Stack::pair()?;
    let listener = TcpListener::bind(&near, "10.0.0.1:80").await?;
    let serving = tokio::spawn(whimbrel::serve(listener, Router::new().route("/", any(upgrade))));
    let stream = TcpStream::connect(&far, "10.0.0.1:80").await?;
    let (mut socket, _response) = client_async("ws://10.0.0.1/", stream).await?;
    socket.send(Message::binary(message)).await?;
    let echoed = socket.next().await.ok_or("the server closed the connection")??;
    serving.abort();
    Ok(echoed.into_data().to_vec())
}

async fn upgrade(request: WebSocketUpgrade) -> axum::response::Response {
    request.on_upgrade(|mut socket| async move {
        while let Some(Ok(message)) = socket.recv().await {
            if socket.send(message).await.is_err() {
                return;
            }
        }
    })
}
