//! When what was sent goes again.

macro_rules! retransmission {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// The first retransmission time-out of a SYN or SYN-ACK.
        initial_rto: Micros = Micros::from_millis(1_000), "initial_rto", Unit::Time => {
            also: "net.inet.tcp.rexmit_initial" (Reading::Millis),
                "tcp_rexmit_interval_initial" (Reading::MillisAndEighth),
                "LWIP_TCP_RTO_TIME" (Reading::Millis);
            range: Micros::from_millis(1) ..= Micros::from_millis(60_000);
            rfc: "RFC 6298 2.1";
            low: "SYNs are repeated needlessly on long paths.";
            high: "a lost SYN delays its connection by as much.";
        }

        /// The least retransmission time-out, and the least by which it exceeds SRTT. RFC 6298 2.4 says that 1 s should be the minimum; 200 ms
        /// is what Linux has shown to work with fine clocks and acknowledgments that are delayed by at
        /// most 200 ms.
        min_rto: Micros = Micros::from_millis(200),
            "net.ipv4.tcp_rto_min_us" (Reading::Micros), Unit::Time => {
            also: "net.inet.tcp.rexmit_min" (Reading::Millis),
                "net.inet.tcp.rexmit_slop" (Reading::Millis),
                "tcp_rexmit_interval_min" (Reading::Millis);
            range: Micros::from_millis(1) ..= Micros::from_millis(60_000);
            rfc: "RFC 6298 2.4";
            low: "a delayed acknowledgment counts as a loss.";
            high: "the last segment's loss delays its stream by as much.";
        }

        /// A loss probe asks for what was lost at the end of a burst.
        loss_probe: bool = true, "tail_loss_probe", Unit::Switch => {
            also: "net.ipv4.tcp_early_retrans"
                (Reading::Words(&[("0", "0"), ("3", "1"), ("4", "1")]));
            rfc: "RFC 8985 7";
            low: "the end of a burst that was lost is repaired after a time-out.";
            high: "a probe may repeat what the peer has already.";
        }

        /// The greatest retransmission time-out.
        max_rto: Micros = Micros::from_millis(60_000),
            "net.ipv4.tcp_rto_max_ms" (Reading::Millis), Unit::Time => {
            also: "tcp_rexmit_interval_max" (Reading::Millis);
            range: Micros::from_millis(1_000) ..= Micros::from_millis(240_000);
            rfc: "RFC 6298 2.5";
            low: "a dead path is filled with retransmissions, and given up early.";
            high: "a path that comes back waits for the next retransmission.";
        }

        /// The longest that an attempt to open may last, in addition to the limit of
        /// `net.ipv4.tcp_syn_retries`; 0: no further limit. A user time-out that an application sets takes
        /// precedence.
        connect_timeout: Duration = Duration::ZERO, "connect_timeout", Unit::Time => {
            also: "net.inet.tcp.keepinit" (Reading::Millis),
                "tcp_ip_abort_cinterval" (Reading::Millis);
            range: Duration::ZERO ..= secs(3600);
            rfc: "RFC 9293 3.8.3";
            low: "a lost SYN or two fail the connection; R2 for a SYN is at least 3 minutes there.";
            high: "an application waits for long to learn that no host is there.";
        }

    } $($parts)* } };
}
