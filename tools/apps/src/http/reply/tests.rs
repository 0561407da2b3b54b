use proptest::prelude::*;

use super::*;

/// Every response in `stream`, read `piece` bytes at a time, and the result of its end.
fn read(stream: &[u8], piece: usize, expected: Expected) -> (Vec<Reply>, Result<Reply, ConnError>) {
    let mut reader = ReplyReader::new(expected);
    let mut replies = Vec::new();
    for bytes in stream.chunks(piece.max(1)) {
        let mut input = Bytes::copy_from_slice(bytes);
        while !input.is_empty() {
            match reader.read(&mut input) {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => {}
                Err(conn_error) => return (replies, Err(conn_error)),
            }
        }
    }
    (replies, reader.on_end())
}

fn one(text: &str) -> Result<Reply, ConnError> {
    let (replies, end) = read(text.as_bytes(), text.len(), Expected::Body);
    replies.first().copied().map_or(end, Ok)
}

#[test]
fn bodies_are_framed_by_length_by_chunks_or_by_the_end() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(one(length), Ok(Reply { status: 200, body: 5, persistent: true }));
    let chunks =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(one(chunks), Ok(Reply { status: 200, body: 5, persistent: true }));
    let end = "HTTP/1.1 200 OK\r\n\r\nhello";
    assert_eq!(one(end), Ok(Reply { status: 200, body: 5, persistent: false }));
}

#[test]
fn some_responses_have_no_body_with_any_head() {
    for status in [204, 304] {
        let text = format!("HTTP/1.1 {status} x\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(one(&text), Ok(Reply { status, body: 0, persistent: true }));
    }
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let (replies, _) = read(head, 100, Expected::Empty);
    assert_eq!(replies, [Reply { status: 200, body: 0, persistent: true }]);
}

#[test]
fn other_protocols_greeting_is_refused_early() {
    for text in ["SSH-2.0-OpenSSH_9.9\r\n", "220 mail ESMTP\r\n", "http/1.1 2", "HTTQ"] {
        let mut reader = ReplyReader::new(Expected::Body);
        assert_eq!(reader.read(&mut Bytes::from(text)), Err(ConnError::BadAnswer), "{text}");
    }
    for text in ["", "H", "HTTP", "HTTP/", "\r\nHTTP/1.1 200 OK\r\n"] {
        let mut reader = ReplyReader::new(Expected::Body);
        assert_eq!(reader.read(&mut Bytes::from(text)), Ok(None), "{text}");
    }
}

#[test]
fn interim_response_is_passed_over() {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 no\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(one(text), Ok(Reply { status: 404, body: 0, persistent: true }));
}

#[test]
fn head_decides_if_connection_persists() {
    let with = |version: &str, field: &str| {
        let text = format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{field}\r\n");
        one(&text).unwrap().persistent
    };
    assert!(with("1.1", ""));
    assert!(!with("1.1", "Connection: x, Close\r\n"));
    assert!(!with("1.0", ""));
    assert!(with("1.0", "Connection: keep-alive\r\n"));
}

#[test]
fn malformed_response_differs_from_truncated_one() {
    assert_eq!(one("SSH-2.0-x\r\n\r\n"), Err(ConnError::BadAnswer));
    assert_eq!(one("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), Err(ConnError::BadAnswer));
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
    assert_eq!(one(twice), Err(ConnError::BadAnswer));
    assert_eq!(one("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), Err(ConnError::EndedEarly));
    assert_eq!(one("HTTP/1.1 200"), Err(ConnError::EndedEarly));
}

#[test]
fn tunnel_begins_behind_its_head() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (replies, _) = read(head, 100, Expected::Tunnel);
    assert_eq!(replies, [Reply { status: 200, body: 0, persistent: false }]);
    let refusal = b"HTTP/1.1 403 no\r\nContent-Length: 2\r\n\r\nno";
    let (replies, _) = read(refusal, 100, Expected::Tunnel);
    assert_eq!(replies, [Reply { status: 403, body: 2, persistent: true }]);
}

#[test]
fn conflicting_lengths_are_malformed() {
    let with =
        |value: &str| one(&format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\nhello"));
    for value in ["5", "5, 5", "05,5"] {
        assert_eq!(with(value), Ok(Reply { status: 200, body: 5, persistent: true }), "{value}");
    }
    for value in ["", ",", "+5", "-5", "5 5", "5, 6", "0x5", "99999999999999999999"] {
        assert_eq!(with(value), Err(ConnError::BadAnswer), "{value}");
    }
}

#[test]
fn trailers_and_extensions_have_no_bound_of_their_own() {
    let chunk = format!("1;{}\r\nx\r\n", "a".repeat(3_000));
    let trailers = format!("T: {}\r\n", "t".repeat(1_000)).repeat(20);
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let text = format!("{head}{}0\r\n{trailers}\r\n", chunk.repeat(20));
    assert_eq!(one(&text), Ok(Reply { status: 200, body: 20, persistent: true }));
}

proptest! {
    #[test]
    fn responses_are_read_the_same_however_they_are_split(piece in 1usize..80, count in 1usize..4) {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
                    HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            .repeat(count);
        let (replies, end) = read(text.as_bytes(), piece, Expected::Body);
        let bodies: Vec<u64> = replies.iter().map(|reply| reply.body).collect();
        prop_assert_eq!(bodies, [5, 3].repeat(count));
        prop_assert_eq!(end, Err(ConnError::EndedEarly));
    }

    #[test]
    fn anything_is_read_without_a_panic(
        stream in proptest::collection::vec(any::<u8>(), 0..200),
        piece in 1usize..50,
    ) {
        let (replies, _) = read(&stream, piece, Expected::Body);
        prop_assert!(replies.is_empty() || stream.starts_with(b"HTTP/"));
    }
}
