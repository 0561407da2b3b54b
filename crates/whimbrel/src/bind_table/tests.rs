use std::io::ErrorKind;
use std::net::SocketAddr;

use super::*;

#[test]
fn one_listener_to_an_end_and_any_address_counts_as_each() {
    let bound = bound();
    let first = bound.reserve(at("10.0.0.1:80"), Share::ADDRESS).unwrap();
    first.listen(ShardedListener::nowhere).unwrap();
    for taken in ["10.0.0.1:80", "0.0.0.0:80", "[::]:80"] {
        let error = bound.reserve(at(taken), Share::ADDRESS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse, "{taken}");
        assert!(error.to_string().contains(taken), "{error}");
    }
    let other = bound.reserve(at("[fd00::1]:80"), Share::NONE).unwrap();
    other.listen(ShardedListener::nowhere).unwrap();
    drop(first);
    bound.reserve(at("0.0.0.0:80"), Share::NONE).unwrap();
    drop(other);
    assert!(bound.lock().ports.is_empty());
}

#[test]
fn those_that_share_an_end_cannot_both_listen_there() {
    let bound = bound();
    let first = bound.reserve(at("10.0.0.1:80"), Share::ADDRESS).unwrap();
    let second = bound.reserve(at("10.0.0.1:80"), Share::ADDRESS).unwrap();
    assert!(bound.reserve(at("10.0.0.1:80"), Share::NONE).is_err());
    let listener = first.listen(ShardedListener::nowhere).unwrap();
    assert_eq!(second.listen(ShardedListener::nowhere).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert!(bound.reserve(at("10.0.0.1:80"), Share::ADDRESS).is_err());
    drop((listener, first));
    second.listen(ShardedListener::nowhere).unwrap();
}

#[test]
fn whether_an_end_is_shared_is_asked_when_another_wants_it() {
    let bound = bound();
    let first = bound.reserve(at("10.0.0.1:80"), Share::NONE).unwrap();
    assert!(bound.reserve(at("10.0.0.1:80"), Share::ADDRESS).is_err());
    first.share(Share::ADDRESS);
    drop(bound.reserve(at("10.0.0.1:80"), Share::ADDRESS).unwrap());
    first.share(Share::NONE);
    assert!(bound.reserve(at("10.0.0.1:80"), Share::ADDRESS).is_err());
}

#[test]
fn listeners_share_port_until_last_is_dropped() {
    let bound = bound();
    let share = Share { address: false, port: true };
    let take = || bound.reserve(at("10.0.0.1:80"), share).unwrap();
    let (first, second, third) = (take(), take(), take());
    let listeners = [&first, &second].map(|one| one.listen(ShardedListener::nowhere).unwrap());
    assert!(Arc::ptr_eq(&listeners[0], &listeners[1]));
    // No other socket, and not at another address that covers it.
    for (taken, share) in [("10.0.0.1:80", Share::ADDRESS), ("10.0.0.1:80", Share::NONE)] {
        assert!(bound.reserve(at(taken), share).is_err());
    }
    let wide = bound.reserve(at("0.0.0.0:80"), share).unwrap();
    assert_eq!(wide.listen(ShardedListener::nowhere).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop((listeners, wide));
    // The listener is gone, and those that had it are there still.
    assert_eq!(third.listen(ShardedListener::nowhere).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop((first, second));
    third.listen(ShardedListener::nowhere).unwrap();
}

#[test]
fn a_drawn_port_is_free_and_when_none_is_the_range_is_named() {
    let bound = bound();
    let mut drawn: Vec<ReservedAddr> =
        (0..4).map(|_| bound.reserve(at("10.0.0.1:0"), Share::ADDRESS).unwrap()).collect();
    let mut ports: Vec<u16> = drawn.iter().map(|one| one.at().port).collect();
    ports.sort_unstable();
    assert_eq!(ports, [40_000, 40_001, 40_002, 40_003]);
    let error = bound.reserve(at("10.0.0.1:0"), Share::ADDRESS).unwrap_err();
    assert!(error.to_string().contains("40000 to 40003"), "{error}");
    // The other address has ports of its own.
    bound.reserve(at("[fd00::1]:0"), Share::ADDRESS).unwrap();
    let freed = drawn.pop().unwrap().at().port;
    assert_eq!(bound.reserve(at("10.0.0.1:0"), Share::ADDRESS).unwrap().at().port, freed);
}

#[test]
fn another_hosts_address_cannot_be_bound() {
    let error = bound().reserve(at("10.0.0.9:80"), Share::ADDRESS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
}

fn bound() -> Arc<BindTable> {
    let own = |addr: &str, prefix_len| InterfaceAddress {
        addr: addr.parse::<std::net::IpAddr>().unwrap().into(),
        prefix_len,
    };
    let tunables = Tunables { port_first: 40_000, port_last: 40_003, ..Tunables::default() };
    Arc::new(BindTable::new(
        &[own("10.0.0.1", 24), own("fd00::1", 64)],
        &tunables,
        1,
        SourceAddresses::Own,
    ))
}

fn at(text: &str) -> Endpoint {
    text.parse::<SocketAddr>().unwrap().into()
}
