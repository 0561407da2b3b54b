//! What happened, counted: public API, under the names of Linux' MIB.
//!
//! ```
//! for (name, help, value) in whimbrel_udp::Counters::default().iter() {
//!     println!("{name} {value} # {help}");
//! }
//! ```

use whimbrel_base::counters;

counters! {
    /// The counters of one shard. A datagram that arrives is counted in one of `UdpInDatagrams`,
    /// `UdpNoPorts`, `UdpInErrors` and `UdpIgnoredMulti`.
    pub struct Counters;

    /// Datagrams received that a socket took. (Linux counts them as they are read.)
    in_datagrams = "UdpInDatagrams",
    /// Datagrams received for a port that no socket has, or only one that is connected to somebody
    /// else.
    no_ports = "UdpNoPorts",
    /// Datagrams received that were dropped for another reason: a wrong header or checksum, no room.
    in_errors = "UdpInErrors",
    /// Datagrams sent; one that left in fragments counts once.
    out_datagrams = "UdpOutDatagrams",
    /// Those of `UdpInErrors` whose socket had as many bytes to be received as it may (`SO_RCVBUF`).
    rcvbuf_errors = "UdpRcvbufErrors",
    /// Datagrams that were not taken to be sent, because the socket had as many bytes to be sent as it
    /// may (`SO_SNDBUF`): its application waits, or is told so.
    sndbuf_errors = "UdpSndbufErrors",
    /// Those of `UdpInErrors` whose checksum was wrong, or missing in IPv6.
    in_csum_errors = "UdpInCsumErrors",
    /// Datagrams received for a multicast group or for all hosts, which nobody here can join.
    ignored_multi = "UdpIgnoredMulti",
    /// Those of `UdpInErrors` that came while 90 % of `mem.budget` were held, and datagrams that were not
    /// taken to be sent for the same reason.
    mem_errors = "UdpMemErrors",
    /// ICMP errors about datagrams that were reported to the socket that had sent them (RFC 1122
    /// 4.1.3.3).
    icmp_errors = "WhimbrelUdpIcmpErrors",
    /// Datagrams that were to be sent and did not leave, because their own address is none of this
    /// host's any more.
    out_discards = "WhimbrelUdpOutDiscards",
}
