//! Words of netstat on several systems, for counters that mean the same there.

/// Counters with the sentences of net-tools' `netstat -s`.
pub(super) const LINUX: &[(&str, &str)] = &[
    ("IpInReceives", "total packets received"),
    ("IpInDelivers", "incoming packets delivered"),
    ("IpOutRequests", "requests sent out"),
    ("IpOutNoRoutes", "dropped because of missing route"),
    ("IpReasmReqds", "reassemblies required"),
    ("IpReasmOKs", "packets reassembled ok"),
    ("IpReasmFails", "packet reassemblies failed"),
    ("IpReasmTimeout", "fragments dropped after timeout"),
    ("IpFragCreates", "fragments created"),
    ("TcpActiveOpens", "active connection openings"),
    ("TcpPassiveOpens", "passive connection openings"),
    ("TcpAttemptFails", "failed connection attempts"),
    ("TcpEstabResets", "connection resets received"),
    ("TcpCurrEstab", "connections established"),
    ("TcpInSegs", "segments received"),
    ("TcpOutSegs", "segments sent out"),
    ("TcpRetransSegs", "segments retransmitted"),
    ("TcpInErrs", "bad segments received"),
    ("TcpOutRsts", "resets sent"),
    ("UdpInDatagrams", "packets received"),
    ("UdpNoPorts", "packets to unknown port received"),
    ("UdpInErrors", "packet receive errors"),
    ("UdpOutDatagrams", "packets sent"),
    ("UdpRcvbufErrors", "receive buffer errors"),
    ("UdpSndbufErrors", "send buffer errors"),
    ("TcpExtSyncookiesSent", "SYN cookies sent"),
    ("TcpExtSyncookiesRecv", "SYN cookies received"),
    ("TcpExtSyncookiesFailed", "invalid SYN cookies received"),
    ("TcpExtTW", "TCP sockets finished time wait in fast timer"),
    ("TcpExtTWRecycled", "time wait sockets recycled by time stamp"),
    ("TcpExtDelayedACKs", "delayed acks sent"),
    ("TcpExtListenOverflows", "times the listen queue of a socket overflowed"),
    ("TcpExtListenDrops", "SYNs to LISTEN sockets dropped"),
    ("TcpExtTCPAbortOnData", "connections reset due to unexpected data"),
    ("TcpExtTCPAbortOnClose", "connections reset due to early user close"),
    ("TcpExtTCPAbortOnTimeout", "connections aborted due to timeout"),
    ("TcpExtTCPFastRetrans", "fast retransmits"),
    ("TcpExtTCPSlowStartRetrans", "retransmits in slow start"),
    ("TcpExtTCPTimeouts", "other TCP timeouts"),
];

/// By protocol, counters with the words of FreeBSD's `netstat -s`.
pub(super) const FREEBSD: &[(&str, &[(&str, &str)])] = &[
    (
        "tcp",
        &[
            ("TcpOutSegs", "packets sent"),
            ("TcpInSegs", "packets received"),
            ("TcpActiveOpens", "connection requests"),
            ("TcpPassiveOpens", "connection accepts"),
            ("TcpExtListenOverflows", "listen queue overflows"),
            ("TcpExtTCPTimeouts", "retransmit timeouts"),
            ("TcpExtSyncookiesSent", "cookies sent"),
            ("TcpExtSyncookiesRecv", "cookies received"),
        ],
    ),
    (
        "udp",
        &[
            ("UdpInDatagrams", "delivered"),
            ("UdpOutDatagrams", "datagrams output"),
            ("UdpNoPorts", "dropped due to no socket"),
            ("UdpRcvbufErrors", "dropped due to full socket buffers"),
            ("UdpInCsumErrors", "with bad checksum"),
        ],
    ),
    (
        "ip",
        &[
            ("IpInReceives", "total packets received"),
            ("IpOutRequests", "packets sent from this host"),
            ("IpReasmOKs", "packets reassembled ok"),
            ("IpReasmTimeout", "fragments dropped after timeout"),
            ("IpFragCreates", "fragments created"),
            ("IpOutNoRoutes", "output packets discarded due to no route"),
        ],
    ),
];

/// By protocol, counters with the names of Solaris' `netstat -s`.
pub(super) const SOLARIS: &[(&str, &[(&str, &str)])] = &[
    (
        "TCP",
        &[
            ("TcpActiveOpens", "tcpActiveOpens"),
            ("TcpPassiveOpens", "tcpPassiveOpens"),
            ("TcpAttemptFails", "tcpAttemptFails"),
            ("TcpEstabResets", "tcpEstabResets"),
            ("TcpCurrEstab", "tcpCurrEstab"),
            ("TcpOutSegs", "tcpOutSegs"),
            ("TcpInSegs", "tcpInSegs"),
            ("TcpRetransSegs", "tcpRetransSegs"),
            ("TcpOutRsts", "tcpOutRsts"),
            ("TcpExtTCPTimeouts", "tcpTimRetrans"),
            ("TcpExtListenOverflows", "tcpListenDrop"),
        ],
    ),
    (
        "UDP",
        &[
            ("UdpInDatagrams", "udpInDatagrams"),
            ("UdpInErrors", "udpInErrors"),
            ("UdpOutDatagrams", "udpOutDatagrams"),
        ],
    ),
];
