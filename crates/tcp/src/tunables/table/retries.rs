//! The number and the times of retransmissions to a peer that does not answer.

macro_rules! retries {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// The number of times that a SYN is repeated before `connect` times out: 6 doublings from 1 s to 60 s
        /// are 123 s.
        syn_retries: u8 = 6, "net.ipv4.tcp_syn_retries", Unit::Count("repetitions") => {
            also: "TCP_SYNMAXRTX";
            range: 0 ..= 30;
            rfc: "RFC 9293 3.8.3";
            low: "a lost SYN or two fail the connection; R2 for a SYN is at least 3 minutes there.";
            high: "an application waits for hours to learn that no host is there.";
        }

        /// When a SYN is repeated: `x2` doubles `initial_rto` each time; a list such as `3s,6s,12s`
        /// says how long each SYN waits, and its last repeats. SYN-ACKs double, whatever is said here.
        syn_retry: SynRetry = SynRetry::DOUBLE, "syn.retry", Unit::Schedule => {
            rfc: "RFC 6298 5.5";
            low: "many SYNs for a server that does not answer because it has too many already.";
            high: "one lost SYN delays its connection by the first wait.";
        }

        /// A SYN that the peer answers for an old connection of the same ends is sent again one round trip
        /// after our reset, which ends that; once for each attempt. Otherwise it waits for `syn.retry`.
        syn_after_challenge: bool = true, "syn.after_challenge", Unit::Switch => {
            rfc: "RFC 9293 3.5.2, RFC 5961 4.2";
            low: "a client that meets TIME-WAIT of a careful server waits for a second.";
            high: "one SYN more for a peer whose TIME-WAIT no reset ends.";
        }

        /// The number of times that a SYN-ACK is repeated before the half-open entry is dropped: 5 doublings
        /// from 1 s are 63 s.
        synack_retries: u8 = 5, "net.ipv4.tcp_synack_retries", Unit::Count("repetitions") => {
            also: "net.inet.tcp.syncache.rexmtlimit";
            range: 0 ..= 30;
            rfc: "RFC 9293 3.8.3";
            low: "a lost SYN-ACK or two fail the connection.";
            high: "forged SYNs fill the SYN cache for longer.";
        }

        /// The number of times that data is retransmitted before the connection times out: 15 doublings from
        /// 200 ms to 60 s are about 9 minutes.
        retries: u8 = 15, "net.ipv4.tcp_retries2", Unit::Count("retransmissions") => {
            also: "net.inet.tcp.retries", "TCP_MAXRTX";
            range: 1 ..= 30;
            rfc: "RFC 9293 3.8.3";
            low: "a short outage ends connections; R2 is to be 100 s at least.";
            high: "dead connections are held for long.";
        }

        /// The longest that text may wait for an acknowledgment before its connection times out (R2 in time),
        /// if its application sets no limit; 0: `net.ipv4.tcp_retries2` and `net.ipv4.tcp_orphan_retries`
        /// decide. The first time-out never ends a connection, and attempts to open have limits of their own.
        user_timeout: Duration = Duration::ZERO, "user_timeout", Unit::Time => {
            also: "tcp_ip_abort_interval" (Reading::Millis);
            range: Duration::ZERO ..= secs(86_400);
            rfc: "RFC 9293 3.8.3, RFC 5482 3";
            low: "a short outage ends connections; R2 is to be 100 s at least.";
            high: "dead connections are held for long.";
        }

        /// The number of unanswered retransmissions after which the path itself is doubted: the neighbour is
        /// probed again, as RFC 9293's R1 has it.
        doubt_after: u8 = 3, "net.ipv4.tcp_retries1", Unit::Count("retransmissions") => {
            range: 1 ..= 30;
            rfc: "RFC 9293 3.8.3";
            low: "questions to the link for each loss; R1 is to be 3 at least.";
            high: "a router that was replaced is noticed late.";
        }

        /// The number of times that the data of a closed connection without an owner is retransmitted, one at
        /// least. It ends no later than as many retransmissions take from 200 ms on, or from
        /// `net.ipv4.tcp_rto_min_us` if that is more (8: 102 s). As many probes of a window that stays closed
        /// end it, answered or not, once they are `net.ipv4.tcp_rto_max_ms` apart.
        orphan_retries: u8 = 8, "net.ipv4.tcp_orphan_retries", Unit::Count("retransmissions") => {
            range: 0 ..= 30;
            low: "the end of what was sent is lost with one segment.";
            high: "memory for peers that left.";
        }

    } $($parts)* } };
}
