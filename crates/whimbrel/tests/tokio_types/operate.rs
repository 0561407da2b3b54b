//! The control socket and the metrics of a stack.

use std::io::{BufRead, BufReader, Write};

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
        let mut stream = connect(&asked).unwrap();
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
