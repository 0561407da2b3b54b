use super::*;
use crate::http::head;

const PLAIN: Composition<'_> = Composition {
    method: "GET",
    target: "/a?b",
    host: "10.9.0.1",
    fields: &[],
    body: b"",
    persistent: true,
};

#[test]
fn composed_request_is_read_by_our_server() {
    let request = PLAIN.compose().unwrap();
    assert_eq!(request, "GET /a?b HTTP/1.1\r\nHost: 10.9.0.1\r\n\r\n");
    let mut room = head::field_room();
    assert!(head::parse(&request, &mut room).unwrap().persistent);
}

#[test]
fn body_has_length_and_last_request_says_close() {
    let fields = [("Accept".into(), "*/*".into()), ("host".into(), "other".into())];
    let composition =
        Composition { method: "POST", body: b"hello", fields: &fields, persistent: false, ..PLAIN };
    let expected = "POST /a?b HTTP/1.1\r\nAccept: */*\r\nhost: other\r\nContent-Length: 5\r\n\
                    Connection: close\r\n\r\nhello";
    assert_eq!(composition.compose().unwrap(), expected);
}

#[test]
fn parts_that_would_break_the_request_are_refused() {
    let method = Composition { method: "GE T", ..PLAIN }.compose();
    assert_eq!(method, Err(ComposeError::Method("GE T".into())));
    for target in ["", "a", "/a b", "/a\r\nx: y"] {
        let composed = Composition { target, ..PLAIN }.compose();
        assert_eq!(composed, Err(ComposeError::Target(target.into())));
    }
    let with = |name: &str, value: &str| {
        let fields = [(name.into(), value.into())];
        Composition { fields: &fields, ..PLAIN }.compose()
    };
    assert_eq!(with("a:b", "c"), Err(ComposeError::Name("a:b".into())));
    assert_eq!(with("a", "b\r\nc: d"), Err(ComposeError::Value("a".into())));
    assert_eq!(with("Connection", "close"), Err(ComposeError::Framing("Connection".into())));
}
