//! Keys that are given to a stack, and that change while it runs.

use whimbrel::{GroupKey, LinkConfig, StackBuilder, TcpSocket, TcpStream, mem_wire};

use crate::world::{SERVER, World, builder, until};

const KEYS: [&str; 3] = [
    "000102030405060708090a0b0c0d0e0f",
    "101112131415161718191a1b1c1d1e1f",
    "202122232425262728292a2b2c2d2e2f",
];

fn key(which: usize) -> GroupKey {
    KEYS[which].parse().unwrap()
}

/// A server on two shards, and a client.
fn world(link: &str, server: impl FnOnce(StackBuilder) -> StackBuilder) -> World {
    let link: LinkConfig = link.parse().unwrap();
    let ends = mem_wire(link.clone(), link, 7).unwrap();
    let built = server(builder().mem(ends.0).shards(2)).address("10.0.0.1", 24).unwrap();
    let client = builder().mem(ends.1).address("10.0.0.2", 24).unwrap();
    World { server: built.build().unwrap(), client: client.build().unwrap() }
}

#[tokio::test]
async fn fast_open_cookie_is_valid_until_second_key_change() {
    let world = world("delay=1ms", |server| server.fast_open_key(key(0)));
    let listening = TcpSocket::new_v4(&world.server).unwrap();
    listening.set_fastopen(8).unwrap();
    listening.bind(SERVER.parse().unwrap()).unwrap();
    let listener = listening.listen(8).unwrap();
    // Whether the text came with the SYN, and how many cookies of the key before did so far.
    let steps: [(&[usize], bool, u64); 5] = [
        (&[], false, 0),
        (&[], true, 0),
        (&[1], true, 1),
        // What it was given instead.
        (&[2], true, 2),
        (&[0, 1], false, 2),
    ];
    for (number, (rotations, with_syn, of_backup)) in steps.into_iter().enumerate() {
        for which in rotations {
            world.server.rotate_fast_open_key(key(*which)).await.unwrap();
        }
        let socket = TcpSocket::new_v4(&world.client).unwrap();
        let connecting = socket.connect_fast(SERVER.parse().unwrap(), b"whimbrel");
        let (client, accepted) = tokio::join!(connecting, listener.accept());
        assert_eq!(accepted.unwrap().0.tcp_info().await.unwrap().syn_data, with_syn, "{number}");
        drop(client.unwrap());
        let counters = world.server.counters().await.unwrap();
        assert_eq!(counters.fast_open_passive_alt_key, of_backup, "{number}");
    }
    drop(listener);
    world.assert_empty().await;
}

#[tokio::test]
async fn the_key_that_is_given_is_the_one_that_a_stack_begins_with() {
    let world = world("delay=1ms", |server| server.fast_open_key(key(0)));
    let listening = TcpSocket::new_v4(&world.server).unwrap();
    listening.set_fastopen(8).unwrap();
    listening.bind(SERVER.parse().unwrap()).unwrap();
    let listener = listening.listen(8).unwrap();
    for with_syn in [false, true] {
        let socket = TcpSocket::new_v4(&world.client).unwrap();
        let connecting = socket.connect_fast(SERVER.parse().unwrap(), b"whimbrel");
        let (client, accepted) = tokio::join!(connecting, listener.accept());
        assert_eq!(accepted.unwrap().0.tcp_info().await.unwrap().syn_data, with_syn);
        drop(client.unwrap());
        // There and back again: the cookie is as good as new.
        for which in [1, 0] {
            world.server.rotate_fast_open_key(key(which)).await.unwrap();
        }
    }
    assert_eq!(world.server.counters().await.unwrap().fast_open_passive_alt_key, 0);
    drop(listener);
    world.assert_empty().await;
}

#[tokio::test]
async fn handshake_survives_cookie_key_change() {
    for (other, completes) in [(Some(key(0)), true), (None, false)] {
        let world = world("delay=100ms", |server| {
            let always = server.set("net.ipv4.tcp_syncookies", "2").unwrap();
            always.cookie_group(key(0))
        });
        let listener = world.listener().await;
        let stack = world.client.clone();
        let connecting = tokio::spawn(async move { TcpStream::connect(&stack, SERVER).await });
        until("a cookie is on its way", async || {
            world.server.counters().await.unwrap().cookies_sent == 1
        })
        .await;
        world.server.set_cookie_keys(key(1), other).await.unwrap();
        let client = connecting.await.unwrap().unwrap();
        until("the third segment came", async || {
            let counters = world.server.counters().await.unwrap();
            assert!(counters.cookies_received + counters.cookies_failed <= 1);
            counters.cookies_received + counters.cookies_failed == 1
        })
        .await;
        let counters = world.server.counters().await.unwrap();
        assert_eq!(counters.cookies_received == 1, completes);
        drop((client, listener));
        world.assert_empty().await;
    }
}
