use super::*;

fn parsed(text: &str) -> (String, String, u16, String) {
    let url = Url::parse(text).unwrap();
    (url.authority, url.host, url.port, url.target)
}

#[test]
fn url_is_split_into_host_port_and_path() {
    let expect = |a: &str, h: &str, p, t: &str| (a.into(), h.into(), p, t.into());
    assert_eq!(parsed("http://10.9.0.1"), expect("10.9.0.1", "10.9.0.1", 80, "/"));
    assert_eq!(parsed("http://a:81/b?c=d#e"), expect("a:81", "a", 81, "/b?c=d"));
    assert_eq!(parsed("http://[fd09::1]:8080/x"), expect("[fd09::1]:8080", "fd09::1", 8080, "/x"));
    assert_eq!(parsed("http://[fd09::1]?q"), expect("[fd09::1]", "fd09::1", 80, "/?q"));
    assert_eq!(parsed("10.9.0.1:8080/"), expect("10.9.0.1:8080", "10.9.0.1", 8080, "/"));
}

#[test]
fn invalid_url_is_refused_with_an_example() {
    for wrong in
        ["https://a/", "ftp://a/", "http://", "http://a:port/", "http://[::1", "http://a:0/"]
    {
        let error = Url::parse(wrong).unwrap_err();
        assert!(error.contains("http://10.9.0.1:8080/"), "{error}");
    }
    let error = Url::parse("http://a:65536/").unwrap_err();
    assert!(error.contains("must be 1 to 65535"), "{error}");
    let error = Url::parse("http://me:secret@a/").unwrap_err();
    assert!(error.contains("-H 'Authorization"), "{error}");
}

#[test]
fn address_resolves_to_itself_within_allowed_family() {
    let url = Url::parse("http://10.9.0.1:81/").unwrap();
    let found = url.resolve(false, |_| true).unwrap();
    assert_eq!(found.iter().map(|found| found.at.to_string()).collect::<Vec<_>>(), ["10.9.0.1:81"]);
    let Err(Failure::Usage(text)) = url.resolve(false, |end| !end.addr.is_v4()) else {
        panic!("it has")
    };
    assert!(text.contains("no address of the wire's"), "{text}");
}

#[test]
fn zone_is_not_sent_to_server() {
    for (text, host) in [
        ("http://[fe80::1%eth0]/x", "fe80::1%eth0"),
        ("http://[fe80::1%25eth0]/x", "fe80::1%25eth0"),
    ] {
        let url = Url::parse(text).unwrap();
        assert_eq!((url.host.as_str(), url.field.as_str()), (host, "[fe80::1]"));
        assert_eq!(url.to_string(), text);
    }
    assert_eq!(Url::parse("http://[fe80::1%eth0]:81/").unwrap().field, "[fe80::1]:81");
}
