use super::{first_sentence, metric_name, text_format};

#[test]
fn text_format_names_counters_with_total() {
    let open_metrics = "# HELP a_b Some text\n# TYPE a_b counter\na_b_total{x=\"y\"} 3\n\
                        # HELP c Now\n# TYPE c gauge\nc 1\n# EOF\n";
    let expected = "# HELP a_b_total Some text\n# TYPE a_b_total counter\na_b_total{x=\"y\"} 3\n\
                    # HELP c Now\n# TYPE c gauge\nc 1\n";
    assert_eq!(text_format(open_metrics), expected);
}

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
