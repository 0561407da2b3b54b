//! Old duplicates, resets, and TIME-WAIT.

macro_rules! closing {
    ($head:tt { $($rows:tt)* } $($parts:ident)*) => { table! { @join $head { $($rows)*

        /// The maximum segment lifetime towards hosts beyond a router: TIME-WAIT lasts twice this. 60 s
        /// is half of what RFC 9293 assumes, and what is deployed. A change counts for records that
        /// wait already.
        msl_remote: Duration = secs(60), "msl.remote", Unit::Time => {
            range: Duration::ZERO ..= secs(255);
            rfc: "RFC 9293 3.4.2";
            low: "an old duplicate can meet a new connection of the same ports.";
            high: "memory; and ports, where the peer judges a new SYN by the wait alone.";
        }

        /// The maximum segment lifetime towards hosts on a directly connected network: TIME-WAIT
        /// lasts twice this.
        msl_link: Duration = secs(10), "msl.link", Unit::Time => {
            range: Duration::ZERO ..= secs(255);
            rfc: "RFC 9293 3.4.2";
            low: "an old duplicate can meet a new connection of the same ports.";
            high: "memory.";
        }

        /// The maximum segment lifetime towards this host itself: TIME-WAIT lasts twice this.
        msl_loopback: Duration = secs(2), "msl.loopback", Unit::Time => {
            range: Duration::ZERO ..= secs(255);
            rfc: "RFC 9293 3.4.2";
            low: "an old duplicate can meet a new connection of the same ports.";
            high: "memory.";
        }

        /// A SYN that carries FIN opens nothing: a listener drops it, TIME-WAIT challenges it. Linux always
        /// does so. RFC 9293 3.10.7.2 does not drop it, nor does FreeBSD by default: then the SYN counts, and
        /// the FIN is to come again.
        drop_synfin: bool = true, "net.inet.tcp.drop_synfin", Unit::Switch => {
            rfc: "RFC 9293 3.10.7.2";
            low: "scanners tell this host from others by its answer.";
            high: "nothing: T/TCP alone ever sent it (RFC 1644, historic by RFC 6247).";
        }

        /// Which reset in the window ends a connection.
        rst_in_window: RstInWindow = RstInWindow::AtRcvNxt, "rst", RstInWindow::UNIT => {
            also: "net.inet.tcp.insecure_rst"
                (Reading::Words(&[("0", "at-rcv-nxt"), ("1", "any")]));
            rfc: "RFC 5961 3.2";
        }

        /// The error that an application gets if a reset ends its connection in CLOSE-WAIT.
        rst_close_wait: RstInCloseWait = RstInCloseWait::Pipe, "rst.close_wait", RstInCloseWait::UNIT => {
            rfc: "RFC 9293 3.10.7.4";
        }

        /// The answer to text that arrives after both directions are shut down.
        text_after_shutdown: TextAfterShutdown = TextAfterShutdown::Reset, "shutdown.text",
        TextAfterShutdown::UNIT => {
            rfc: "RFC 9293 3.6.1";
        }

        /// The effect of a SYN in the window of a connection.
        syn_in_window: SynInWindow = SynInWindow::Challenge, "syn", SynInWindow::UNIT => {
            also: "net.inet.tcp.insecure_syn" (Reading::Words(&[("0", "challenge"), ("1", "reset")]));
            rfc: "RFC 5961 4.2";
        }

        /// Which SYN opens a flow in TIME-WAIT again.
        tw_syn: SynInTimeWait = SynInTimeWait::Rfc6191, "tw.syn", SynInTimeWait::UNIT => {
            rfc: "RFC 6191, RFC 9293 3.10.7.4, RFC 1122 4.2.2.13";
        }

        /// The answer to a SYN that does not reopen a flow in TIME-WAIT.
        tw_answer: AnswerInTimeWait = AnswerInTimeWait::ChallengeAck, "tw.answer",
        AnswerInTimeWait::UNIT => {
            rfc: "RFC 9293 3.10.7.4";
        }

        /// Which reset ends a record in TIME-WAIT.
        tw_rst: RstInTimeWait = RstInTimeWait::Challenged, "tw.rst", RstInTimeWait::UNIT => {
            also: "net.ipv4.tcp_rfc1337" (Reading::Words(&[("1", "ignore"), ("0", "at-rcv-nxt")]));
            rfc: "RFC 1337";
        }

        /// The answer to an empty segment at RCV.NXT in TIME-WAIT. Other segments, acceptable or not, are
        /// always answered, the peer's FIN each time.
        tw_empty: EmptyInTimeWait = EmptyInTimeWait::Answer, "tw.empty", EmptyInTimeWait::UNIT => {
            rfc: "RFC 9293 3.10.7.4";
        }

        /// The TIME-WAITs of its own that `connect` may end to take their ports, if the connections used
        /// timestamps and no other port towards the peer is free, or none may be taken.
        tw_reuse: PortReuse = PortReuse::Timestamped, "net.ipv4.tcp_tw_reuse"
        (Reading::Words(&[("1", "on"), ("2", "loopback"), ("0", "off")])), PortReuse::UNIT => {
            rfc: "RFC 1122 4.2.2.13, RFC 7323 B.2, RFC 6191";
        }

        /// The least time from the last segment of a connection until `connect` may end its TIME-WAIT, towards
        /// hosts beyond a router. The peer's clock must have ticked since: RFC 7323 allows one second.
        tw_reuse_delay_remote: Duration = secs(1), "tw.reuse_delay.remote", Unit::Time => {
            range: Duration::ZERO ..= secs(3600);
            rfc: "RFC 7323 5.4, B.2";
            low: "a peer whose timestamps tick slowly takes an old duplicate for new.";
            high: "fewer connections a second to one server: ports / this.";
        }

        /// The least time from the last segment of a connection until `connect` may end its TIME-WAIT, towards
        /// hosts on a directly connected network.
        tw_reuse_delay_link: Duration = secs(1), "tw.reuse_delay.link", Unit::Time => {
            range: Duration::ZERO ..= secs(3600);
            rfc: "RFC 7323 5.4, B.2";
            low: "a peer whose timestamps tick slowly takes an old duplicate for new.";
            high: "fewer connections a second to one server: ports / this.";
        }

        /// The least time from the last segment of a connection until `connect` may end its TIME-WAIT, towards
        /// this host itself.
        tw_reuse_delay_loopback: Duration = secs(1), "tw.reuse_delay.loopback", Unit::Time => {
            range: Duration::ZERO ..= secs(3600);
            rfc: "RFC 7323 5.4, B.2";
            low: "an old duplicate is taken for new.";
            high: "fewer connections a second to one server: ports / this.";
        }

        /// The most TIME-WAIT records, 64 bytes each; at the bound the oldest goes early, counted.
        max_time_wait: u32 = 4 << 20, "net.ipv4.tcp_max_tw_buckets", Unit::Count("records") => {
            also: "net.inet.tcp.maxtcptw";
            range: 1 ..= 1 << 28;
            low: "TIME-WAIT ends early under load, as with a short MSL.";
            high: "memory: 256 MiB at the default.";
        }

    } $($parts)* } };
}
