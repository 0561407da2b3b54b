//! The control socket and the metrics of a stack.

use std::io::{BufRead, BufReader, Write};
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use whimbrel::{ControlPlace, LinkConfig, Stack, TcpListener, TcpStream, mem_wire};
use whimbrel_io::control::connect;

#[tokio::test]
async fn stack_has_a_control_socket_until_it_is_dropped() {
    let path = std::env::temp_dir().join(format!("whim-stack-{}.sock", std::process::id()));
    let (near, far) = mem_wire(LinkConfig::default(), LinkConfig::default(), 1).unwrap();
    let place = ControlPlace::Path(path.clone());
    let stack = Stack::builder().mem(near).address("10.0.0.1", 24).unwrap().control(place);
    let stack = stack.build().unwrap();
    let peer = Stack::builder().mem(far).address("10.0.0.2", 24).unwrap().build().unwrap();
    let listener = TcpListener::bind(&stack, "10.0.0.1:7").await.unwrap();
    let client = TcpStream::connect(&peer, "10.0.0.1:7").await.unwrap();
    let (server, _) = listener.accept().await.unwrap();

    let text = stack.metrics().await.unwrap();
    assert!(text.contains("whimbrel_netstat_Tcp_PassiveOpens_total 1\n"), "{text}");
    assert!(text.contains("whimbrel_sockets{state=\"ESTABLISHED\"} 1\n"), "{text}");

    let asked = path.clone();
    let ask = move || {
        let mut stream = connect(&asked, Duration::from_secs(10)).unwrap();
        stream.write_all(b"{\"id\":1,\"method\":\"ss\"}\n").unwrap();
        BufReader::new(stream).lines().map_while(Result::ok).take(4).collect::<Vec<_>>()
    };
    let lines = tokio::task::spawn_blocking(ask).await.unwrap();
    assert!(lines[0].contains("\"schema\":\"whimbrel.control/1\""), "{lines:?}");
    assert!(lines[1].contains("\"state\":\"LISTEN\""), "{lines:?}");
    assert!(lines[2].contains("\"state\":\"ESTABLISHED\""), "{lines:?}");
    assert!(lines[3].contains("\"done\":{\"sockets\":2}"), "{lines:?}");
    drop((client, server, listener, stack));
    assert!(!path.exists());
}

#[tokio::test]
async fn refused_control_socket_fails_the_build() {
    let (near, _far) = mem_wire(LinkConfig::default(), LinkConfig::default(), 1).unwrap();
    let place = ControlPlace::Path("/nonexistent/a.sock".into());
    let stack = Stack::builder().mem(near).address("10.0.0.1", 24).unwrap().control(place).build();
    let error = stack.map(drop).unwrap_err().to_string();
    assert!(error.contains("control socket: /nonexistent: "), "{error}");
}

/// Events that `tracing` was given in this process.
static EVENTS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// A writer to [`EVENTS`].
struct Events;

impl Write for Events {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        EVENTS.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn events_are_emitted_at_their_targets_only_on_request() {
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::TRACE);
    // Another set of these tests in this process may have set it.
    let _ = subscriber.with_ansi(false).with_writer(|| Events).try_init();
    let (near, far) = mem_wire(LinkConfig::default(), LinkConfig::default(), 1).unwrap();
    let stack =
        Stack::builder().mem(near).address("10.7.0.1", 24).unwrap().tracing().build().unwrap();
    let peer = Stack::builder().mem(far).address("10.7.0.2", 24).unwrap().build().unwrap();
    let listener = TcpListener::bind(&stack, "10.7.0.1:7").await.unwrap();
    assert!(TcpStream::connect(&peer, "10.7.0.1:8").await.is_err());
    wait_for(["WARN whimbrel::refused: ", "refused=\"NO_SOCKET\"", "count=1"]).await;
    let mut client = TcpStream::connect(&peer, "10.7.0.1:7").await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    wait_for(["DEBUG whimbrel::connection: ", "local=10.7.0.1:7 ", "events=\"opened\""]).await;
    // More than the client's buffer grows to, while it does not read.
    let mut text = vec![0; 16 << 20];
    let sent = text.clone();
    let writing = tokio::spawn(async move { server.write_all(&sent).await.map(|()| server) });
    wait_for(["TRACE whimbrel::transfer: ", "remote=10.7.0.2:", "sent"]).await;
    wait_for(["DEBUG whimbrel::recovery: ", "conn=1 ", "stalled"]).await;
    client.read_exact(&mut text).await.unwrap();
    wait_for(["DEBUG whimbrel::recovery: ", "conn=1 ", "resumed"]).await;
    drop((client, writing.await.unwrap().unwrap()));
    wait_for(["DEBUG whimbrel::connection: ", "conn=1 ", "events=\"closed\""]).await;
    // The peer's stack was not asked to.
    assert!(!has(["whimbrel::", "local=10.7.0.2:", ""]));
}

/// True if a line of [`EVENTS`] has all of these.
fn has(words: [&str; 3]) -> bool {
    let events = String::from_utf8_lossy(&EVENTS.lock().unwrap()).into_owned();
    events.lines().any(|line| words.iter().all(|word| line.contains(word)))
}

/// Waits until a line of [`EVENTS`] has all of these.
async fn wait_for(words: [&str; 3]) {
    let appears = async {
        while !has(words) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), appears).await;
    assert!(
        in_time.is_ok(),
        "no {words:?} in {}",
        String::from_utf8_lossy(&EVENTS.lock().unwrap())
    );
}
