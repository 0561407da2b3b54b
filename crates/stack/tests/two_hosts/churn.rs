//! Short connections by the hundred thousand, in virtual time: none fails, none waits for more than
//! its path, and nothing grows.
//!
//! `scripts/long/churn-in-virtual-time` plays the long forms, which are ignored here: a million
//! connections from one address to one port, and the load at which a host of host-wide ISNs refused
//! one in eleven. One at a time, as memory is the process's.

mod world;

use std::time::Duration;

use world::{ChurnPlan, First, ROUND_TRIP, World};

const SERVER_FIRST: ChurnPlan = ChurnPlan { first: First::Server, upload: 0 };
const FEW_PORTS: (&str, &str) = ("net.ipv4.ip_local_port_range", "40000 41999");
const RATES: [u64; 6] = [250, 300, 500, 1_000, 10_000, 100_000];
/// A timer is up to a tick late.
const TIMER_TICK: Duration = Duration::from_nanos(1 << 20);

/// Returns the memory of this process, bytes; 0 where it is unknown.
#[allow(clippy::disallowed_methods, reason = "a test asks the machine how much memory it has")]
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).map_or(0, |pages: u64| pages * 4096)
}

/// The server closes first: its TIME-WAITs are met by new SYNs from the same ports. Returns how many
/// bytes of memory the last three quarters took.
fn many_from_one_address(count: u64, rate: u64, settings: &[(&str, &str)]) -> u64 {
    let mut world = World::new(SERVER_FIRST, settings);
    world.play(count / 4, rate);
    let before = resident();
    world.play(count - count / 4, rate);
    let grown = resident().saturating_sub(before);
    assert_eq!((world.delayed, world.most_waiting[0]), (0, 0));
    let counters = world.hosts[1].counters();
    assert_eq!(counters.challenge_acks + counters.time_wait_overflow + counters.listen_drops, 0);
    println!("{count} connections, {} waited at once, {grown} bytes more", world.most_waiting[1]);
    world.end();
    grown
}

#[test]
fn closing_server_delays_no_reused_port() {
    many_from_one_address(40_000, 20_000, &[FEW_PORTS]);
}

#[test]
#[ignore = "a million connections"]
fn a_million_connections_from_one_address_to_one_port() {
    let grown = many_from_one_address(1_000_000, 100_000, &[]);
    assert!(grown < 8 << 20, "{grown} bytes more");
}

/// The client closes first: as many connections as ports by reuse delay, at `ports` a second.
fn client_closes_first(ports: u64, seconds: u64, settings: &[(&str, &str)]) {
    let mut world = World::new(ChurnPlan { first: First::Client, upload: 0 }, settings);
    // A connection holds its port for a little longer than it waits.
    let rate = ports * 98 / 100;
    world.play(rate * seconds, rate);
    let counters = world.hosts[0].counters();
    assert_eq!((world.delayed, counters.ports_exhausted), (0, 0));
    assert!(counters.time_wait_taken_over > rate * (seconds - 2), "the ports came back");
    assert!(world.most_waiting[0] as u64 <= ports);
    println!("{} connections at {rate} a second, the client first", world.connected);
    world.end();
}

#[test]
fn a_client_that_closes_first_gets_all_that_its_ports_allow() {
    client_closes_first(2_000, 12, &[FEW_PORTS]);
}

#[test]
#[ignore = "850,000 connections"]
fn a_client_that_closes_first_gets_28_232_connections_a_second() {
    client_closes_first(28_232, 30, &[]);
}

/// The load of the report on illumos: a fixed rate, ports at random, the server closes first.
/// Returns how many connections were delayed, and the longest by how much.
fn ports_at_random(
    plan: ChurnPlan,
    load: (u64, u64),
    settings: &[(&str, &str)],
) -> (u64, Duration) {
    let (count, rate) = load;
    let settings: Vec<_> = [("ports", "random")].iter().chain(settings).copied().collect();
    let mut world = World::new(plan, &settings);
    world.play(count, rate);
    let counters = world.hosts[1].counters();
    assert_eq!(counters.challenge_acks, world.delayed, "each that was delayed met a challenge");
    let (delayed, longest, waited) = (world.delayed, world.longest, world.most_waiting[1]);
    let timestamps = if settings.contains(&WITHOUT_TIMESTAMPS) { "off" } else { "on" };
    println!(
        "| {rate} | {timestamps} | {} | {count} | {waited} | {} | {delayed} | {:.2} |",
        plan.upload,
        counters.time_wait_recycled,
        longest.as_secs_f64() * 1e3
    );
    world.end();
    (delayed, longest)
}

const WITHOUT_TIMESTAMPS: (&str, &str) = ("net.ipv4.tcp_timestamps", "off");

/// Clients send less than the ISN clock runs on: no client is ever delayed, timestamps or not.
fn nobody_is_delayed(load: (u64, u64), settings: &[(&str, &str)]) {
    let without: Vec<_> = [WITHOUT_TIMESTAMPS].iter().chain(settings).copied().collect();
    for settings in [settings, &without] {
        let (delayed, _) = ports_at_random(SERVER_FIRST, load, settings);
        assert_eq!(delayed, 0, "{load:?}, {settings:?}");
    }
}

/// Clients send more than the ISN clock runs on until their port comes back, some of them: with
/// timestamps no client is delayed, without those alone, and by two round trips.
fn who_outran_the_clock_is_delayed(load: (u64, u64), settings: &[(&str, &str)]) {
    let plan = ChurnPlan { upload: 128 << 10, ..SERVER_FIRST };
    let (delayed, _) = ports_at_random(plan, load, settings);
    assert_eq!(delayed, 0, "{load:?}, timestamps");
    let without: Vec<_> = [WITHOUT_TIMESTAMPS].iter().chain(settings).copied().collect();
    let (delayed, longest) = ports_at_random(plan, load, &without);
    assert!(longest <= ROUND_TRIP * 2 + TIMER_TICK, "{load:?}: {longest:?}");
    assert!(delayed > 0 || load.1 < 1_000, "at this rate ports come back within 33 ms");
}

#[test]
fn ports_that_come_back_at_random_delay_nobody_at_any_rate() {
    // At 250/s 300 ports come back about once in 1.2 s.
    let three_hundred = ("net.ipv4.ip_local_port_range", "40000 40299");
    for rate in RATES {
        let ports = if rate < 10_000 { three_hundred } else { FEW_PORTS };
        nobody_is_delayed((3_000, rate), &[ports]);
    }
}

#[test]
fn client_beyond_isn_clock_waits_two_round_trips() {
    who_outran_the_clock_is_delayed(
        (400, 2_000),
        &[("net.ipv4.ip_local_port_range", "40000 40099")],
    );
}

#[test]
#[ignore = "1.2 million connections"]
fn the_load_of_the_report_delays_nobody_at_any_rate() {
    for rate in RATES {
        nobody_is_delayed((100_000, rate), &[]);
    }
}

#[test]
#[ignore = "16 GB"]
fn upload_load_delays_only_clients_beyond_isn_clock() {
    for rate in [250, 1_000, 10_000, 50_000] {
        who_outran_the_clock_is_delayed((20_000, rate), &[]);
    }
}
