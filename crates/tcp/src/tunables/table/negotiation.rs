//! Options that the two SYNs of a connection negotiate.

macro_rules! negotiation {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// Window scaling is offered and accepted.
        window_scaling: bool = true, "net.ipv4.tcp_window_scaling", Unit::Switch => {
            also: "LWIP_WND_SCALE";
            rfc: "RFC 7323 2";
            low: "no window exceeds 65,535 bytes, so that long paths run at 64 KiB a round trip.";
            high: "nothing, but on a path whose middleboxes lose the option from one SYN.";
        }

        /// Timestamps are offered and accepted.
        timestamps: bool = true, "net.ipv4.tcp_timestamps", Unit::Switch => {
            also: "LWIP_TCP_TIMESTAMPS";
            rfc: "RFC 7323 3";
            low: "PAWS is off, and a reused port looks old more often.";
            high: "12 bytes of each segment.";
        }

        /// The treatment of segments without the timestamps that were negotiated. Deployed stacks and
        /// middleboxes omit them from some segments. Linux and FreeBSD accept those, and so does the default.
        missing_timestamps: MissingTimestamps = MissingTimestamps::Take, "timestamps.missing",
        MissingTimestamps::UNIT => {
            also: "net.inet.tcp.tolerate_missing_ts"
                (Reading::Words(&[("0", "drop-syn"), ("1", "take")]));
            rfc: "RFC 7323 3.2";
        }

        /// Selective acknowledgment is offered and accepted.
        sack: bool = true, "net.ipv4.tcp_sack", Unit::Switch => {
            also: "net.inet.tcp.sack.enable", "LWIP_TCP_SACK_OUT";
            rfc: "RFC 2018";
            low: "several losses in one window cost a round trip each, or a time-out.";
            high: "options on acknowledgments while something is missing.";
        }

        /// Explicit Congestion Notification: routers mark text instead of dropping it. `connect` asks for it, or
        /// only who asks is answered. Both ends must agree. bbr hears of marks, too. Accurate feedback counts the
        /// marks; the other tells one in a round trip.
        ecn: EcnNegotiation = EcnNegotiation::Answer, "net.ipv4.tcp_ecn"
            (Reading::Words(&[
                ("0", "off"), ("1", "ask"), ("2", "answer"),
                ("3", "ask-accurate"), ("4", "ask-answer-accurate"), ("5", "answer-accurate"),
            ])), EcnNegotiation::UNIT => {
            also: "net.inet.tcp.ecn.enable"
                (Reading::Words(&[
                    ("0", "off"), ("1", "ask"), ("2", "answer"),
                    ("3", "ask-accurate"), ("4", "answer-accurate"),
                ]));
            rfc: "RFC 3168 6.1.1, RFC 9768 3.1";
        }

        /// A SYN that asked for ECN and was not answered in time is repeated without, as some middleboxes drop
        /// it. The connection then sends no text that routers may mark.
        ecn_fallback: bool = true, "net.ipv4.tcp_ecn_fallback", Unit::Switch => {
            rfc: "RFC 3168 6.1.1.1";
            low: "no connection comes about behind such a middlebox, where ECN is asked for.";
            high: "a connection whose first SYN was lost goes without ECN.";
        }

        /// The order of options on a SYN. Receivers never need it; fingerprints show it.
        option_order: OptionOrder = OptionOrder::Linux, "options.order", tunables::OPTION_ORDER => {}

    } $($parts)* } };
}
