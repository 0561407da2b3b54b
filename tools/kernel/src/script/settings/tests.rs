use super::*;

#[test]
fn linux_names_and_aliases_are_settings_and_paths_are_not() {
    assert_eq!(key("net.ipv4.tcp_sack"), Some("tcp_sack"));
    assert_eq!(key("tcp_sack"), Some("tcp_sack"));
    assert_eq!(key("net.inet.tcp.sack.enable"), Some("tcp_sack"));
    for name in ["net.core.rmem_max", "net.ipv4.conf/../../kernel", "tcp_/../x", "kern.x", ""] {
        assert_eq!(key(name), None, "{name}");
    }
}
