//! Setup of the tests, and the leak check at their end.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use whimbrel::{
    Census, LinkConfig, ShardCensus, Stack, StackBuilder, TcpListener, TcpStream, mem_wire,
};

/// Stacks of these tests are driven as the program says that they are in.
pub(crate) fn builder() -> StackBuilder {
    Stack::builder().driver(crate::DRIVER)
}

/// As [`Stack::pair`].
pub(crate) fn pair() -> (Stack, Stack) {
    let (first, second) = mem_wire(LinkConfig::default(), LinkConfig::default(), 0).unwrap();
    let host = |end, v4, v6| {
        let builder = builder().mem(end).address(v4, 24).unwrap().address(v6, 64).unwrap();
        builder.build().unwrap()
    };
    (host(first, "10.0.0.1", "fd00::1"), host(second, "10.0.0.2", "fd00::2"))
}

/// A host at 10.0.0.1 and one at 10.0.0.2, and the wire between them.
pub(crate) struct World {
    pub(crate) server: Stack,
    pub(crate) client: Stack,
}

impl World {
    /// Over a perfect wire.
    pub(crate) fn new() -> Self {
        let (server, client) = pair();
        Self { server, client }
    }

    /// Over this wire, with these rules at the client.
    pub(crate) fn with(link: &str, rules: &[(&str, &str)]) -> Self {
        Self::between(link, &[], rules)
    }

    /// Over this wire, with rules at the server and at the client.
    pub(crate) fn between(link: &str, theirs: &[(&str, &str)], ours: &[(&str, &str)]) -> Self {
        let link: LinkConfig = link.parse().unwrap();
        let (server, client) = mem_wire(link.clone(), link, 7).unwrap();
        let build = |wire, address, rules: &[(&str, &str)]| {
            let mut builder = builder().mem(wire).address(address, 24).unwrap();
            for (name, value) in rules {
                builder = builder.set(name, value).unwrap();
            }
            builder.build().unwrap()
        };
        Self { server: build(server, "10.0.0.1", theirs), client: build(client, "10.0.0.2", ours) }
    }

    /// Over a perfect wire, each on so many shards.
    pub(crate) fn of_shards(server: u16, client: u16) -> Self {
        Self::over("delay=0ms", server, client)
    }

    /// Over this wire, each on so many shards. A reset may be lost on it: who only reads then hears of
    /// it by keep-alive, if that is on, and a closed side waits in FIN-WAIT-2, by default longer than
    /// tests do.
    pub(crate) fn over(link: &str, server: u16, client: u16) -> Self {
        let link: LinkConfig = link.parse().unwrap();
        let ends = mem_wire(link.clone(), link, 7).unwrap();
        let build = |wire, shards, address| {
            let mut builder = builder().mem(wire).shards(shards).address(address, 24).unwrap();
            for time in ["tcp_fin_timeout", "tcp_keepalive_time", "tcp_keepalive_intvl"] {
                builder = builder.set(&format!("net.ipv4.{time}"), "3s").unwrap();
            }
            builder.build().unwrap()
        };
        Self {
            server: build(ends.0, server, "10.0.0.1"),
            client: build(ends.1, client, "10.0.0.2"),
        }
    }

    /// A listener of the server.
    pub(crate) async fn listener(&self) -> TcpListener {
        TcpListener::bind(&self.server, SERVER).await.unwrap()
    }

    /// A connection: the server's end, the client's end. The listener is gone again.
    pub(crate) async fn connection(&self) -> (TcpStream, TcpStream) {
        let listener = self.listener().await;
        let (connected, accepted) =
            tokio::join!(TcpStream::connect(&self.client, SERVER), listener.accept());
        (accepted.unwrap().0, connected.unwrap())
    }

    /// Nothing is left at either host but TIME-WAIT.
    pub(crate) async fn assert_empty(&self) {
        for stack in [&self.server, &self.client] {
            assert_empties(stack).await;
        }
    }
}

/// The stack soon holds nothing but TIME-WAIT, and whereto its ports lead.
pub(crate) async fn assert_empties(stack: &Stack) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let census = stack.census().await.unwrap();
        let ShardCensus { time_wait, destinations, other_addresses, .. } = census.shards;
        // Records in TIME-WAIT are of an address.
        let other_addresses = other_addresses.min(time_wait);
        let mut empty = Census::default();
        empty.shards.time_wait = time_wait;
        empty.shards.flows = time_wait;
        empty.shards.destinations = destinations;
        empty.shards.other_addresses = other_addresses;
        if census == empty {
            return;
        }
        assert!(Instant::now() < until, "something leaked: {census:#?}");
        sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until `done` holds.
pub(crate) async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done().await {
        assert!(Instant::now() < end, "waited too long until {what}");
        sleep(Duration::from_millis(1)).await;
    }
}

/// Bytes of which every position can be told from every other within 250.
pub(crate) fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// Address of the server.
pub(crate) const SERVER: &str = "10.0.0.1:7";
