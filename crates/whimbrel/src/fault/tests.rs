use std::time::Duration;

use whimbrel_base::packet::SoftError;
use whimbrel_wire::Address;

use super::*;

const PEER: Endpoint = Endpoint::new(Address::from_v4_bytes([192, 0, 2, 1]), 80);
const ATTEMPT: Attempt =
    Attempt { syns: 7, lasted: Duration::from_millis(123_004), challenges: 0, soft_error: None };

fn told(reason: CloseReason, attempt: &Attempt) -> (ErrorKind, String) {
    let error = not_opened(reason, Some(PEER), attempt);
    (error.kind(), error.to_string())
}

#[test]
fn failed_connect_reports_syn_count_and_duration() {
    let (kind, text) = told(CloseReason::TimedOut, &ATTEMPT);
    assert_eq!(kind, ErrorKind::TimedOut);
    assert!(text.contains("192.0.2.1:80 answered none of 7 SYNs in 123.004 s"), "{text}");
    let once = Attempt { syns: 1, lasted: Duration::from_millis(2), ..ATTEMPT };
    let (kind, text) = told(CloseReason::Refused, &once);
    assert_eq!(kind, ErrorKind::ConnectionRefused);
    assert!(text.starts_with("connection refused after 1 SYN in 0.002 s"), "{text}");
    let (kind, text) = told(CloseReason::Unreachable, &ATTEMPT);
    assert_eq!(kind, ErrorKind::HostUnreachable);
    assert!(text.contains("7 SYNs in 123.004 s"), "{text}");
}

#[test]
fn challenge_acks_are_reported_apart_from_silence() {
    let (kind, text) = told(CloseReason::TimedOut, &Attempt { challenges: 3, ..ATTEMPT });
    assert_eq!(kind, ErrorKind::TimedOut);
    assert!(text.contains("answered 3 of 7 SYNs") && text.contains("TIME-WAIT"), "{text}");
}

#[test]
fn what_routers_reported_all_along_is_the_error() {
    for (error, kind) in [
        (SoftError::NetworkUnreachable, ErrorKind::NetworkUnreachable),
        (SoftError::HostUnreachable, ErrorKind::HostUnreachable),
        (SoftError::TimeExceeded, ErrorKind::HostUnreachable),
        (SoftError::FragmentsLost, ErrorKind::HostUnreachable),
        (SoftError::SourceRouteFailed, ErrorKind::HostUnreachable),
        (SoftError::Prohibited, ErrorKind::HostUnreachable),
        (SoftError::Refused, ErrorKind::ConnectionRefused),
        (SoftError::NoTcp, ErrorKind::ConnectionRefused),
    ] {
        let attempt = Attempt { soft_error: Some(error), ..ATTEMPT };
        assert_eq!(told(CloseReason::TimedOut, &attempt).0, kind);
    }
}
