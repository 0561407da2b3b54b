//! Counters of UDP: public API, under the names of Linux's MIB.
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

    /// Datagrams received and queued for a socket. (Linux counts them as they are read.)
    in_datagrams = "UdpInDatagrams",
    /// Datagrams received for a port without a socket, or with a socket that is connected to
    /// another peer.
    no_ports = "UdpNoPorts",
    /// Datagrams received that were dropped for another reason: a wrong header or checksum, no
    /// memory.
    in_errors = "UdpInErrors",
    /// Datagrams sent; one that left in fragments counts once.
    out_datagrams = "UdpOutDatagrams",
    /// Those of `UdpInErrors` whose socket had a full receive buffer (`SO_RCVBUF`).
    rcvbuf_errors = "UdpRcvbufErrors",
    /// Datagrams that were not queued for sending because the socket's send buffer was full
    /// (`SO_SNDBUF`): the application waits, or gets an error.
    sndbuf_errors = "UdpSndbufErrors",
    /// Those of `UdpInErrors` whose checksum was wrong, or missing in IPv6.
    in_csum_errors = "UdpInCsumErrors",
    /// Datagrams received for a multicast group or for all hosts, which this stack cannot join.
    ignored_multi = "UdpIgnoredMulti",
    /// Those of `UdpInErrors` that arrived while 90 % of `mem.budget` were in use, and datagrams
    /// that were not queued for sending for the same reason.
    mem_errors = "UdpMemErrors",
    /// ICMP errors about datagrams that were reported to the socket that had sent them (RFC 1122
    /// 4.1.3.3).
    icmp_errors = "WhimbrelUdpIcmpErrors",
    /// Datagrams that were queued and not sent, because their source address is no longer an
    /// address of this host.
    out_discards = "WhimbrelUdpOutDiscards",
}
