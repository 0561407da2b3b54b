//! Policies: choices where stacks differ, each decided at one branch of the code that it governs.
//!
//! The first value of each is the default and the safe one. The others exist so that what other
//! stacks do can be shown, measured and compared on this one.

use whimbrel_base::policies;

policies! {
    /// Which SYN (without ACK and RST) opens a flow in TIME-WAIT again. `gap` is its sequence
    /// number less RCV.NXT, as a signed number.
    SynInTimeWait {
        /// A newer TSval; or an equal one, or none on either side, and gap > 0. At a gap of -2^31,
        /// where order is undefined (RFC 1982), only a newer TSval.
        Rfc6191 = "rfc6191",
        /// gap > 0, whatever its timestamps: FreeBSD, gVisor.
        BySequence = "by-sequence",
        /// TSval not older, and gap > 0, or -2^31, or TSval newer: Linux.
        Linux = "linux",
        /// gap beyond the whole window, whatever its timestamps: illumos, and FreeBSD 2.2.
        Illumos = "illumos",
        /// None opens it before 2 MSL are over: lwIP, smoltcp.
        Never = "never",
    }

    /// The answer to a SYN that does not reopen a flow in TIME-WAIT.
    AnswerInTimeWait {
        /// An acknowledgment, no more than one per record in `net.ipv4.tcp_invalid_ratelimit`
        /// (RFC 9293 3.10.7.4): a peer that lost its state answers it with a reset.
        ChallengeAck = "challenge-ack",
        /// A reset in the window, its end included, an acknowledgment elsewhere: illumos, lwIP.
        /// The reset refuses the client.
        ResetInWindow = "reset-in-window",
        /// Nothing, so that the client repeats its SYN until 2 MSL are over: FreeBSD, gVisor,
        /// smoltcp.
        Silence = "silence",
    }

    /// Which reset ends a record in TIME-WAIT.
    RstInTimeWait {
        /// One at RCV.NXT, within a second of our challenge of a SYN: only the peer can have sent it (RFC
        /// 1337).
        Challenged = "challenged",
        /// None ends it before 2 MSL are over: FreeBSD, gVisor, lwIP.
        Ignore = "ignore",
        /// One at RCV.NXT: Linux.
        AtRcvNxt = "at-rcv-nxt",
        /// Any in the window, as RFC 9293 3.10.7.4 has it: illumos, smoltcp. An attacker who guesses a number
        /// in the window assassinates TIME-WAIT (RFC 1337).
        End = "end",
    }

    /// The answer to an empty segment at RCV.NXT in TIME-WAIT.
    EmptyInTimeWait {
        /// An acknowledgment, no more than one per record in `net.ipv4.tcp_invalid_ratelimit`, unless
        /// its flags are ACK alone and it acknowledges all that was sent: FreeBSD.
        Answer = "answer",
        /// Nothing, whatever it acknowledges: Linux.
        Silence = "silence",
    }

    /// When an ICMP "fragmentation needed" or "packet too big" that quotes what is in flight is
    /// believed.
    FragNeeded {
        /// At once if it does not go below the largest segment that was acknowledged; else when the
        /// quoted segment times out, and not if that is acknowledged (RFC 5927 7.2): NetBSD,
        /// OpenBSD.
        Verified = "verified",
        /// At once: Linux, FreeBSD. An attacker who guesses a number in flight makes segments small.
        Immediate = "immediate",
    }

    /// When a connection finds out by its own segments what its path carries (RFC 4821). Routers' reports count in any
    /// case.
    MtuProbing {
        /// After full segments were not answered twice in a row, as a path does that drops them in silence.
        Suspicion = "suspicion",
        /// Never: Linux' default. A path that drops full segments in silence stops the connection.
        Off = "off",
        /// From the beginning, with small segments at first.
        Always = "always",
    }

    /// The response to a station that claims, unasked, the address of a neighbour that is confirmed as another
    /// station.
    NeighbourClaims {
        /// The known station is probed first, and is replaced if it is silent for a second. One forged frame
        /// therefore redirects no traffic.
        Verify = "verify",
        /// The claim is believed (RFC 4861 7.2.5, RFC 826): FreeBSD, and Linux a second after the last
        /// confirmation.
        Replace = "replace",
    }

    /// Which reset ends a connection or a handshake. One outside the window never does.
    RstInWindow {
        /// One at RCV.NXT; elsewhere in the window it is challenged (RFC 5961 3.2).
        AtRcvNxt = "at-rcv-nxt",
        /// Any in the window (RFC 793): an attacker who guesses one number of some thousands ends the
        /// connection.
        Any = "any",
    }

    /// The error that an application gets if a reset ends its connection in CLOSE-WAIT, after the peer's FIN.
    RstInCloseWait {
        /// `EPIPE`, because the peer accepts no more data: Linux.
        Pipe = "pipe",
        /// `ECONNRESET`, as in other states: FreeBSD.
        Reset = "reset",
    }

    /// The error of an attempt to open that a router or the peer prohibits by an ICMP error.
    ProhibitedByIcmp {
        /// `EHOSTUNREACH`, the peer cannot be reached: Linux.
        Unreachable = "unreachable",
        /// `ECONNREFUSED`, the attempt is refused: FreeBSD.
        Refused = "refused",
    }

    /// The effect on an attempt to open of an ICMP error that reports no route to the peer, or a SYN that a
    /// host did not understand.
    UnreachableByIcmp {
        /// The attempt goes on, because only this SYN is lost (RFC 1122 4.2.3.9): FreeBSD.
        Soft = "soft",
        /// The attempt ends, as after any other ICMP error: Linux.
        Hard = "hard",
    }

    /// The rule by which `SO_ERROR` reports ICMP errors that a connection outlives.
    SoftErrors {
        /// Once, while nothing was acknowledged since: Linux.
        Told = "told",
        /// Only if the connection times out, as the error that it ends with: FreeBSD.
        Kept = "kept",
    }

    /// The answer to text that arrives after the application has shut both directions down and while it still
    /// holds the socket.
    TextAfterShutdown {
        /// A reset, which ends the connection, as after `close` (RFC 9293 3.6.1): Linux.
        Reset = "reset",
        /// An acknowledgment: FreeBSD, which resets only connections whose socket is closed.
        Take = "take",
    }

    /// The effect on an attempt to open of an ICMP error that reports the hop limit of its SYN exceeded.
    TimeExceededByIcmp {
        /// The attempt goes on, because only this SYN is lost (RFC 1122 4.2.3.9).
        Soft = "soft",
        /// The attempt ends, because the peer cannot be reached: Linux, FreeBSD.
        Hard = "hard",
    }

    /// The effect of a SYN in the window of a connection.
    SynInWindow {
        /// Nothing: it is challenged (RFC 5961 4.2).
        Challenge = "challenge",
        /// It resets the connection (RFC 793): an attacker who guesses a number in the window ends it.
        Reset = "reset",
    }

    /// Which handshakes negotiate Explicit Congestion Notification (RFC 3168), and which its accurate feedback
    /// (RFC 9768). A peer that asks for accurate feedback accepts the other.
    EcnNegotiation {
        /// Those in which the peer asks for it: Linux, FreeBSD.
        Answer = "answer",
        /// These, accurate if the peer asks for that.
        AnswerAccurate = "answer-accurate",
        /// No handshake: ECE and CWR of a SYN are ignored.
        Off = "off",
        /// Those in which the peer asks for it, and those of `connect`.
        Ask = "ask",
        /// Those of `connect`, too, and accurate feedback if the peer asks for that.
        AskAnswerAccurate = "ask-answer-accurate",
        /// Those of `connect`, too, which asks for accurate feedback, as the peer may.
        AskAccurate = "ask-accurate",
    }

    /// The treatment of segments without the timestamps that were negotiated, resets excepted.
    MissingTimestamps {
        /// They are dropped in silence (RFC 7323 3.2), but for SYNs, which are challenged in any
        /// case (RFC 5961 4.2). A peer that leaves timestamps out is not heard.
        Drop = "drop",
        /// They are dropped, SYNs too: FreeBSD with `tolerate_missing_ts` at 0.
        DropSyn = "drop-syn",
        /// They are accepted: Linux, FreeBSD. A peer that omits timestamps from some segments is no longer
        /// protected by PAWS.
        Take = "take",
    }

    /// Which SYNs are answered by a cookie, so that no record is kept of them.
    SynCookies {
        /// Those that find the SYN cache full, of all or of their listener.
        Auto = "auto",
        /// All, but those of a flow in TIME-WAIT.
        Always = "always",
        /// None: a full SYN cache evicts an entry, the oldest of a few chosen unpredictably.
        Off = "off",
    }

    /// The rule by which the window follows the receive buffer.
    ReceiveWindow {
        /// The buffer, unrounded. A window grows by a full segment or half of the buffer at least (RFC 9293
        /// 3.8.6.2.2), so that no sender is led to small segments.
        Rfc9293 = "rfc9293",
        /// The buffer, rounded up to full segments when their size becomes known; every byte that was
        /// read is announced, while a full segment or a quarter of the buffer is free, rounded up to
        /// the unit of the window scale; what the buffer holds is taken, though the field may not be
        /// able to tell of it: FreeBSD.
        FullSegments = "full-segments",
    }

    /// The meaning of a buffer size that an application sets, and the effect on it of the metrics `sendpipe`
    /// and `recvpipe` of a route.
    BufferPolicy {
        /// A floor: the buffer is at least so large, and grows as the path needs it. A route can only
        /// raise it.
        Floor = "floor",
        /// The size, for good: Linux, FreeBSD. Where none is asked for, the buffer grows, and a route can
        /// raise its floor.
        Exact = "exact",
        /// The size, for good, unless the route says another: that replaces it, be it less. 4.4BSD, and
        /// FreeBSD until 1998.
        Route = "route",
    }

    /// The form in which `getsockopt` returns the size of a buffer.
    ToldBuffers {
        /// Twice the bytes that it holds: Linux, which counts its own overhead.
        Doubled = "doubled",
        /// As it was set: FreeBSD, macOS, illumos.
        AsSet = "as-set",
    }

    /// The method by which initial sequence numbers are chosen.
    Isn {
        /// A keyed hash of the flow and a clock (RFC 6528): no flow's number tells another's, and
        /// one flow's only grow.
        Rfc6528 = "rfc6528",
        /// One counter for the host: `isn.step` more with each connection, a random 1 to 131,072
        /// that is not kept, and 244,141 more each second. As illumos with `tcp_strong_iss` 1: at
        /// some hundred connections a second the next SYN of a port looks old.
        HostWide = "host-wide",
        /// One counter for the host: `isn.step` more with each connection, and twice `isn.step`
        /// more each second. As illumos with `tcp_strong_iss` 0. Anybody can guess the next.
        HostWidePlain = "host-wide-plain",
    }

    /// Which TIME-WAITs of its own `connect` may end to take their ports, where no other is free.
    PortReuse {
        /// Those of connections with timestamps, some time after their last segment.
        Timestamped = "on",
        /// Of those the ones towards this host itself: Linux.
        Loopback = "loopback",
        /// None: FreeBSD, illumos, lwIP, macOS.
        Never = "off",
    }

    /// The order of reused ports towards a peer that refuses connections from them, as one does whose TIME-WAIT
    /// refuses their SYNs.
    RefusedPorts {
        /// The client remembers such a peer. Ports used before are taken last, and of those the one released
        /// first.
        Last = "last",
        /// The client does not remember such a peer, and all free ports are alike. All other stacks.
        Forget = "forget",
    }

    /// The order in which ephemeral ports are tried.
    PortOrder {
        /// One after the other for each destination, from a secret start (RFC 6056 3.3.4).
        DoubleHash = "double-hash",
        /// From a random port on (RFC 6056 3.3.1): FreeBSD since 5, illumos.
        Random = "random",
        /// One after the other for all destinations (RFC 6056 2.2): 4.4BSD, lwIP, macOS.
        /// Anybody can guess the next.
        Sequential = "sequential",
        /// As double-hash, but the first port and every second after it before the others: Linux. Since 5.18 that also
        /// leaves out up to seven ports after each, and goes on from another place every ten seconds; this does not.
        EvenFirst = "even-first",
    }
}

impl EcnNegotiation {
    /// True if `connect` asks for ECN.
    pub const fn asks(self) -> bool {
        matches!(self, Self::Ask | Self::AskAnswerAccurate | Self::AskAccurate)
    }

    /// True if a peer that asks for accurate feedback gets it.
    pub const fn answers_accurate(self) -> bool {
        matches!(self, Self::AnswerAccurate | Self::AskAnswerAccurate | Self::AskAccurate)
    }
}
