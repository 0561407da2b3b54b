//! Delays of acknowledgments and of FIN for a segment that can carry them.

macro_rules! acknowledgments {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// The longest that an acknowledgment is delayed, for a response to carry it; 0: none is delayed.
        delayed_ack: Duration = millis(40), "delayed_ack", Unit::Time => {
            also: "net.inet.tcp.delacktime" (Reading::Millis),
                "net.ipv4.tcp_delack_max_us" (Reading::Micros),
                "tcp_deferred_ack_interval" (Reading::Millis);
            range: Duration::ZERO ..= millis(499);
            rfc: "RFC 9293 3.8.6.3";
            low: "an acknowledgment for each segment that nothing else carries one for.";
            high: "peers that send less than two segments at a time stall; it MUST be less than 0.5 s (MUST-40).";
        }

        /// The longest that the acknowledgment which completes a handshake of ours is delayed, for a request
        /// to carry it that is written once we are connected; 0: it is not. What was written before
        /// carries it in any case.
        handshake_ack_delay: Duration = Duration::ZERO, "delayed_ack.handshake", Unit::Time => {
            range: Duration::ZERO ..= millis(200);
            rfc: "RFC 9293 3.10.7.3";
            low: "one packet more for each connection.";
            high: "a server waits for clients that do not ask: it may be the one to speak first.";
        }

        /// FIN rides on the last text, if the connection is closed before that is sent.
        fin_with_text: bool = true, "fin.with_text", Unit::Switch => {
            rfc: "RFC 9293 3.10.4";
            low: "one packet more for each connection.";
            high: "nothing, but where a middlebox loses the text of a segment with FIN.";
        }

        /// The number of segments that one acknowledgment may cover. RFC 9293: "an ACK SHOULD be generated for
        /// at least every second full-sized segment".
        ack_every: u8 = 2, "ack_every", Unit::Count("segments") => {
            also: "net.inet.tcp.delayed_ack" (Reading::Words(&[("0", "1"), ("1", "2")])),
                "tcp_deferred_acks_max";
            range: 1 ..= 16;
            rfc: "RFC 9293 3.8.6.3";
            low: "twice the acknowledgments.";
            high: "the peer's window opens in bursts, and slowly.";
        }

    } $($parts)* } };
}
