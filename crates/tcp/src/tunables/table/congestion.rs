//! Congestion control, the initial window, slow start and pacing.

macro_rules! congestion {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// The congestion control of connections whose socket, listener and route name none.
        congestion_control: CongestionAlgorithm = CongestionAlgorithm::Cubic,
            "net.ipv4.tcp_congestion_control", CongestionAlgorithm::UNIT => {
            rfc: "RFC 9438, RFC 5681";
            low: "reno: a path of 1 Gb/s and 100 ms takes minutes to be full again after a loss.";
            high: "cubic: it takes more of a shared path than Reno does, on long paths above all.";
        }

        /// The initial congestion window, in segments of 1,460 bytes at most; two segments, if they are larger
        /// than all of that. 10 is RFC 6928's, 3 RFC 3390's, 1 that of RFC 2001. It is what a connection begins
        /// with again after a pause, too, and a route may say more.
        initial_window: u8 = 10, "initial_window", Unit::Count("segments") => {
            also: "net.inet.tcp.initcwnd_segments";
            range: 1 ..= 100;
            rfc: "RFC 6928 2, RFC 5681 3.1";
            low: "a short response takes some round trips more.";
            high: "a burst that slow paths lose the end of.";
        }

        /// The most segments by which one acknowledgment lets the congestion window grow in slow start; 0:
        /// as many as it acknowledges. RFC 5681 has 1, RFC 3465 allows 2; with either, a peer that acknowledges
        /// many segments at once starves the path.
        slow_start_limit: u8 = 0, "slow_start.limit", Unit::Count("segments") => {
            also: "net.inet.tcp.abc_l_var";
            range: 0 ..= 255;
            rfc: "RFC 5681 3.1, RFC 3465 2.3";
            low: "1: the window grows by half in a round trip, where each second segment is acknowledged.";
            high: "bursts, where acknowledgments were lost.";
        }

        /// The first slow start ends where the round trip grows or acknowledgments arrive without a pause,
        /// before anything is lost (HyStart++).
        hystart: bool = true, "hystart", Unit::Switch => {
            rfc: "RFC 9406";
            low: "the first slow start ends in losses, up to half of what is in flight.";
            high: "nothing, unless a round trip grows for another reason than a queue.";
        }

        /// A connection that sent nothing for longer than a retransmission time-out begins again with the
        /// initial window. Otherwise its window stays as it was, and is halved for each five minutes in which less
        /// than half of it was used; after such a pause, text beyond an initial window leaves spread over the round
        /// trip until half of the window was carried again.
        slow_start_after_idle: bool = true, "net.ipv4.tcp_slow_start_after_idle", Unit::Switch => {
            rfc: "RFC 5681 4.1, RFC 7661 4.4";
            low: "what the path once carried within a round trip meets what it is now.";
            high: "each pause costs some round trips.";
        }

        /// Text leaves spread over the round trip, whatever the congestion control: at most what is sent in a
        /// millisecond at once. One that has a rate of its own is paced in any case.
        pacing: bool = false, "pacing", Unit::Switch => {
            rfc: "RFC 9743 5, RFC 6928 10";
            low: "bursts of a window, which short queues lose the end of.";
            high: "the clock wakes each flow up for each millisecond of text.";
        }

        /// The rate of a paced flow in slow start, up to half of ssthresh: percent of a congestion window in
        /// each round trip. The window doubles meanwhile, so that less than 200 slows its growth.
        pacing_slow_start: u16 = 200, "net.ipv4.tcp_pacing_ss_ratio", Unit::Count("percent") => {
            range: 1 ..= 1_000;
            low: "slow start takes longer.";
            high: "bursts.";
        }

        /// The rate of a paced flow after slow start: percent of a congestion window in each round trip. Less
        /// than 100 would keep a flow from filling its window.
        pacing_avoidance: u16 = 120, "net.ipv4.tcp_pacing_ca_ratio", Unit::Count("percent") => {
            range: 1 ..= 1_000;
            low: "100 and less: a flow that was late once does not catch up.";
            high: "bursts.";
        }

    } $($parts)* } };
}
