use super::*;

#[test]
fn log_entry_has_request_line_and_fields() {
    let head =
        b"\r\nGET /a?b HTTP/1.1\r\nHost: x\r\nuser-agent: curl/8 \r\nReferer:http://a/\r\n\r\n";
    let exchange = LoggedExchange::of(head);
    assert_eq!(exchange.request, b"GET /a?b HTTP/1.1");
    assert_eq!(exchange.agent.as_deref(), Some(&b"curl/8"[..]));
    assert_eq!(exchange.referer.as_deref(), Some(&b"http://a/"[..]));
    assert_eq!((exchange.status, exchange.sent, exchange.peer), (0, 0, None));
}

#[test]
fn invalid_request_has_a_log_entry() {
    assert_eq!(LoggedExchange::of(b"\x16\x03\x01").request, b"\x16\x03\x01");
    assert_eq!(LoggedExchange::of(b""), LoggedExchange::default());
}

#[test]
fn long_lines_keep_beginning_and_end() {
    let long = "a".repeat(15_000);
    let head = format!("GET /{long} HTTP/1.1\r\nUser-Agent: {long}\r\nReferer: {long}\r\n\r\n");
    let LoggedExchange { request, referer, agent, .. } = LoggedExchange::of(head.as_bytes());
    assert!(request.starts_with(b"GET /aaa") && request.ends_with(b"a... HTTP/1.1"));
    for kept in [Some(request), referer, agent] {
        let kept = kept.expect("it was sent");
        assert_eq!((kept.len(), kept.capacity()), (1_024, 1_024));
    }
    let fits = format!("GET /{} HTTP/1.1", "a".repeat(1_024 - 14));
    assert_eq!(LoggedExchange::of(fits.as_bytes()).request, fits.as_bytes());
}
