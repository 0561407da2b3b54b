use super::{first_sentence, metric_name};

#[test]
fn names_have_their_group_as_node_exporters_have() {
    for (counter, name) in [
        ("TcpExtListenOverflows", "whimbrel_netstat_TcpExt_ListenOverflows"),
        ("TcpActiveOpens", "whimbrel_netstat_Tcp_ActiveOpens"),
        ("IpExtInCEPkts", "whimbrel_netstat_IpExt_InCEPkts"),
        ("WhimbrelMemoryFull", "whimbrel_netstat_Whimbrel_MemoryFull"),
    ] {
        assert_eq!(metric_name(counter), name);
    }
}

#[test]
fn help_is_one_sentence() {
    assert_eq!(first_sentence("Segments sent. More of it."), "Segments sent");
    assert_eq!(first_sentence("Segments sent."), "Segments sent");
}
