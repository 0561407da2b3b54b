use super::*;

#[test]
fn head_has_every_field_on_a_line_of_its_own() {
    let range = ByteRange { first: 2, last: 4 };
    let response =
        Response::partial(range, 9, "text/plain", Body::Bytes(Bytes::from_static(b"cde")));
    let mut head = Vec::new();
    response.write_head(ConnectionOption::Said, None, &mut head);
    assert_eq!(
        core::str::from_utf8(&head).unwrap(),
        "HTTP/1.1 206 Partial Content\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\
         Content-Range: bytes 2-4/9\r\nConnection: keep-alive\r\n\r\n"
    );
}
