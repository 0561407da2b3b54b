//! Messages are written to the byte, and read.

use core::time::Duration;

use super::*;
use crate::bulk::Direction;

/// As iperf 3.12 sends them, copied from a capture.
const PARAMETERS: &[u8] = br#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"len":131072,"bandwidth":1000000,"pacing_timer":1000,"get_server_output":1,"client_version":"3.12"}"#;
const RESULTS: &[u8] = br#"{"cpu_util_total":0.035758127233010147,"cpu_util_user":0,"cpu_util_system":0.0348591799003367,"sender_has_retransmits":18446744073709551615,"congestion_used":"bbr","server_output_text":"Accepted\n","streams":[{"id":1,"bytes":131072,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.000963},{"id":3,"bytes":131072,"retransmits":7,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.000984}]}"#;

#[test]
fn client_parameters_are_parsed() {
    let read = Parameters::parse(PARAMETERS).unwrap();
    let expected = Parameters {
        protocol: Protocol::Tcp,
        omit: Duration::ZERO,
        time: Duration::from_secs(1),
        bytes: None,
        streams: 2,
        direction: Direction::Send,
        window: None,
        block: 131_072,
        rate: Some(1_000_000),
        pacing_rate: None,
        mss: None,
        no_delay: false,
        congestion: None,
        server_output: true,
        beyond: false,
    };
    assert_eq!(read, expected);
    let all = br#"{"tcp":true,"time":0,"num":1e10,"reverse":true,"window":65536,"MSS":1000,"nodelay":true,"congestion":"reno","TOS":16}"#;
    let read = Parameters::parse(all).unwrap();
    assert_eq!((read.bytes, read.direction), (Some(10_000_000_000), Direction::Receive));
    assert_eq!((read.window, read.mss, read.no_delay), (Some(65_536), Some(1_000), true));
    assert_eq!((read.congestion.as_deref(), read.beyond), (Some("reno"), true));
    assert_eq!(Parameters::parse(br#"{"bidirectional":true}"#).unwrap().direction, Direction::Both);
}

#[test]
fn parameters_round_trip() {
    let asked = Parameters {
        protocol: Protocol::Tcp,
        omit: Duration::from_secs(1),
        time: Duration::from_millis(2_500),
        bytes: Some(10 << 30),
        streams: 3,
        direction: Direction::Both,
        window: Some(1 << 20),
        block: 4_096,
        rate: Some(45_000_000),
        pacing_rate: Some(8_000_000),
        mss: Some(1_400),
        no_delay: true,
        congestion: Some("reno".into()),
        server_output: true,
        beyond: false,
    };
    let read = Parameters::parse(asked.document().as_bytes()).unwrap();
    // Seconds are whole, so a server rounds up.
    assert_eq!(read, Parameters { time: Duration::from_secs(3), ..asked });
}

#[test]
fn unknown_result_fields_are_ignored() {
    let read = Results::parse(RESULTS).unwrap();
    assert!(!read.has_retransmits);
    assert_eq!(read.congestion.as_ref().map(|it| it.verbatim().as_str()), Some("bbr"));
    assert_eq!(read.server_output.as_ref().map(|it| it.verbatim().as_str()), Some("Accepted\n"));
    let [first, second] = read.streams[..] else { panic!("two streams: {:?}", read.streams) };
    assert_eq!((first.id, first.bytes, first.retransmits), (1, 131_072, None));
    assert_eq!((second.id, second.retransmits, second.seconds), (3, Some(7), 1.000_984));
    let again = Results::parse(read.document().as_bytes()).unwrap();
    assert_eq!(again, read);
}

#[test]
fn results_that_lack_something_are_none() {
    for text in ["", "{}", "null", r#"{"cpu_util_total":0,"streams":[]}"#] {
        assert_eq!(Results::parse(text.as_bytes()), Err(Fault::Malformed), "{text}");
    }
    let without_id = RESULTS.iter().copied().filter(|byte| *byte != b'd').collect::<Vec<_>>();
    assert_eq!(Results::parse(&without_id), Err(Fault::Malformed));
}

#[test]
fn states_and_refusals_are_sent_as_iperf3_sends_them() {
    assert_eq!(State::AccessDenied.byte(), 0xff);
    assert_eq!(State::ServerError.byte(), 0xfe);
    for state in State::ALL {
        assert_eq!(State::from_byte(state.byte()), Some(state));
    }
    assert_eq!(State::from_byte(3), None);
    assert_eq!(Refusal::Protocol.message(), [0xfe, 0, 0, 0, 131, 0, 0, 0, 0]);
    assert_eq!([0, 1, 2, 3].map(stream_id), [1, 3, 4, 5]);
}

#[test]
fn cookie_is_36_letters_of_base_32_and_a_nul() {
    assert!(is_cookie(b"3sosnck4yjbyy46pv5fmgudx4tovvcvxpkus\0"));
    assert!(!is_cookie(b"3sosnck4yjbyy46pv5fmgudx4tovvcvxpkus"));
    assert!(!is_cookie(b"3sosnck4yjbyy46pv5fmgudx4tovvcvxpku\0\0"));
    assert!(!is_cookie(b"3sosnck4yjbyy46pv5fmgudx4tovvcvxpku1\0"));
    assert!(!is_cookie(b""));
}
