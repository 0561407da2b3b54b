//! Hop limit, segment sizes, and the effect of ICMP errors and of neighbours' claims.

macro_rules! path {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// The time to live, or hop limit, of packets with segments; what an application sets for a
        /// connection comes before it.
        hop_limit: u8 = 64, "net.ipv4.ip_default_ttl", Unit::Count("hops") => {
            also: "net.inet.ip.ttl", "net.inet6.ip6.hlim", "net.ipv6.conf.all.hop_limit",
                "IP_DEFAULT_TTL", "TCP_TTL";
            range: 1 ..= 255;
            rfc: "RFC 9293 3.9.2, RFC 1122 3.2.1.7";
            low: "packets expire before they are there.";
            high: "a loop of routes is fed for longer.";
        }

        /// The MSS of an IPv4 peer that announces none.
        default_mss_v4: u16 = 536, "mss.default.v4", Unit::Bytes => {
            also: "net.inet.tcp.mssdflt", "tcp_mss_def_ipv4", "TCP_MSS";
            range: 48 ..= 65_495;
            rfc: "RFC 9293 3.7.1";
            low: "many small segments to peers of no options.";
            high: "more than such a peer can take.";
        }

        /// The MSS of an IPv6 peer that announces none.
        default_mss_v6: u16 = 1_220, "mss.default.v6", Unit::Bytes => {
            also: "net.inet.tcp.v6mssdflt", "tcp_mss_def_ipv6";
            range: 48 ..= 65_475;
            rfc: "RFC 9293 3.7.1";
            low: "many small segments to peers of no options.";
            high: "more than such a peer can take.";
        }

        /// The least that segments are cut to, options included, whatever the peer announces or a
        /// router reports.
        least_mss: u16 = 48, "net.ipv4.tcp_min_snd_mss", Unit::Bytes => {
            also: "net.inet.tcp.minmss";
            range: 48 ..= 536;
            rfc: "RFC 9293 3.7.1";
            low: "a peer makes us send headers for the most part (CVE-2019-11479).";
            high: "peers and paths that carry less get nothing.";
        }

        /// ICMP errors that call it hopeless end an attempt to open. Connections that are there outlive
        /// them in any case.
        icmp_aborts: bool = true, "icmp_aborts", Unit::Switch => {
            also: "net.inet.tcp.icmp_may_rst";
            rfc: "RFC 9293 3.9.2.2, RFC 5461";
            low: "an application waits for its SYNs to time out.";
            high: "an attacker who guesses the numbers of a SYN ends the attempt.";
        }

        /// When a router's report that a segment was too big lowers the path MTU.
        frag_needed: FragNeeded = FragNeeded::Verified, "icmp.frag_needed", FragNeeded::UNIT => {
            rfc: "RFC 5927 7.2";
        }

        /// When a connection finds out by its own segments what its path carries. Routers' reports count in any
        /// case. Linux has 0 by default, and stops where a path drops full segments in silence.
        mtu_probing: MtuProbing = MtuProbing::Suspicion, "net.ipv4.tcp_mtu_probing"
            (Reading::Words(&[("0", "off"), ("1", "suspicion"), ("2", "always")])), MtuProbing::UNIT => {
            rfc: "RFC 4821 7.7";
        }

        /// The text of segments on a path that is suspected to drop larger ones, and of the first with
        /// `net.ipv4.tcp_mtu_probing=2`. Over IPv6 it is what fits 1,280 bytes, if that is more.
        mtu_base_mss: u16 = 1_024, "net.ipv4.tcp_base_mss", Unit::Bytes => {
            range: 48 ..= 65_495;
            rfc: "RFC 4821 7.2";
            low: "many small segments, until a probe arrives.";
            high: "a path that carries less needs further time-outs.";
        }

        /// The least text of segments on a path that is suspected. Each time-out halves them down to this. By
        /// default it is `net.ipv4.tcp_base_mss`, and nothing is halved: outages are common, and paths that carry less
        /// are not. Linux has 48.
        mtu_probe_floor: u16 = 1_024, "net.ipv4.tcp_mtu_probe_floor", Unit::Bytes => {
            range: 48 ..= 65_495;
            rfc: "RFC 4821 7.7";
            low: "a long outage leaves small segments, of which many go again.";
            high: "a path that carries less is stuck.";
        }

        /// The time after which a connection whose search has ended looks for a path that became wider.
        mtu_probe_interval: Duration = secs(600), "net.ipv4.tcp_probe_interval" (Reading::Seconds),
        Unit::Time => {
            range: secs(300) ..= secs(86_400);
            rfc: "RFC 4821 7.3";
            low: "segments are lost to probes; RFC 4821 allows no less than 5 minutes.";
            high: "a path that became wider is used late.";
        }

        /// The response to a station that claims the address of a neighbour that is confirmed as another
        /// station.
        neighbour_claims: NeighbourClaims = NeighbourClaims::Verify, "neighbours.claims",
        NeighbourClaims::UNIT => {
            rfc: "RFC 4861 7.2.5, RFC 826";
        }

        /// The error of an attempt to open that a router or the peer prohibits by an ICMP error, while
        /// `icmp_aborts` is on.
        icmp_prohibited: ProhibitedByIcmp = ProhibitedByIcmp::Unreachable, "icmp.prohibited",
        ProhibitedByIcmp::UNIT => {
            rfc: "RFC 1122 4.2.3.9";
        }

        /// The effect on an attempt to open of an ICMP error that reports the hop limit of its SYN exceeded,
        /// while `icmp_aborts` is on.
        icmp_time_exceeded: TimeExceededByIcmp = TimeExceededByIcmp::Soft, "icmp.time_exceeded",
        TimeExceededByIcmp::UNIT => {
            rfc: "RFC 1122 4.2.3.9, RFC 5461";
        }

        /// The effect on an attempt to open of an ICMP error that reports no route to the peer, while
        /// `icmp_aborts` is on.
        icmp_unreachable: UnreachableByIcmp = UnreachableByIcmp::Soft, "icmp.unreachable",
        UnreachableByIcmp::UNIT => {
            rfc: "RFC 1122 4.2.3.9, RFC 5461";
        }

        /// The rule by which `SO_ERROR` reports ICMP errors that a connection outlives.
        soft_errors: SoftErrors = SoftErrors::Told, "icmp.soft_errors", SoftErrors::UNIT => {
            rfc: "RFC 9293 3.9.1.8, 3.9.2.2";
        }

    } $($parts)* } };
}
