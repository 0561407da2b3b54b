//! Measures the memory of idle connections: resident bytes of a process that has both ends.
//!
//! `cargo run --release -p whimbrel --example idle`
#![allow(clippy::unwrap_used, reason = "a measurement that fails says so by panicking")]

use tokio::runtime::Runtime;
use whimbrel::{Stack, TcpListener, TcpStream, mem_wire};

fn main() {
    Runtime::new().unwrap().block_on(async {
        // Several source addresses would be needed beyond the ephemeral ports of one.
        let (first, second) = mem_wire(Default::default(), Default::default(), 0).unwrap();
        let server = Stack::builder().mem(first).address("10.0.0.1", 24).unwrap().build().unwrap();
        let client = Stack::builder()
            .mem(second)
            .address("10.0.0.2", 24)
            .unwrap()
            .set("ports.first", "1024")
            .unwrap()
            .build()
            .unwrap();
        let listener = TcpListener::bind(&server, ("10.0.0.1", PORT)).await.unwrap();
        // Whatever starts up has started, and the streams' own places exist.
        let mut streams: Vec<TcpStream> = Vec::with_capacity(2 * MANY + 2);
        open(&listener, &client, &mut streams).await;
        let before = resident();
        for _ in 0..MANY {
            open(&listener, &client, &mut streams).await;
        }
        let places = 2 * MANY * size_of::<TcpStream>();
        let each = (resident() - before).saturating_sub(places) / (2 * MANY);
        println!(
            "idle connection: {each} bytes resident (of {} ends), its TcpStream of {} not counted",
            2 * MANY,
            size_of::<TcpStream>()
        );
    });
}

async fn open(listener: &TcpListener, client: &Stack, streams: &mut Vec<TcpStream>) {
    let (connected, accepted) =
        tokio::join!(TcpStream::connect(client, ("10.0.0.1", PORT)), listener.accept());
    streams.extend([connected.unwrap(), accepted.unwrap().0]);
}

/// Resident bytes of this process.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

const MANY: usize = 40_000;
const PORT: u16 = 7;
