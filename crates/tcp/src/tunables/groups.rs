//! Names under which several tunables are set at once.

use whimbrel_base::tunables::{Name, Reading, Sharing, TunableGroup};

/// Every group of tunables, in the order of the reference.
pub static TUNABLE_GROUPS: &[TunableGroup] = &[
    TunableGroup {
        names: &[
            name("msl", Reading::Same),
            name("net.inet.tcp.msl", Reading::Millis),
            name("tcp_time_wait_interval", Reading::TwiceMillis),
            name("TCP_MSL", Reading::Millis),
        ],
        fields: &["msl_remote", "msl_link", "msl_loopback"],
        sharing: Sharing::Same,
        help: "The maximum segment lifetime, for paths of every class.",
    },
    TunableGroup {
        names: &[
            name("tw.reuse_delay", Reading::Same),
            name("net.ipv4.tcp_tw_reuse_delay", Reading::Millis),
        ],
        fields: &["tw_reuse_delay_remote", "tw_reuse_delay_link", "tw_reuse_delay_loopback"],
        sharing: Sharing::Same,
        help: "The least time from the last segment of a connection until `connect` may end its \
               TIME-WAIT to take its port, for paths of every class.",
    },
    TunableGroup {
        names: &[name("net.ipv4.ip_local_port_range", Reading::Same)],
        fields: &["port_first", "port_last"],
        sharing: Sharing::Each,
        help: "The first and the last ephemeral port.",
    },
    TunableGroup {
        names: &[name("net.ipv4.tcp_rmem", Reading::Same)],
        fields: &["recv_buffer", "recv_buffer_max"],
        sharing: Sharing::Ascending,
        help: "The receive buffer: at first, and the most that it grows to by itself.",
    },
    TunableGroup {
        names: &[name("net.ipv4.tcp_wmem", Reading::Same)],
        fields: &["send_buffer", "send_buffer_max"],
        sharing: Sharing::Ascending,
        help: "The send buffer: at first, and the most that it grows to by itself.",
    },
    TunableGroup {
        names: &[name("net.ipv4.tcp_fastopen", Reading::Same)],
        fields: &["fast_open_client", "fast_open_server"],
        sharing: Sharing::Bits(&[1, 2]),
        help: "Fast Open, where applications ask for it: 1 to servers, 2 from clients. Linux' other \
               bits, which do without cookies or without being asked, are not there.",
    },
    TunableGroup {
        names: &[name("net.inet.tcp.cc.algorithm", Reading::Same)],
        fields: &["congestion_control"],
        sharing: Sharing::Words(&[("newreno", &["reno"])]),
        help: "The congestion control, by FreeBSD's names: newreno is reno.",
    },
    TunableGroup {
        names: &[name("net.inet.tcp.rfc1323", Reading::Same)],
        fields: &["window_scaling", "timestamps"],
        sharing: Sharing::Words(&[("2", &["on", "off"]), ("3", &["off", "on"])]),
        help: "Window scaling and timestamps: both or neither, 2 for window scaling alone, 3 for \
               timestamps alone.",
    },
];

const fn name(text: &'static str, reading: Reading) -> Name {
    Name { text, reading }
}
