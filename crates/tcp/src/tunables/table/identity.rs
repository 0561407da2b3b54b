//! Ports and sequence numbers that a connection begins with.

macro_rules! identity {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// The first ephemeral port.
        port_first: u16 = 32_768, "ports.first", Unit::Port => {
            also: "net.inet.ip.portrange.first", "tcp_smallest_anon_port",
                "TCP_LOCAL_PORT_RANGE_START";
            range: 1 ..= 65_535;
            rfc: "RFC 6056 3.2";
            low: "ports that servers of this host want are taken.";
            high: "few ports, which are used up towards one server.";
        }

        /// The last ephemeral port.
        port_last: u16 = 60_999, "ports.last", Unit::Port => {
            also: "net.inet.ip.portrange.last", "tcp_largest_anon_port", "TCP_LOCAL_PORT_RANGE_END";
            range: 1 ..= 65_535;
            rfc: "RFC 6056 3.2";
            low: "few ports, which are used up towards one server.";
            high: "nothing.";
        }

        /// Ports of the range that are never drawn: those of servers, as a rule. `bind` may name them.
        reserved_ports: ReservedPorts = ReservedPorts::NONE, "net.ipv4.ip_local_reserved_ports",
        Unit::Ports => {
            low: "a server that starts late finds its port taken.";
            high: "few ports, which are used up towards one server.";
        }

        /// The order in which ephemeral ports are tried.
        port_order: PortOrder = PortOrder::DoubleHash, "ports", PortOrder::UNIT => {
            also: "net.inet.ip.portrange.randomized"
                (Reading::Words(&[("1", "random"), ("0", "sequential")]));
            rfc: "RFC 6056 3.3";
        }

        /// The order of reused ports towards a peer that refused a connection from one. With our own initial
        /// sequence numbers such a port is refused again, until the peer forgets.
        refused_ports: RefusedPorts = RefusedPorts::Last, "ports.refused", RefusedPorts::UNIT => {
            rfc: "RFC 6056 3.3";
        }

        /// The method by which initial sequence numbers are chosen.
        isn: Isn = Isn::Rfc6528, "isn", Isn::UNIT => {
            also: "tcp_strong_iss"
                (Reading::Words(&[("0", "host-wide-plain"), ("1", "host-wide"), ("2", "rfc6528")]));
            rfc: "RFC 6528, RFC 9293 3.4.1";
        }

        /// The time that one increment of the ISN clock takes, under `isn=rfc6528`. At 256 ns it gains
        /// 3.9 MB/s and is half round after 550 s, beyond twice the longest usual TIME-WAIT; RFC 9293
        /// suggests 4 us.
        isn_tick_nanos: u32 = 256, "isn.tick", Unit::Nanos => {
            range: 1 ..= 1_000_000;
            rfc: "RFC 9293 3.4.1";
            low: "it is half round within TIME-WAIT, and the next SYN looks old.";
            high: "a fast upload outruns it, and the next connection's SYN looks old.";
        }

        /// The increment of the counter with each connection, under `isn=host-wide` and `isn=host-wide-plain`.
        isn_step: u32 = 125_000, "isn.step", Unit::Count("sequence numbers") => {
            also: "tcp_iss_incr" (Reading::Twice);
            range: 1 ..= 1 << 24;
            rfc: "RFC 6528 2";
            low: "connections that follow each other share sequence numbers.";
            high: "the counter is half round within TIME-WAIT at fewer connections a second.";
        }

    } $($parts)* } };
}
