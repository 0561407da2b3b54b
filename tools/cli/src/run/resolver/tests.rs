use super::Resolver;
use crate::run::network::InsideNetwork;

#[test]
fn name_servers_are_replaced_and_other_lines_stay() {
    let text = "# of the machine\nnameserver 192.0.2.53\nnameserver fe80::1%eth0\nsearch a.example\n\
                nameserver 2001:db8::53\noptions ndots:2\nnameserver 192.0.2.54\nnameserver 192.0.2.55\n";
    let resolver = Resolver::parse(text);
    let servers: Vec<_> = resolver.servers.iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["192.0.2.53:53", "[2001:db8::53]:53", "192.0.2.54:53"]);
    let network = InsideNetwork::choose(&[]).unwrap();
    let own = format!("nameserver {}\nsearch a.example\noptions ndots:2\n", network.name_server());
    assert_eq!(resolver.text(network), own);
}

#[test]
fn file_without_name_server_means_this_machine() {
    for text in ["", "nameserver\n", "nameserver here\n"] {
        assert_eq!(Resolver::parse(text).servers[0].to_string(), "127.0.0.1:53", "{text:?}");
    }
}

#[test]
fn name_servers_on_loopback_are_none_of_a_wire() {
    let servers = |text: &str| Resolver::parse(text).beyond_loopback().servers.len();
    assert_eq!(servers("nameserver 127.0.0.53\nnameserver 192.0.2.53\n"), 1);
    assert_eq!(servers("nameserver ::1\n"), 0);
    assert_eq!(servers(""), 0);
}
