//! Values of `TCP_INFO`.

use std::time::Duration;

use super::world::{Side, World, nonblocking, recv_now, send_now};
use crate::{Fd, TcpInfo};

fn client(world: &World, fd: Fd) -> TcpInfo {
    world.client.tcp_info(fd).expect("a socket")
}

fn server(world: &World, fd: Fd) -> TcpInfo {
    world.server.tcp_info(fd).expect("a socket")
}

#[test]
fn segments_and_bytes_are_counted_on_both_sides() {
    let (mut world, _, fd, peer) = World::joined();
    let fresh = client(&world, fd);
    assert_eq!((fresh.tcpi_segs_out, fresh.tcpi_segs_in, fresh.tcpi_delivered), (2, 1, 1));
    send_now(&mut world.client, fd, &[0; 3_000]).expect("room");
    world.run_until_quiet();
    let (sent, arrived) = (client(&world, fd), server(&world, peer));
    assert_eq!((sent.tcpi_bytes_sent, sent.tcpi_bytes_acked), (3_000, 3_000));
    assert_eq!((sent.tcpi_data_segs_out, sent.tcpi_segs_out), (3, 5));
    assert_eq!((sent.tcpi_total_retrans, sent.tcpi_bytes_retrans), (0, 0));
    assert_eq!((arrived.tcpi_bytes_received, arrived.tcpi_data_segs_in), (3_000, 3));
    assert_eq!((arrived.tcpi_segs_in, arrived.tcpi_rcv_mss), (4, 1_448));
    assert_eq!(u64::from(sent.tcpi_segs_in), world.sent_by(Side::Server).len() as u64);
    assert_eq!(sent.tcpi_pmtu, 1_500);
    assert_eq!((sent.tcpi_min_rtt, sent.tcpi_ato), (2_000, 40_000));
    world.run(Duration::from_millis(400));
    let later = client(&world, fd);
    assert_eq!(later.tcpi_last_data_sent - sent.tcpi_last_data_sent, 400);
    assert_eq!(later.tcpi_last_ack_recv - sent.tcpi_last_ack_recv, 400);
    assert_eq!(sent.field("tcpi_bytes_acked"), Some(3_000));
    assert_eq!(sent.field("tcpi_delivery_rate"), None, "it is not measured");
    world.end();
}

#[test]
fn retransmissions_are_counted_separately() {
    let (mut world, _, fd, _) = World::joined();
    world.cut = true;
    send_now(&mut world.client, fd, &[0; 1_000]).expect("room");
    world.run(Duration::from_millis(700));
    world.cut = false;
    let lost = client(&world, fd);
    assert_eq!((lost.tcpi_total_retrans, lost.tcpi_bytes_retrans), (2, 2_000));
    assert_eq!((lost.tcpi_bytes_sent, lost.tcpi_bytes_acked), (3_000, 0));
    world.run(Duration::from_secs(2));
    let mended = client(&world, fd);
    assert_eq!((mended.tcpi_total_retrans, mended.tcpi_bytes_acked), (3, 1_000));
    assert_eq!(mended.tcpi_bytes_sent, 4_000);
    world.end();
}

#[test]
fn timeouts_are_counted_and_timed_until_acknowledged() {
    let told = |world: &World, fd| {
        let info = client(world, fd);
        (info.tcpi_total_rto, info.tcpi_total_rto_recoveries, info.tcpi_total_rto_time)
    };
    let (mut world, _, fd, _) = World::joined();
    assert_eq!(told(&world, fd), (0, 0, 0));
    world.cut = true;
    send_now(&mut world.client, fd, &[0; 500]).expect("room");
    // The probe of RFC 8985 7, and then the time-out itself, doubled once.
    world.run(Duration::from_millis(1_000));
    let (timeouts, recoveries, before) = told(&world, fd);
    assert_eq!((timeouts, recoveries), (2, 1));
    world.run(Duration::from_millis(100));
    assert_eq!(told(&world, fd), (2, 1, before + 100), "it is not over");
    world.cut = false;
    world.run(Duration::from_secs(2));
    let mended = told(&world, fd);
    assert_eq!((mended.0, mended.1), (3, 1));
    world.run(Duration::from_secs(1));
    assert_eq!(told(&world, fd), mended, "it is over");
    // From the first of 200 ms to the third and its round trip: 400 ms and 800 ms.
    assert!((1_200..1_300).contains(&mended.2), "{mended:?}");
    world.end();
}

#[test]
fn sender_limits_are_timed() {
    let (mut world, _, fd, peer) = World::joined_with(&super::world::exact());
    nonblocking(&mut world.server, peer);
    assert_eq!(client(&world, fd).tcpi_busy_time, 0);
    let much = std::vec![0; 1 << 20];
    let mut given = send_now(&mut world.client, fd, &much).expect("room");
    world.run_until_quiet();
    given += send_now(&mut world.client, fd, &much).expect("room");
    assert_eq!(given, 512 << 10, "the peer's buffer is full, and so is ours");
    let before = client(&world, fd);
    world.run(Duration::from_secs(1));
    let closed = client(&world, fd);
    assert_eq!(closed.tcpi_rwnd_limited - before.tcpi_rwnd_limited, 1_000_000);
    assert_eq!(closed.tcpi_busy_time - before.tcpi_busy_time, 1_000_000);
    assert_eq!(closed.tcpi_sndbuf_limited, before.tcpi_sndbuf_limited);
    let mut read = 0;
    for _ in 0..100 {
        read += recv_now(&mut world.server, peer, 1 << 20).map_or(0, |text| text.len());
        world.run_until_quiet();
    }
    assert_eq!(read, given);
    let idle = client(&world, fd);
    world.run(Duration::from_secs(1));
    assert_eq!(client(&world, fd).tcpi_busy_time, idle.tcpi_busy_time);
    world.end();
}

#[test]
fn full_send_buffer_counts_as_sndbuf_limited() {
    let (mut world, _, fd, _) = World::joined_with(&super::world::exact());
    super::world::set(&mut world.client, fd, crate::SocketOption::SendBuffer, 5_000);
    world.cut = true;
    assert_eq!(send_now(&mut world.client, fd, &[0; 9_000]), Ok(5_000));
    world.run(Duration::from_millis(100));
    assert_eq!(client(&world, fd).tcpi_sndbuf_limited, 100_000);
    world.cut = false;
    world.end();
}
