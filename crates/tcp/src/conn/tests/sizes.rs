//! Buffers that follow the path, and those that do not.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_wire::SeqNum;

use super::pair::{CLIENT_ISS, Pair, Which, fixed, pattern};
use crate::Tunables;
use crate::conn::{BufferSize, Connection, Limit, RouteMetrics, Signals};
use crate::tunables::BufferPolicy;

/// Buffers that grow by themselves, with timestamps or without.
fn auto(timestamps: bool) -> Tunables {
    let (recv_auto, send_auto) = (true, true);
    Tunables { recv_auto, send_auto, timestamps, ..Tunables::default() }
}

/// The client writes as much as there is room for, for so long.
fn stream(pair: &mut Pair, millis: u32) {
    let bytes = pattern(4 << 20);
    for _ in 0..millis {
        pair.write(Which::Client, &bytes);
        pair.run_for(Duration::from_millis(1));
    }
    pair.server.received.clear();
}

fn recv_size(pair: &Pair) -> u32 {
    pair.server.connection.transfer.tcb.receiver.size()
}

/// So much of the server's budget, in hundredths, is used.
fn use_up(pair: &mut Pair, hundredths: u64) {
    let side = &mut pair.server;
    side.cx.pool.budget.set_bytes(100_000_000, &mut side.cx.env.counters);
    side.cx.pool.budget.note_records(hundredths * 1_000_000, 0, &mut side.cx.env.counters);
}

fn limited(connection: &Connection, limit: Limit) -> Duration {
    Duration::from_millis(connection.transfer.tcb.cold().info_counts().limited(limit).into())
}

#[test]
fn a_sender_in_slow_start_is_never_limited_by_the_window() {
    for timestamps in [true, false] {
        let mut pair = Pair::established(&auto(timestamps));
        pair.delay = Duration::from_millis(20);
        stream(&mut pair, 400);
        let cwnd = pair.client.connection.cwnd();
        assert!(cwnd > 4 << 20, "timestamps {timestamps}: {cwnd}");
        assert_eq!(limited(&pair.client.connection, Limit::Window), Duration::ZERO);
        assert!(recv_size(&pair) > cwnd, "timestamps {timestamps}");
        assert!(pair.server.cx.counters.recv_buffers_grown >= 3);
    }
}

#[test]
fn what_the_peer_holds_behind_a_hole_leaves_room_for_more_text() {
    for sack in [true, false] {
        leaves_room_behind_a_hole(sack);
    }
}

fn leaves_room_behind_a_hole(sack: bool) {
    let mut pair = Pair::established(&Tunables { sack, ..auto(true) });
    pair.delay = Duration::from_millis(20);
    stream(&mut pair, 180);
    // A byte never arrives, and all behind it does.
    pair.lose = |_, flying| {
        let ahead = (SeqNum::new(CLIENT_ISS) + 600_000).offset_from(flying.header.seq);
        (ahead as usize) < flying.text.len()
    };
    for _ in 0..180 {
        if pair.client.connection.signals_mut().take(Signals::WRITABLE) {
            pair.write(Which::Client, &pattern(4 << 20));
        }
        pair.run_for(Duration::from_millis(1));
    }
    let client = &pair.client.connection;
    let (in_flight, cwnd) = (client.transfer.tcb.sender.unacknowledged(), client.cwnd());
    assert_eq!(pair.client.cx.counters.lost_retransmit > 0, sack);
    assert!(in_flight > 4 * cwnd, "{in_flight} with {cwnd}, SACK: {sack}");
    let pipe = client.transfer.tcb.sender.pipe(client.transfer.tcb.queue());
    assert!(pipe + 2 * u32::from(client.mss()) > cwnd, "{pipe} of {cwnd}");
}

#[test]
fn a_window_grows_up_to_its_maximum_and_no_further() {
    let mut pair = Pair::established(&Tunables { recv_buffer_max: 1 << 20, ..auto(true) });
    stream(&mut pair, 400);
    assert_eq!(recv_size(&pair), 1 << 20);
    assert!(limited(&pair.client.connection, Limit::Window) > Duration::from_millis(100));
}

#[test]
fn for_a_slow_reader_nothing_grows() {
    let mut pair = Pair::established(&auto(true));
    pair.server.reads = false;
    let bytes = pattern(64 << 10);
    for _ in 0..200 {
        pair.write(Which::Client, &bytes);
        pair.run_for(Duration::from_millis(50));
        // 10,000 bytes in each 50 ms, of a path that would bring more.
        let now = pair.now;
        for _ in 0..2 {
            pair.server.with(now, |connection, cx| connection.read_up_to(cx, 5_000));
        }
    }
    assert_eq!(recv_size(&pair), 256 << 10);
    assert_eq!(pair.server.cx.counters.recv_buffers_grown, 0);
}

#[test]
fn asked_size_is_a_floor_or_by_other_rules_exact() {
    for (buffers, asked, grows) in [
        (BufferPolicy::Floor, BufferSize::Asked(64 << 10), true),
        (BufferPolicy::Floor, BufferSize::Exact(64 << 10), false),
        (BufferPolicy::Exact, BufferSize::Asked(64 << 10), false),
        (BufferPolicy::Exact, BufferSize::Floor(64 << 10), true),
        (BufferPolicy::Exact, BufferSize::Auto, true),
        (BufferPolicy::Route, BufferSize::Asked(64 << 10), false),
    ] {
        let mut pair = Pair::established(&Tunables { buffers, ..auto(true) });
        let now = pair.now;
        pair.server.with(now, |connection, cx| connection.set_recv_size(cx, asked));
        pair.client.with(now, |connection, cx| connection.set_send_size(cx, asked));
        let first = recv_size(&pair);
        stream(&mut pair, 400);
        assert_eq!(recv_size(&pair) > first, grows, "{buffers:?} {asked:?}");
        let sent = pair.client.connection.transfer.tcb.sender.size();
        assert_eq!(sent > first, grows, "{buffers:?} {asked:?}: {sent}");
    }
}

#[test]
fn grown_buffer_stays_at_a_lesser_size_unless_that_is_exact() {
    let mut pair = Pair::established(&auto(true));
    stream(&mut pair, 400);
    let grown = recv_size(&pair);
    let now = pair.now;
    let mut set = |size| {
        pair.server.with(now, |connection, cx| {
            connection.set_recv_size(cx, size);
            connection.transfer.tcb.receiver.size()
        })
    };
    assert_eq!(set(BufferSize::Floor(100_000)), grown);
    assert_eq!(set(BufferSize::Exact(100_000)), 100_000);
}

#[test]
fn above_three_quarters_of_the_budget_no_buffer_grows() {
    let mut pair = Pair::established(&auto(true));
    use_up(&mut pair, 80);
    stream(&mut pair, 400);
    assert_eq!(recv_size(&pair), 256 << 10);
    let counters = &pair.server.cx.counters;
    assert_eq!((counters.recv_buffers_grown, counters.recv_buffers_held > 0), (0, true));
    use_up(&mut pair, 10);
    stream(&mut pair, 400);
    assert!(recv_size(&pair) > 256 << 10, "there is room again");
}

#[test]
fn slow_reader_loses_growth_above_nine_tenths_of_the_budget() {
    let mut pair = Pair::established(&auto(true));
    stream(&mut pair, 400);
    let grown = recv_size(&pair);
    use_up(&mut pair, 92);
    stream(&mut pair, 100);
    assert_eq!(recv_size(&pair), grown, "its reader keeps up");
    pair.server.reads = false;
    let edge = pair.server.connection.recv_sequence().edge;
    stream(&mut pair, 300);
    assert_eq!(recv_size(&pair), 256 << 10);
    assert_eq!(pair.server.cx.counters.recv_buffers_shrunk, 1);
    let rcv = *pair.server.connection.recv_sequence();
    assert!(!rcv.edge.before(edge), "RFC 9293 3.8.6: what was announced stays");
    assert!(rcv.wnd() > 256 << 10, "and may be more than the buffer has now");
    // Once all of it is read the window is what was asked for.
    pair.server.reads = true;
    let now = pair.now;
    pair.server.drain(now);
    for _ in 0..20 {
        pair.run_for(Duration::from_secs(1));
        stream(&mut pair, 100);
    }
    assert!(pair.server.connection.recv_sequence().wnd() <= 256 << 10);
}

#[test]
fn the_send_buffer_follows_what_may_be_in_flight_both_ways() {
    let mut pair = Pair::established(&auto(true));
    stream(&mut pair, 300);
    let connection = &pair.client.connection;
    let window = connection.cwnd().min(connection.send_sequence().wnd.get());
    assert!(
        connection.transfer.tcb.sender.size() >= window,
        "{}",
        connection.transfer.tcb.sender.size()
    );
    assert!(connection.transfer.tcb.sender.size() > 512 << 10);
    assert_eq!(limited(connection, Limit::Buffer), Duration::ZERO, "the path never ran dry");
    // After a pause the congestion window is the initial one again.
    pair.run_for(Duration::from_secs(60));
    pair.write(Which::Client, b"x");
    pair.run_for(Duration::from_secs(1));
    pair.write(Which::Client, b"x");
    assert_eq!(pair.client.connection.transfer.tcb.sender.size(), 256 << 10);
}

#[test]
fn send_buffer_stops_growing_while_memory_is_short() {
    let mut pair = Pair::established(&auto(true));
    let bytes = pattern(4 << 20);
    let size = |pair: &mut Pair, hundredths: u64| {
        let side = &mut pair.client;
        side.cx.pool.budget.set_bytes(1_000_000_000, &mut side.cx.env.counters);
        side.cx.pool.budget.note_records(hundredths * 10_000_000, 0, &mut side.cx.env.counters);
        for _ in 0..60 {
            pair.write(Which::Client, &bytes);
            pair.run_for(Duration::from_millis(1));
        }
        pair.server.received.clear();
        pair.client.connection.transfer.tcb.sender.size()
    };
    let before = size(&mut pair, 10);
    let held = size(&mut pair, 80);
    assert!(held <= before.max(256 << 10), "{held}");
    assert!(size(&mut pair, 10) > held, "there is room again");
    assert_eq!(size(&mut pair, 92), 256 << 10);
}

fn unsent(connection: &Connection) -> u32 {
    connection.transfer.tcb.sender.unsent(connection.transfer.tcb.queue())
}

/// Other connections of the client hold so much text, in addition to this one.
fn crowd(pair: &mut Pair, before: u32, after: u32) {
    let side = &mut pair.client;
    side.cx.pool.budget.move_text(before, after, &mut side.cx.env.counters);
}

#[test]
fn who_was_refused_while_many_wait_has_a_share() {
    for others in [0, 3 << 20] {
        let mut pair = Pair::established(&fixed(4 << 20, 1 << 20));
        crowd(&mut pair, 0, others);
        let bytes = pattern(2 << 20);
        assert_eq!(pair.write(Which::Client, &bytes), 1 << 20, "none was refused yet");
        let mut carried = 1 << 20;
        while carried < 8 << 20 {
            pair.run_for(Duration::from_micros(500));
            assert!(pair.now < Instant::from_millis(60_000), "no signal of room: {carried}");
            let told = pair.client.connection.signals_mut().take(Signals::WRITABLE);
            let before = unsent(&pair.client.connection);
            let taken = if told { pair.write(Which::Client, &bytes) } else { 0 };
            carried += taken;
            let share =
                (pair.client.connection.transfer.tcb.sender.unacknowledged() / 4).max(32 << 10);
            assert!(!told || taken >= 16 << 10, "{taken} are not worth a waking");
            let after = unsent(&pair.client.connection);
            assert!(others == 0 || after <= share.max(before), "{after} of {share}");
        }
        pair.run_until_quiet();
        assert_eq!(pair.server.received.len(), carried);
        assert_eq!(pair.write(Which::Client, &bytes), 1 << 20, "something new to say");
        let now = pair.now;
        let whole = pair
            .client
            .with(now, |connection, cx| connection.write_whole(cx, Bytes::copy_from_slice(&bytes)));
        assert_eq!(whole, Ok(()));
        pair.run_until_quiet();
        assert_eq!(pair.server.received.len(), carried + (1 << 20) + bytes.len(), "none is lost");
        crowd(&mut pair, others, 0);
    }
}

#[test]
fn who_holds_much_alone_has_no_share() {
    let mut pair = Pair::established(&fixed(8 << 20, 4 << 20));
    let bytes = pattern(5 << 20);
    assert_eq!(pair.write(Which::Client, &bytes), 4 << 20);
    assert!(!pair.client.connection.transfer.tcb.sender.is_send_share_limited(), "a crowd of one");
}

#[test]
fn with_a_share_the_path_is_as_busy() {
    let rounds = [0, 3 << 20].map(|others| {
        let mut pair = Pair::established(&fixed(4 << 20, 2 << 20));
        pair.delay = Duration::from_millis(20);
        crowd(&mut pair, 0, others);
        let bytes = pattern(4 << 20);
        let mut carried = 0;
        let begun = pair.now;
        carried += pair.write(Which::Client, &bytes);
        while carried < 32 << 20 {
            pair.run_for(Duration::from_millis(1));
            assert!(pair.now < Instant::from_millis(60_000), "no signal of room: {carried}");
            if pair.client.connection.signals_mut().take(Signals::WRITABLE) {
                carried += pair.write(Which::Client, &bytes);
            }
            pair.server.received.clear();
        }
        pair.run_until_quiet();
        crowd(&mut pair, others, 0);
        pair.now.since(begun).as_millis()
    });
    assert!(rounds[1] <= rounds[0] * 21 / 20, "{rounds:?}");
}

#[test]
fn route_only_raises_initial_values() {
    let metrics = RouteMetrics::new()
        .with_initcwnd(40)
        .with_ssthresh(90_000)
        .with_rtt(Duration::from_millis(300))
        .with_sendpipe(1 << 20)
        .with_recvpipe(16 << 10)
        .with_initrwnd(200);
    let mut pair = Pair::established(&Tunables::default());
    let now = pair.now;
    let before = pair.client.connection.rtt().srtt();
    pair.client.with(now, |connection, cx| connection.take_metrics(cx, &metrics));
    let client = &pair.client.connection;
    assert_eq!((client.cwnd(), client.transfer.tcb.sender.ssthresh()), (40 * 1_448, 90_000));
    assert_eq!(client.transfer.tcb.sender.size(), 1 << 20);
    assert_eq!(client.transfer.tcb.receiver.size(), 200 * 1_460, "more than what recvpipe says");
    assert_eq!(client.rtt().srtt(), before, "it was measured");
    pair.client.with(now, |connection, cx| connection.set_recv_size(cx, 1 << 20));
    assert_eq!(pair.client.connection.transfer.tcb.receiver.size(), 1 << 20, "it only raises");
}

#[test]
fn by_the_way_of_1998_a_route_replaces_what_was_asked_for() {
    let buffers = BufferPolicy::Route;
    let mut pair = Pair::established(&Tunables { buffers, ..auto(true) });
    let metrics = RouteMetrics::new().with_sendpipe(20_000).with_recvpipe(16 << 10);
    let now = pair.now;
    for side in [&mut pair.client, &mut pair.server] {
        side.with(now, |connection, cx| {
            connection.take_metrics(cx, &metrics);
            connection.set_recv_size(cx, 1 << 20);
            connection.set_send_size(cx, BufferSize::Exact(1 << 20));
        });
    }
    stream(&mut pair, 400);
    assert_eq!(recv_size(&pair), 16 << 10);
    assert_eq!(pair.client.connection.transfer.tcb.sender.size(), 20_000);
}
