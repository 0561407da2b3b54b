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

        /// The order of options on a SYN. Receivers never need it; fingerprints show it.
        option_order: OptionOrder = OptionOrder::Linux, "options.order", tunables::OPTION_ORDER => {}

    } $($parts)* } };
}
