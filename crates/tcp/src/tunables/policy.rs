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

    /// What a SYN is answered that does not open a flow in TIME-WAIT again.
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
        /// One at RCV.NXT, within a second of our challenge of a SYN: nobody else's could be it
        /// (RFC 1337).
        Challenged = "challenged",
        /// None ends it before 2 MSL are over: FreeBSD, gVisor, lwIP.
        Ignore = "ignore",
        /// One at RCV.NXT: Linux.
        AtRcvNxt = "at-rcv-nxt",
        /// Any in the window, as RFC 9293 3.10.7.4 has it: illumos, smoltcp. Whoever guesses a number in the
        /// window assassinates TIME-WAIT (RFC 1337).
        End = "end",
    }

    /// What an empty segment at RCV.NXT is answered in TIME-WAIT.
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
        /// At once: Linux, FreeBSD. Whoever guesses a number in flight makes segments small.
        Immediate = "immediate",
    }

    /// What a station is answered that says, unasked, that it is a neighbour which another was
    /// confirmed to be.
    NeighbourClaims {
        /// The one known is asked first, and gives way if it is silent for a second: whoever can
        /// send one frame takes over nobody's traffic.
        Verify = "verify",
        /// It is believed (RFC 4861 7.2.5, RFC 826): FreeBSD, and Linux a second after the last
        /// confirmation.
        Replace = "replace",
    }

    /// Which reset ends a connection or a handshake. One outside the window never does.
    RstInWindow {
        /// One at RCV.NXT; elsewhere in the window it is challenged (RFC 5961 3.2).
        AtRcvNxt = "at-rcv-nxt",
        /// Any in the window (RFC 793): whoever guesses one number of some thousands ends it.
        Any = "any",
    }

    /// What a reset that ends CLOSE-WAIT means to the application, whose peer sent its end before.
    RstInCloseWait {
        /// That nobody takes what could still be sent (`EPIPE`): Linux.
        Pipe = "pipe",
        /// The same as in other states (`ECONNRESET`): FreeBSD.
        Reset = "reset",
    }

    /// What it means to an attempt to open that somebody forbids it, as an ICMP error says.
    ProhibitedByIcmp {
        /// That the peer cannot be reached (`EHOSTUNREACH`): Linux.
        Unreachable = "unreachable",
        /// That the attempt is refused (`ECONNREFUSED`): FreeBSD.
        Refused = "refused",
    }

    /// What it means to an attempt to open that there is no way to the peer now, or that somebody did not
    /// understand its SYN, as an ICMP error says.
    UnreachableByIcmp {
        /// That this SYN did not arrive; others may (RFC 1122 4.2.3.9): FreeBSD.
        Soft = "soft",
        /// That the attempt is over, as after any other ICMP error: Linux.
        Hard = "hard",
    }

    /// Whether `SO_ERROR` tells of ICMP errors that a connection outlives.
    SoftErrors {
        /// Once, while nothing was acknowledged since: Linux.
        Told = "told",
        /// Only if the connection times out, as the error that it ends with: FreeBSD.
        Kept = "kept",
    }

    /// What text is answered that comes when the application has shut both directions down and still
    /// holds the socket.
    TextAfterShutdown {
        /// A reset, which ends the connection, as after `close` (RFC 9293 3.6.1): Linux.
        Reset = "reset",
        /// An acknowledgment: FreeBSD, which resets only what nobody holds any more.
        Take = "take",
    }

    /// What it means to an attempt to open that its SYN's hop limit ran out, as an ICMP error says.
    TimeExceededByIcmp {
        /// That this SYN did not arrive; others may (RFC 1122 4.2.3.9).
        Soft = "soft",
        /// That the peer cannot be reached, which ends the attempt: Linux, FreeBSD.
        Hard = "hard",
    }

    /// What a SYN in the window of a connection does.
    SynInWindow {
        /// Nothing: it is challenged (RFC 5961 4.2).
        Challenge = "challenge",
        /// It resets the connection (RFC 793): whoever guesses a number in the window ends it.
        Reset = "reset",
    }

    /// What becomes of segments without the timestamps that were negotiated, resets excepted.
    MissingTimestamps {
        /// They are dropped in silence (RFC 7323 3.2), but for SYNs, which are challenged in any
        /// case (RFC 5961 4.2). A peer that leaves timestamps out is not heard.
        Drop = "drop",
        /// They are dropped, SYNs too: FreeBSD with `tolerate_missing_ts` at 0.
        DropSyn = "drop-syn",
        /// They are taken as they are: Linux, FreeBSD. A peer that sends some with and some without is no
        /// longer protected by PAWS.
        Take = "take",
    }

    /// Which SYNs are answered by a cookie, so that no record is kept of them.
    SynCookies {
        /// Those that find the SYN cache full, of all or of their listener.
        Auto = "auto",
        /// All, but those of a flow in TIME-WAIT.
        Always = "always",
        /// None: a full SYN cache evicts an entry, the oldest of some that nobody can foresee.
        Off = "off",
    }

    /// How the window follows the receive buffer.
    ReceiveWindow {
        /// The buffer as it is; a window grows by a full segment or half of the buffer at least
        /// (RFC 9293 3.8.6.2.2), so that no sender is led to small segments.
        Rfc9293 = "rfc9293",
        /// The buffer, rounded up to full segments when their size becomes known; every byte that was
        /// read is announced, while a full segment or a quarter of the buffer is free, rounded up to
        /// the unit of the window scale; what the buffer holds is taken, though the field may not be
        /// able to tell of it: FreeBSD.
        FullSegments = "full-segments",
    }

    /// What an application's size of a buffer means, and what the metrics `sendpipe` and `recvpipe` of a
    /// route do to it.
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

    /// How `getsockopt` tells the size of a buffer.
    ToldBuffers {
        /// Twice the bytes that it holds: Linux, which counts its own overhead.
        Doubled = "doubled",
        /// As it was set: FreeBSD, macOS, illumos.
        AsSet = "as-set",
    }

    /// How initial sequence numbers are chosen.
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

    /// Whether a client remembers that a peer refuses connections from ports that came back, as one does
    /// whose TIME-WAIT turns their SYNs away.
    RefusedPorts {
        /// It does: ports that came back are taken last, and of those the one that did first.
        Last = "last",
        /// It does not: all free ports are alike. All other stacks.
        Forget = "forget",
    }

    /// In which order ephemeral ports are tried.
    PortOrder {
        /// One after the other for each destination, from a secret start (RFC 6056 3.3.4).
        DoubleHash = "double-hash",
        /// From a random port on (RFC 6056 3.3.1): FreeBSD since 5, illumos.
        Random = "random",
        /// One after the other for all destinations (RFC 6056 2.2): 4.4BSD, lwIP, macOS.
        /// Anybody can guess the next.
        Sequential = "sequential",
        /// As double-hash, but the first port and every second after it before the others: Linux.
        EvenFirst = "even-first",
    }
}
