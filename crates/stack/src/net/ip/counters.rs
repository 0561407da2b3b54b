//! Counters of packets that never became segments.

use whimbrel_base::counters::DropCounts;

macro_rules! frame_drops {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// Why a frame was dropped before any connection saw it. The names are those of Linux
        /// where it has one.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum FrameDrop { $($(#[$doc])* $variant,)* }

        impl FrameDrop {
            /// Every reason, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name under which its counter is published.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

frame_drops! {
    /// Not an IP packet, or one that contradicts itself.
    Header = "IP_INHDR",
    /// The IPv4 header's checksum is wrong.
    Checksum = "IP_CSUM",
    /// For an address that is not this host's.
    OtherHost = "OTHERHOST",
    /// A segment for an address of another, while this host speaks for as many as it has numbers for.
    AddressLimit = "ADDRESS_LIMIT",
    /// From an address that no host can have: unspecified, multicast, broadcast (a network's of
    /// ours, too), or our own.
    Martian = "IP_MARTIAN_SOURCE",
    /// A fragment within a packet that was made whole from fragments.
    Fragment = "IP_FRAGMENT",
    /// A fragment without bytes, or one that ends beyond the largest packet.
    FragmentLength = "FRAG_LENGTH",
    /// A fragment that is here already.
    FragmentDuplicate = "DUP_FRAG",
    /// A fragment that overlaps or contradicts others; its datagram went with it (RFC 5722).
    FragmentOverlap = "FRAG_OVERLAP",
    /// One fragment more than a datagram may have; its datagram went with it.
    FragmentCount = "FRAG_TOO_MANY",
    /// The last fragment of a datagram of which some were marked by routers and others not
    /// capable of marks (RFC 3168 5.3).
    FragmentEcn = "FRAG_ECN",
    /// The first fragment of an IPv6 packet, without all headers (RFC 7112).
    FragmentHeaders = "FRAG_HEADERS",
    /// A transport protocol that this host does not speak; answered by an ICMP error.
    Protocol = "IP_NOPROTO",
    /// A UDP datagram for a port that no socket has, or only one that is connected to another peer;
    /// answered by an ICMP error.
    UdpPort = "UDP_NO_SOCKET",
    /// A UDP header that is too short, or whose length exceeds its packet.
    UdpHeader = "UDP_INHDR",
    /// The UDP checksum is wrong, or missing in IPv6.
    UdpChecksum = "UDP_CSUM",
    /// A UDP datagram whose socket has as many bytes to be received as it may (`SO_RCVBUF`).
    UdpBuffer = "SOCKET_RCVBUFF",
    /// A UDP datagram while 90 % of `mem.budget` were held.
    UdpMemory = "UDP_MEM",
    /// A UDP datagram for a multicast group or for all hosts, which this host cannot join.
    UdpGroup = "UDP_IGNORED_MULTI",
    /// A TCP header that is too short or contradicts itself.
    TcpHeader = "TCP_INHDR",
    /// The TCP checksum is wrong.
    TcpChecksum = "TCP_CSUM",
    /// A TCP segment from or for port 0.
    TcpPort = "TCP_PORT_ZERO",
    /// An ICMP message that is too short or has a wrong checksum.
    IcmpHeader = "ICMP_INHDR",
    /// An ICMP message that asks nothing of this host.
    IcmpType = "ICMP_UNHANDLED",
    /// An ICMP error whose quotation is too short, or not of a packet of ours.
    IcmpQuote = "ICMP_QUOTE",
    /// An ICMP error about a flow that has no connection.
    IcmpNoSocket = "ICMP_NO_SOCKET",
    /// A report of a path MTU that is impossible, or would have carried what it quotes.
    PathMtu = "ICMP_MTU",
    /// A redirect; routes are the configuration's.
    Redirect = "ICMP_REDIRECT",
    /// A source quench (RFC 6633).
    SourceQuench = "ICMP_SOURCE_QUENCH",
    /// An echo request while too many answers wait to be sent.
    ReplyLimit = "REPLY_QUEUE_FULL",
    /// An Ethernet frame of a type that this host does not speak.
    EtherType = "UNHANDLED_PROTO",
    /// An Ethernet frame for another station.
    OtherStation = "PACKET_OTHERHOST",
    /// An Ethernet frame from a group of stations, from none, or from ourselves.
    LinkSource = "ETH_INVALID_SOURCE",
    /// A packet sent to a group of stations that is not Neighbour Discovery (RFC 1122 3.3.6:
    /// "A host SHOULD silently discard a datagram that is received via a link-layer broadcast
    /// [...] but does not specify an IP multicast or broadcast destination address").
    LinkGroup = "UNICAST_IN_L2_MULTICAST",
    /// A frame that came while this host still asks whether its addresses are free.
    Tentative = "ADDRESS_TENTATIVE",
    /// An ARP packet that contradicts itself.
    Arp = "ARP_INVALID",
    /// A Neighbour Discovery message that contradicts itself, or that came from beyond the link.
    Discovery = "NDISC_INVALID",
}

/// The counters of the internet layer.
#[derive(Clone, Debug, Default)]
pub struct IpCounters {
    /// Frames received, those with errors included.
    pub in_receives: u64,
    /// Frames that were handed to a protocol.
    pub in_delivers: u64,
    /// Packets that nothing here takes, and that were kept for the application that asked for them; they count as
    /// handed to a protocol.
    pub unclaimed: u64,
    /// Those that could not be: too many waited, or the device had joined several of them. They count as
    /// dropped, too.
    pub unclaimed_dropped: u64,
    /// Segments that routers marked instead of dropping them (`IpExtInCEPkts`, which counts other packets, too).
    pub in_ce: u64,
    /// Packets sent; a super-packet that the device cuts, and one that left in fragments, counts
    /// once.
    pub out_requests: u64,
    /// Packets that did not leave because no route leads to their destination any more (`IpOutNoRoutes`).
    pub out_no_routes: u64,
    /// Packets that this host sent to itself.
    pub looped: u64,
    /// Those of them that were dropped because too many waited: 1,024, or 4 MiB of them.
    pub looped_dropped: u64,
    /// Packets that left in fragments, because the path carries less (`IpFragOKs`).
    pub fragmented: u64,
    /// The fragments that they left in (`IpFragCreates`).
    pub fragments_created: u64,
    /// Echo requests that were answered.
    pub echo_replies: u64,
    /// Echo requests that were sent.
    pub echo_requests: u64,
    /// ICMP errors that were sent.
    pub icmp_errors_sent: u64,
    /// ICMP errors not sent because too many were (RFC 4443 2.4 (f)).
    pub icmp_errors_limited: u64,
    /// Fragments that were received (`IpReasmReqds`).
    pub reassembly_fragments: u64,
    /// Packets made whole from fragments (`IpReasmOKs`).
    pub reassembled: u64,
    /// Datagrams given up: out of time, out of room, or refused (`IpReasmFails`).
    pub reassembly_failures: u64,
    /// Those of them that gave way to others of their source, which had too much here.
    pub reassembly_crowded: u64,
    /// Those of them that gave way because all sources together had too much, and theirs the most.
    pub reassembly_evicted: u64,
    /// Those of them that were out of time (`IpReasmTimeout`).
    pub reassembly_timeouts: u64,
    /// Records in TIME-WAIT that went early, oldest first, because this host speaks for as many addresses of
    /// others as it has numbers for, and one more was asked for.
    pub addresses_recycled: u64,
    dropped: DropCounts<{ FrameDrop::ALL.len() }>,
}

impl IpCounters {
    /// Counts frames that arrived and became segments.
    #[inline]
    pub(crate) fn count_delivered(&mut self, frames: u64) {
        self.in_receives += frames;
        self.in_delivers += frames;
    }

    /// Counts a frame dropped for `reason`.
    pub fn drop_frame(&mut self, reason: FrameDrop) {
        self.dropped.add(reason as usize, 1);
    }

    /// Returns the number of frames dropped for `reason`.
    pub fn dropped(&self, reason: FrameDrop) -> u64 {
        self.dropped.count(reason as usize)
    }

    /// Every reason with its count.
    pub fn drops(&self) -> impl Iterator<Item = (FrameDrop, u64)> {
        FrameDrop::ALL.iter().map(|reason| (*reason, self.dropped(*reason)))
    }
}
