//! A paused clock of tokio, and a wire with a descriptor, whose events come by the machine's clock.

use whimbrel::{BuildError, Stack, TcpStream};

use crate::scratch::scratch;

/// Builds a stack over a socket of this test's own.
fn build(name: &str) -> Result<Stack, BuildError> {
    let folder = scratch(name);
    std::fs::create_dir(&folder).unwrap();
    let wire = format!("unix:{},addr=10.0.0.1/24", folder.join("wire").display());
    Stack::builder().wire(wire.parse().unwrap()).build()
}

#[tokio::test(start_paused = true)]
async fn wire_with_descriptor_refuses_paused_clock() {
    let error = build("paused").err().unwrap();
    assert!(matches!(error, BuildError::PausedClock(_)), "{error}");
}

#[tokio::test]
async fn stack_ends_when_clock_is_paused_later() {
    let stack = build("paused-later").unwrap();
    tokio::time::pause();
    // Its timer retransmits the SYN in one second.
    let error = TcpStream::connect(&stack, "10.0.0.2:7").await.unwrap_err();
    assert!(error.to_string().contains("clock was paused"), "{error}");
    assert!(stack.ended().await.to_string().contains("clock was paused"));
}
