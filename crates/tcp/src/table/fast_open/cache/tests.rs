use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_wire::tcp::FastOpen;
use whimbrel_wire::{Address, Endpoint, Mss};

use super::{FastOpenCache, KnownServer, MOST, Service};

const FIRST: Duration = Duration::from_secs(900);

fn service(host: u32, port: u16) -> Service {
    Service {
        local: Address::from_v4_bytes([192, 0, 2, 1]),
        remote: Endpoint::new(Address::from_v4_bytes(host.to_be_bytes()), port),
    }
}

fn known(byte: u8, mss: u16) -> KnownServer {
    KnownServer { cookie: FastOpen::from_cookie(&[byte; 8]).unwrap(), mss: Mss::new(mss) }
}

fn at(secs: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(secs)
}

#[test]
fn cookie_serves_all_ports_of_its_server_and_the_last_counts() {
    let mut cache = FastOpenCache::new();
    cache.store(&service(1, 80), known(1, 1460));
    assert_eq!(cache.find(&service(1, 443)), Some(known(1, 1460)));
    assert_eq!(cache.find(&service(2, 80)), None);
    let elsewhere = Service { local: Address::from_v4_bytes([192, 0, 2, 2]), ..service(1, 80) };
    assert_eq!(cache.find(&elsewhere), None);
    cache.store(&service(1, 80), known(2, 1400));
    assert_eq!(cache.find(&service(1, 80)), Some(known(2, 1400)));
    cache.note_mss(&service(1, 80), Mss::new(536));
    assert_eq!(cache.find(&service(1, 80)), Some(known(2, 536)));
    cache.note_mss(&service(2, 80), Mss::new(536));
    assert_eq!(cache.find(&service(2, 80)), None);
}

#[test]
fn full_cache_forgets_the_longest_silent_server() {
    let mut cache = FastOpenCache::new();
    for host in 0..MOST as u32 {
        cache.store(&service(host, 80), known(1, 1460));
    }
    cache.store(&service(0, 80), known(2, 1460));
    cache.store(&service(MOST as u32, 80), known(1, 1460));
    assert_eq!(cache.find(&service(0, 80)), Some(known(2, 1460)));
    assert_eq!(cache.find(&service(1, 80)), None);
}

/// 800 servers a second grant cookies, and as many fail, for ten seconds. One that is connected to in each second
/// keeps its cookie, and one that fails in each is not tried.
#[test]
fn server_in_use_keeps_its_cookie_amid_flood_of_others() {
    let mut cache = FastOpenCache::new();
    let flood = |cache: &mut FastOpenCache, number: u32, now| {
        let other = service(1_000 + number, 80);
        cache.store(&other, known(1, 1460));
        let failing = Service { remote: Endpoint { port: 81, ..other.remote }, ..other };
        cache.on_failure(&failing, now);
    };
    (0..MOST as u32).for_each(|number| flood(&mut cache, number, at(0)));
    cache.store(&service(1, 80), known(2, 1460));
    for second in 0..10 {
        // Its SYN-ACK names an MSS.
        cache.note_mss(&service(1, 80), Mss::new(1460));
        cache.on_failure(&service(2, 80), at(second));
        let first = (MOST as u32) + second as u32 * 800;
        (first..first + 800).for_each(|number| flood(&mut cache, number, at(second)));
        assert_eq!(cache.find(&service(1, 80)), Some(known(2, 1460)), "{second}");
        assert!(cache.is_disabled(&service(2, 80), at(second), FIRST), "{second}");
    }
    let known =
        (0..MOST as u32 + 8_000).filter(|it| cache.find(&service(1_000 + it, 80)).is_some());
    assert_eq!(known.count(), MOST - 1, "all but the one in use");
}

#[test]
fn a_port_that_fails_is_left_alone_for_a_time_that_doubles() {
    let mut cache = FastOpenCache::new();
    let failing = service(1, 80);
    let mut now = 0;
    for pause in [900, 1_800, 3_600, 7_200, 14_400, 28_800, 57_600, 57_600] {
        cache.on_failure(&failing, at(now));
        assert!(cache.is_disabled(&failing, at(now + pause - 1), FIRST), "{pause}");
        assert!(!cache.is_disabled(&failing, at(now + pause), FIRST), "{pause}");
        now += pause;
    }
    assert!(!cache.is_disabled(&service(1, 443), at(now), FIRST));
    cache.on_failure(&failing, at(now));
    cache.on_success(&failing);
    assert!(!cache.is_disabled(&failing, at(now), FIRST));
    cache.on_failure(&failing, at(now));
    assert!(!cache.is_disabled(&failing, at(now + 900), FIRST));
}

#[test]
fn a_cookie_ends_a_pause_and_no_pause_is_none() {
    let mut cache = FastOpenCache::new();
    cache.on_failure(&service(1, 80), at(0));
    assert!(!cache.is_disabled(&service(1, 80), at(0), Duration::ZERO));
    cache.store(&service(1, 80), known(1, 1460));
    assert!(!cache.is_disabled(&service(1, 80), at(0), FIRST));
    cache.on_failure(&service(1, 80), at(0));
    cache.clear();
    assert!(!cache.is_disabled(&service(1, 80), at(0), FIRST));
    assert_eq!(cache.find(&service(1, 80)), None);
}
