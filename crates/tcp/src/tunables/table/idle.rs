//! Time-outs and keep-alive probes of idle connections.

macro_rules! idle {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// The time that a connection without an owner waits in FIN-WAIT-2 for the peer's FIN.
        fin_timeout: Duration = secs(60), "net.ipv4.tcp_fin_timeout" (Reading::Seconds), Unit::Time => {
            also: "net.inet.tcp.finwait2_timeout" (Reading::Millis),
                "tcp_fin_wait_2_flush_interval" (Reading::Millis);
            range: secs(1) ..= secs(3600);
            low: "a slow peer's last data is answered by a reset.";
            high: "connections are held for peers that never close.";
        }

        /// The time that a connection may be silent before it is probed, if its application set keep-alive. RFC
        /// 9293: it "MUST default to no less than two hours".
        keepalive_time: Duration = secs(7200), "net.ipv4.tcp_keepalive_time" (Reading::Seconds),
        Unit::Time => {
            also: "net.inet.tcp.keepidle" (Reading::Millis),
                "tcp_keepalive_interval" (Reading::Millis),
                "TCP_KEEPIDLE_DEFAULT" (Reading::Millis);
            range: secs(1) ..= secs(32_767);
            rfc: "RFC 9293 3.8.4";
            low: "traffic, and connections that a short outage ends.";
            high: "a middlebox forgets the connection first.";
        }

        /// The time between two probes.
        keepalive_interval: Duration = secs(75), "net.ipv4.tcp_keepalive_intvl" (Reading::Seconds),
        Unit::Time => {
            also: "net.inet.tcp.keepintvl" (Reading::Millis), "TCP_KEEPINTVL_DEFAULT" (Reading::Millis);
            range: secs(1) ..= secs(32_767);
            rfc: "RFC 9293 3.8.4";
            low: "a short outage looks like a dead peer.";
            high: "a dead peer is noticed late.";
        }

        /// The number of unanswered probes that ends the connection.
        keepalive_probes: u8 = 9, "net.ipv4.tcp_keepalive_probes", Unit::Count("probes") => {
            also: "net.inet.tcp.keepcnt", "TCP_KEEPCNT_DEFAULT";
            range: 1 ..= 127;
            rfc: "RFC 9293 3.8.4";
            low: "one lost probe ends a connection, which RFC 9293 forbids.";
            high: "a dead peer is noticed late.";
        }

    } $($parts)* } };
}
