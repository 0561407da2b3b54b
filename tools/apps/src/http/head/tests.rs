use super::*;

fn with_request<R>(head: &str, look: impl FnOnce(Result<Request<'_>, Fault>) -> R) -> R {
    let mut room = field_room();
    look(parse(head.as_bytes(), &mut room))
}

#[test]
fn request_is_taken_apart() {
    with_request(
        "POST /a/b?c=d HTTP/1.1\r\nHost: a:80\r\nExpect: 100-Continue\r\nContent-Length: 7\r\n\
         Connection: foo, Close\r\n\r\n",
        |request| {
            let request = request.unwrap();
            assert_eq!((request.method, request.version), (Method::Post, Version::Http11));
            assert_eq!((request.path(), request.target), ("/a/b", "/a/b?c=d"));
            assert_eq!(request.framing, Framing::Length(7));
            assert!(request.expects_continue && !request.persistent);
        },
    );
}

#[test]
fn every_form_of_target_leads_to_its_path() {
    for (line, target) in [
        ("GET http://a HTTP/1.1", "/"),
        ("GET HTTPS://a:1/x?y HTTP/1.1", "/x?y"),
        ("OPTIONS * HTTP/1.1", "*"),
        ("CONNECT a:443 HTTP/1.1", "a:443"),
    ] {
        let head = alloc::format!("{line}\r\nHost: a\r\n\r\n");
        with_request(&head, |request| assert_eq!(request.unwrap().target, target, "{line}"));
    }
    for line in
        ["GET * HTTP/1.1", "GET a HTTP/1.1", "GET ftp://a/ HTTP/1.1", "GET http://a?b HTTP/1.1"]
    {
        let head = alloc::format!("{line}\r\nHost: a\r\n\r\n");
        with_request(&head, |request| {
            assert!(matches!(request.unwrap_err(), Fault::Malformed(_)), "{line}");
        });
    }
}

#[test]
fn expectation_of_http_1_0_is_ignored() {
    with_request("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", |request| {
        assert!(!request.unwrap().expects_continue);
    });
}
