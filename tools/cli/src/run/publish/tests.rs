use super::{Published, PublishedProtocol};

#[test]
fn published_ports_are_read_in_each_form() {
    for (typed, outside, inside_port, protocol) in [
        ("8080:80", "127.0.0.1:8080", 80, PublishedProtocol::Tcp),
        ("0.0.0.0:8080:80", "0.0.0.0:8080", 80, PublishedProtocol::Tcp),
        ("[::1]:8080:80/tcp", "[::1]:8080", 80, PublishedProtocol::Tcp),
        ("5353:53/udp", "127.0.0.1:5353", 53, PublishedProtocol::Udp),
    ] {
        let published: Published = typed.parse().unwrap();
        assert_eq!(published.outside.to_string(), outside, "{typed}");
        assert_eq!((published.inside_port, published.protocol), (inside_port, protocol), "{typed}");
    }
    for typed in ["", "80", ":80", "80:", "0:80", "80:0", "host:80:80", "80:80/sctp", "70000:80"] {
        assert!(typed.parse::<Published>().is_err(), "{typed}");
    }
}
