use whimbrel_wire::Endpoint;

use super::*;

/// A peer.
fn peer() -> Endpoint {
    Endpoint::from(SocketAddr::from(([192, 0, 2, 1], 80)))
}

const FAILED: FailedAttempt =
    FailedAttempt { peer: None, syns: 1, lasted: Duration::ZERO, challenges: 0, soft_error: None };

/// One of each.
fn all() -> Vec<(ErrorKind, i32)> {
    let exhausted = ConnectStartError::PortsExhausted {
        remote: peer(),
        first: 1,
        last: 2,
        in_use: 2,
        waiting: 0,
        next: None,
    };
    let started = [
        ConnectStartError::NoRoute(peer()),
        ConnectStartError::NoSource(peer()),
        ConnectStartError::NotAPeer(peer()),
        ConnectStartError::NotLocal(peer()),
        ConnectStartError::InUse { local: peer(), remote: peer() },
        exhausted,
    ];
    let network = FailedAttempt { soft_error: Some(SoftError::NetworkUnreachable), ..FAILED };
    let attempts = [
        ConnectError::Refused(FAILED),
        ConnectError::TimedOut(FAILED),
        ConnectError::Unreachable(FAILED),
        ConnectError::Unreachable(network),
        ConnectError::Aborted(FAILED),
    ];
    let connects = started.map(ConnectError::NotStarted).into_iter().chain(attempts);
    let binds = [
        BindError::InUse(peer().into()),
        BindError::NotLocal(peer().addr.to_ip()),
        BindError::PortsExhausted { first: 1, last: 2 },
        BindError::AnyInUse,
    ];
    let binds = binds.into_iter().map(|error| (error.kind(), error.raw_os_error()));
    connects.map(|error| (error.kind(), error.raw_os_error())).chain(binds).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn kernel_number_has_the_kind_that_std_gives_it() {
    for (kind, number) in all() {
        assert_eq!(io::Error::from_raw_os_error(number).kind(), kind, "{number}");
    }
}

#[test]
fn errors_are_found_in_their_io_error() {
    let limit = ConnectError::NotStarted(ConnectStartError::TooMany { limit: 3 });
    assert_eq!((limit.kind(), limit.raw_os_error()), (ErrorKind::QuotaExceeded, ENOBUFS));
    let error = io::Error::from(limit.clone());
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::QuotaExceeded, None));
    assert_eq!(
        error.to_string(),
        "too many connections: the limit is 3; raise max_connections or close some"
    );
    assert_eq!(error.downcast::<ConnectError>().unwrap(), limit);
    let error = io::Error::from(BindError::AnyInUse);
    let found = error.get_ref().and_then(|error| error.downcast_ref::<BindError>());
    assert_eq!(found, Some(&BindError::AnyInUse));
}
