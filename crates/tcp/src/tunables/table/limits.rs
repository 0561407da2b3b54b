//! Limits on the work and memory that a hostile peer can cause for a connection.

macro_rules! limits {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// The time between two challenge acknowledgments of one connection in the long run; in
        /// TIME-WAIT, the least time between two.
        challenge_interval: Duration = millis(500), "net.ipv4.tcp_invalid_ratelimit" (Reading::Millis),
        Unit::Time => {
            also: "net.inet.tcp.ack_war_timewindow" (Reading::Millis);
            range: Duration::ZERO ..= secs(60);
            rfc: "RFC 5961 7";
            low: "forged segments make us send as many.";
            high: "a peer that lost its state waits.";
        }

        /// The number of challenge acknowledgments that a connection may send in quick succession. RFC 5961 has
        /// 10 in 5 s for the whole host; here each connection has them.
        challenge_burst: u8 = 10, "challenge.burst", Unit::Count("acknowledgments") => {
            also: "net.inet.tcp.ack_war_cnt";
            range: 1 ..= 255;
            rfc: "RFC 5961 7";
            low: "a peer that tries again at once is not answered.";
            high: "forged segments make us send as many.";
        }

        /// The most separate ranges that a connection holds out of order; as many for each 512 segments of
        /// its receive buffer, if that is more: slow start that overshoots loses every second segment.
        max_out_of_order: u16 = 256, "max_out_of_order", Unit::Count("ranges") => {
            range: 1 ..= 4_096;
            low: "what arrives after several losses is thrown away and sent again.";
            high: "work and memory that a hostile peer makes us spend.";
        }

    } $($parts)* } };
}
