//! Limits on connections and half-open entries, and Fast Open.

macro_rules! opening {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// The most half-open entries in all, 64 bytes each.
        max_syn_entries: u32 = 64 << 10, "max_syn_entries", Unit::Count("entries") => {
            also: "net.ipv4.tcp_max_syn_backlog", "net.inet.tcp.syncache.cachelimit";
            range: 1 ..= 1 << 28;
            rfc: "RFC 4987 3.2";
            low: "a burst of clients is refused.";
            high: "memory that forged SYNs can pin.";
        }

        /// The most connections to one address and port that a shard holds for the decision of a listener
        /// for any destination (`TcpListener::bind_any`), or for the end of their handshake; of 4,096 in
        /// all. Beyond it the oldest gives way.
        max_dials_per_destination: u16 = 64, "max_dials_per_destination", Unit::Count("connections") => {
            range: 1 ..= 4_096;
            low: "clients that connect to one server at once repeat their SYNs, for seconds.";
            high: "dials to one server that does not answer displace those to others.";
        }

        /// Which SYNs are answered by a cookie. A cookie holds for two minutes at most. Without timestamps
        /// it negotiates neither window scaling nor SACK.
        syn_cookies: SynCookies = SynCookies::Auto, "net.ipv4.tcp_syncookies"
            (Reading::Words(&[("1", "auto"), ("2", "always"), ("0", "off")])), SynCookies::UNIT => {
            also: "net.inet.tcp.syncookies" (Reading::Words(&[("1", "auto"), ("0", "off")])),
                "net.inet.tcp.syncookies_only" (Reading::Words(&[("1", "always"), ("0", "auto")]));
            rfc: "RFC 4987 3.6";
        }

        /// `connect` may use Fast Open, where its application asks for that. What a SYN brings may come
        /// to the peer's application twice.
        fast_open_client: bool = true, "net.inet.tcp.fastopen.client_enable", Unit::Switch => {
            rfc: "RFC 7413 4.2.2";
            low: "each connection waits for a round trip before its first text.";
            high: "nothing, unless an application asks for what it cannot bear.";
        }

        /// Listeners may take the text of a SYN at once, where their application asks for that. It may come
        /// twice: a SYN can be repeated by the network, and no connection remembers that.
        fast_open_server: bool = true, "net.inet.tcp.fastopen.server_enable", Unit::Switch => {
            rfc: "RFC 7413 4.2.2";
            low: "each connection waits for a round trip before its first text.";
            high: "nothing, unless an application asks for what it cannot bear.";
        }

        /// The time that Fast Open is not used towards a server's port after a SYN with it went unanswered
        /// there, or its text was not accepted. It doubles with each such failure in a row, up to 64 times as
        /// long. 0: Fast Open is never suspended.
        fast_open_pause: Duration = secs(900), "net.ipv4.tcp_fastopen_blackhole_timeout_sec"
        (Reading::Seconds), Unit::Time => {
            also: "net.inet.tcp.fastopen.path_disable_time" (Reading::Seconds);
            range: Duration::ZERO ..= secs(86_400);
            rfc: "RFC 7413 4.1.3.1";
            low: "where a middlebox swallows such SYNs each connection waits for a time-out.";
            high: "a path that was mended, or a server that was busy, goes without for long.";
        }

        /// A handshake whose third segment finds the accept queue full is ended by a reset, as the
        /// client then knows. Otherwise the segment is dropped, and the SYN-ACK repeated until there is
        /// room.
        abort_on_overflow: bool = false, "net.ipv4.tcp_abort_on_overflow", Unit::Switch => {
            low: "clients whose server does not keep up wait, and believe to be connected.";
            high: "clients that meet a short burst are refused.";
        }

        /// The most connections that a shard has at a time, half-open entries and TIME-WAIT not counted.
        max_connections: u32 = 1 << 20, "max_connections", Unit::Count("connections") => {
            also: "MEMP_NUM_TCP_PCB";
            range: 1 ..= 1 << 28;
            low: "clients are refused.";
            high: "memory that peers can pin.";
        }

    } $($parts)* } };
}
