//! The rules of one stack: one table, and everything that follows from it.
//!
//! A tunable is one entry of the table at the end of this file. From it come the field of
//! [`Tunables`] with its documentation and default, what [`Tunables::validate`] checks, its line of
//! [`TUNABLES`], how [`Tunables::set_by_name`] reads it, and its section of the reference page.
//!
//! Names are Linux' where Linux has one for the same thing; aliases are what other systems call it,
//! each read with the unit that it has there.

use core::time::Duration;

use whimbrel_base::tunables::{Reading, Unit};
use whimbrel_base::{Micros, ReservedPorts, tunables};
use whimbrel_wire::tcp::OptionOrder;
use whimbrel_wire::{Address, Mss};

mod by_name;
mod groups;
mod policy;
mod syn_retry;
mod validation;

pub use self::groups::TUNABLE_GROUPS;
pub use self::policy::{
    AnswerInTimeWait, BufferPolicy, CongestionAlgorithm, EmptyInTimeWait, FragNeeded, Isn,
    MissingTimestamps, NeighbourClaims, PortOrder, PortReuse, ProhibitedByIcmp, ReceiveWindow,
    RefusedPorts, RstInCloseWait, RstInTimeWait, RstInWindow, SoftErrors, SynCookies,
    SynInTimeWait, SynInWindow, TextAfterShutdown, TimeExceededByIcmp, ToldBuffers,
    UnreachableByIcmp,
};
pub use self::syn_retry::SynRetry;

impl Tunables {
    /// The MSS of a peer that announces none.
    pub fn default_mss(&self, peer: &Address) -> Mss {
        Mss::new(if peer.is_v4() { self.default_mss_v4 } else { self.default_mss_v6 })
    }
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What is known of one of [`TUNABLES`].
pub type TunableInfo = tunables::TunableInfo<Tunables>;

tunables! {
    /// The rules in force. Plain values, which hot paths read as they are.
    pub struct Tunables in TUNABLES, with TUNABLE_GROUPS;

    /// What a size means that an application asks for (`SO_SNDBUF`, `SO_RCVBUF`), and what the route says
    /// of buffers.
    buffers: BufferPolicy = BufferPolicy::Floor, "buffers", BufferPolicy::UNIT => {
        rfc: "RFC 9293 3.8.6";
    }

    /// The size of a new connection's send buffer, where its application asks for none: it grows from
    /// there with what may be in flight.
    send_buffer: u32 = 256 << 10, "buffers.send", Unit::Octets => {
        also: "net.inet.tcp.sendspace", "tcp_xmit_hiwat", "TCP_SND_BUF";
        range: 2 << 10 ..= 1 << 30;
        rfc: "RFC 9293 3.8.6.2.1";
        low: "less than bandwidth x delay starves the path.";
        high: "memory that a slow peer can pin.";
    }

    /// The largest send buffer that a connection comes to have by itself: twice what may be in flight is
    /// what it has, if its floor is less.
    send_buffer_max: u32 = 64 << 20, "buffers.send.max", Unit::Octets => {
        also: "net.core.wmem_max", "net.inet.tcp.sendbuf_max";
        range: 2 << 10 ..= 1 << 30;
        rfc: "RFC 9293 3.8.6.2.1";
        low: "a path with more under way runs dry each round trip.";
        high: "memory that a slow peer can pin.";
    }

    /// Send buffers grow by themselves, up to `buffers.send.max`, and come back.
    send_auto: bool = true, "buffers.send.auto", Unit::Switch => {
        also: "net.inet.tcp.sendbuf_auto";
        rfc: "RFC 9293 3.8.6.2.1";
        low: "a path runs at what was asked for in each round trip.";
        high: "nothing, but more text on its way when an application breaks off.";
    }

    /// The size of a new connection's receive buffer, where its application asks for none, and so the
    /// window that it announces at first: it grows from there with what the application reads in a round
    /// trip. Memory is held by what arrives, not by the size.
    recv_buffer: u32 = 256 << 10, "buffers.recv", Unit::Octets => {
        also: "net.inet.tcp.recvspace", "tcp_recv_hiwat", "TCP_WND";
        range: 2 << 10 ..= 1 << 30;
        rfc: "RFC 9293 3.8.6.2.2";
        low: "less than bandwidth x delay starves the path.";
        high: "memory that a fast peer can pin.";
    }

    /// The largest receive buffer that a connection comes to have by itself: the window scale is chosen
    /// for it, once and for all, also where an application asks for less.
    recv_buffer_max: u32 = 64 << 20, "buffers.recv.max", Unit::Octets => {
        also: "net.core.rmem_max", "net.inet.tcp.recvbuf_max", "kern.ipc.maxsockbuf";
        range: 2 << 10 ..= 1 << 30;
        rfc: "RFC 7323 2.3";
        low: "a buffer that is enlarged later cannot be announced whole.";
        high: "windows in steps of up to 16 KiB.";
    }

    /// Receive buffers grow by themselves, up to `buffers.recv.max`, where the application reads as
    /// fast as text comes.
    recv_auto: bool = true, "net.ipv4.tcp_moderate_rcvbuf", Unit::Switch => {
        also: "net.inet.tcp.recvbuf_auto";
        rfc: "RFC 9293 3.8.6.2.2";
        low: "a path runs at what was asked for in each round trip.";
        high: "nothing: a reader that falls behind has no more than it had.";
    }

    /// What a shard may hold for its peers and applications: the memory behind text that was not
    /// read, text that was not acknowledged, and records. From 75 % on no buffer grows by itself; from
    /// 90 % on those that grew come back to what was asked for as they drain, text out of order is
    /// refused, and more text of whoever does not read; from 100 % on each connection gets four segments of window
    /// and an initial window of send buffer, half-open ones become cookies (unless those are off:
    /// they have a bound of their own), and a record in TIME-WAIT goes for each that comes.
    mem_budget: u64 = 1 << 30, "mem.budget", Unit::Octets => {
        range: 1 << 20 ..= 1 << 42;
        rfc: "RFC 9293 3.8.6.2.2";
        low: "a few fast peers slow all others down.";
        high: "the system ends the process before the shard slows anybody down.";
    }

    /// How `getsockopt` tells the sizes of buffers.
    told_buffers: ToldBuffers = ToldBuffers::Doubled, "buffers.told", ToldBuffers::UNIT => {}

    /// How the window follows the receive buffer.
    recv_window: ReceiveWindow = ReceiveWindow::Rfc9293, "recv.window", ReceiveWindow::UNIT => {
        rfc: "RFC 9293 3.8.6.2.2";
    }

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

    /// What becomes of segments without the timestamps that were negotiated.
    missing_timestamps: MissingTimestamps = MissingTimestamps::Drop, "timestamps.missing",
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

    /// The first retransmission time-out of a SYN or SYN-ACK.
    initial_rto: Duration = secs(1), "initial_rto", Unit::Time => {
        also: "net.inet.tcp.rexmit_initial" (Reading::Millis),
            "tcp_rexmit_interval_initial" (Reading::MillisAndEighth),
            "LWIP_TCP_RTO_TIME" (Reading::Millis);
        range: millis(1) ..= secs(60);
        rfc: "RFC 6298 2.1";
        low: "SYNs are repeated needlessly on long paths.";
        high: "a lost SYN delays its connection by as much.";
    }

    /// The least retransmission time-out, and the least by which it exceeds SRTT. RFC 6298 2.4 says that 1 s should be the minimum; 200 ms
    /// is what Linux has shown to work with fine clocks and acknowledgments that are delayed by at
    /// most 200 ms.
    min_rto: Micros = Micros::from_millis(200),
        "net.ipv4.tcp_rto_min_us" (Reading::Micros), Unit::Time => {
        also: "net.inet.tcp.rexmit_min" (Reading::Millis),
            "net.inet.tcp.rexmit_slop" (Reading::Millis),
            "tcp_rexmit_interval_min" (Reading::Millis);
        range: Micros::from_millis(1) ..= Micros::from_millis(60_000);
        rfc: "RFC 6298 2.4";
        low: "a delayed acknowledgment counts as a loss.";
        high: "the last segment's loss delays its stream by as much.";
    }

    /// A loss probe asks for what was lost at the end of a burst.
    loss_probe: bool = true, "tail_loss_probe", Unit::Switch => {
        also: "net.ipv4.tcp_early_retrans"
            (Reading::Words(&[("0", "0"), ("3", "1"), ("4", "1")]));
        rfc: "RFC 8985 7";
        low: "the end of a burst that was lost is repaired after a time-out.";
        high: "a probe may repeat what the peer has already.";
    }

    /// The greatest retransmission time-out.
    max_rto: Micros = Micros::from_millis(60_000),
        "net.ipv4.tcp_rto_max_ms" (Reading::Millis), Unit::Time => {
        also: "tcp_rexmit_interval_max" (Reading::Millis);
        range: Micros::from_millis(1_000) ..= Micros::from_millis(240_000);
        rfc: "RFC 6298 2.5";
        low: "a dead path is filled with retransmissions, and given up early.";
        high: "a path that comes back waits for the next retransmission.";
    }

    /// How long an attempt to open may last at most, beside `net.ipv4.tcp_syn_retries`; 0: no
    /// longer limit. What an application sets as user time-out comes before it.
    connect_timeout: Duration = Duration::ZERO, "connect_timeout", Unit::Time => {
        also: "net.inet.tcp.keepinit" (Reading::Millis),
            "tcp_ip_abort_cinterval" (Reading::Millis);
        range: Duration::ZERO ..= secs(3600);
        rfc: "RFC 9293 3.8.3";
        low: "a lost SYN or two fail the connection; R2 for a SYN is at least 3 minutes there.";
        high: "an application waits for long to hear that nobody is there.";
    }

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

    /// The first slow start ends where the round trip grows, before anything is lost (HyStart++).
    hystart: bool = true, "hystart", Unit::Switch => {
        rfc: "RFC 9406";
        low: "the first slow start ends in losses, up to half of what is in flight.";
        high: "nothing, unless a round trip grows for another reason than a queue.";
    }

    /// A connection that sent nothing for longer than a retransmission time-out begins again with the
    /// initial window.
    slow_start_after_idle: bool = true, "net.ipv4.tcp_slow_start_after_idle", Unit::Switch => {
        rfc: "RFC 5681 4.1";
        low: "a burst of all that the path once carried meets what it is now.";
        high: "each pause costs some round trips.";
    }

    /// How often a SYN is repeated before `connect` times out: 6 doublings from 1 s to 60 s are 123 s.
    syn_retries: u8 = 6, "net.ipv4.tcp_syn_retries", Unit::Count("repetitions") => {
        also: "TCP_SYNMAXRTX";
        range: 0 ..= 30;
        rfc: "RFC 9293 3.8.3";
        low: "a lost SYN or two fail the connection; R2 for a SYN is at least 3 minutes there.";
        high: "an application waits for hours to hear that nobody is there.";
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
        low: "whoever meets TIME-WAIT of a careful server waits for a second.";
        high: "one SYN more for a peer whose TIME-WAIT no reset ends.";
    }

    /// How often a SYN-ACK is repeated before the half-open entry is dropped: 5 doublings from 1 s
    /// are 63 s.
    synack_retries: u8 = 5, "net.ipv4.tcp_synack_retries", Unit::Count("repetitions") => {
        also: "net.inet.tcp.syncache.rexmtlimit";
        range: 0 ..= 30;
        rfc: "RFC 9293 3.8.3";
        low: "a lost SYN-ACK or two fail the connection.";
        high: "forged SYNs fill the SYN cache for longer.";
    }

    /// How often data is retransmitted before the connection times out: 15 doublings from 200 ms
    /// to 60 s are about 9 minutes.
    retries: u8 = 15, "net.ipv4.tcp_retries2", Unit::Count("retransmissions") => {
        also: "net.inet.tcp.retries", "TCP_MAXRTX";
        range: 1 ..= 30;
        rfc: "RFC 9293 3.8.3";
        low: "a short outage ends connections; R2 is to be 100 s at least.";
        high: "dead connections are held for long.";
    }

    /// How long text may wait for an acknowledgment before its connection times out (R2 in time), where its
    /// application does not say; 0: `net.ipv4.tcp_retries2` and `net.ipv4.tcp_orphan_retries` say. The first
    /// time-out never ends a connection, and what opens one has limits of its own.
    user_timeout: Duration = Duration::ZERO, "user_timeout", Unit::Time => {
        also: "tcp_ip_abort_interval" (Reading::Millis);
        range: Duration::ZERO ..= secs(86_400);
        rfc: "RFC 9293 3.8.3, RFC 5482 3";
        low: "a short outage ends connections; R2 is to be 100 s at least.";
        high: "dead connections are held for long.";
    }

    /// After how many unanswered retransmissions the path itself is doubted: the neighbour is asked
    /// for anew, as RFC 9293's R1 has it.
    doubt_after: u8 = 3, "net.ipv4.tcp_retries1", Unit::Count("retransmissions") => {
        range: 1 ..= 30;
        rfc: "RFC 9293 3.8.3";
        low: "questions to the link for each loss; R1 is to be 3 at least.";
        high: "a router that was replaced is noticed late.";
    }

    /// How often the data of a closed connection without an owner is retransmitted. As many probes
    /// of a window that stays closed end it, answered or not, once they are `net.ipv4.tcp_rto_max_ms`
    /// apart.
    orphan_retries: u8 = 8, "net.ipv4.tcp_orphan_retries", Unit::Count("retransmissions") => {
        range: 0 ..= 30;
        low: "the end of what was sent is lost with one segment.";
        high: "memory for peers that left.";
    }

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
        high: "nothing, but where a middlebox loses the text beside a FIN.";
    }

    /// How many segments may await one acknowledgment. RFC 9293: "an ACK SHOULD be generated for at
    /// least every second full-sized segment".
    ack_every: u8 = 2, "ack_every", Unit::Count("segments") => {
        also: "net.inet.tcp.delayed_ack" (Reading::Words(&[("0", "1"), ("1", "2")])),
            "tcp_deferred_acks_max";
        range: 1 ..= 16;
        rfc: "RFC 9293 3.8.6.3";
        low: "twice the acknowledgments.";
        high: "the peer's window opens in bursts, and slowly.";
    }

    /// How long a connection without an owner waits in FIN-WAIT-2 for the peer's FIN.
    fin_timeout: Duration = secs(60), "net.ipv4.tcp_fin_timeout" (Reading::Seconds), Unit::Time => {
        also: "net.inet.tcp.finwait2_timeout" (Reading::Millis),
            "tcp_fin_wait_2_flush_interval" (Reading::Millis);
        range: secs(1) ..= secs(3600);
        low: "a slow peer's last data is answered by a reset.";
        high: "connections are held for peers that never close.";
    }

    /// How long a connection may be silent before it is probed, if its application asked for
    /// keep-alive. RFC 9293: it "MUST default to no less than two hours".
    keepalive_time: Duration = secs(7200), "net.ipv4.tcp_keepalive_time" (Reading::Seconds),
    Unit::Time => {
        also: "net.inet.tcp.keepidle" (Reading::Millis),
            "tcp_keepalive_interval" (Reading::Millis),
            "TCP_KEEPIDLE_DEFAULT" (Reading::Millis);
        range: secs(1) ..= secs(32_767);
        rfc: "RFC 9293 3.8.4";
        low: "traffic, and connections that a short outage ends.";
        high: "a middlebox forgets the connection first.";
    }

    /// The time between two probes.
    keepalive_interval: Duration = secs(75), "net.ipv4.tcp_keepalive_intvl" (Reading::Seconds),
    Unit::Time => {
        also: "net.inet.tcp.keepintvl" (Reading::Millis), "TCP_KEEPINTVL_DEFAULT" (Reading::Millis);
        range: secs(1) ..= secs(32_767);
        rfc: "RFC 9293 3.8.4";
        low: "a short outage looks like a dead peer.";
        high: "a dead peer is noticed late.";
    }

    /// How many unanswered probes end the connection.
    keepalive_probes: u8 = 9, "net.ipv4.tcp_keepalive_probes", Unit::Count("probes") => {
        also: "net.inet.tcp.keepcnt", "TCP_KEEPCNT_DEFAULT";
        range: 1 ..= 127;
        rfc: "RFC 9293 3.8.4";
        low: "one lost probe ends a connection, which RFC 9293 forbids.";
        high: "a dead peer is noticed late.";
    }

    /// The maximum segment lifetime towards hosts beyond a router: TIME-WAIT lasts twice this. 60 s
    /// is half of what RFC 9293 assumes, and what is deployed. A change counts for records that
    /// wait already.
    msl_remote: Duration = secs(60), "msl.remote", Unit::Time => {
        range: Duration::ZERO ..= secs(255);
        rfc: "RFC 9293 3.4.2";
        low: "an old duplicate can meet a new connection of the same ports.";
        high: "memory; and ports, where the peer judges a new SYN by the wait alone.";
    }

    /// The same towards hosts on a directly connected network.
    msl_link: Duration = secs(10), "msl.link", Unit::Time => {
        range: Duration::ZERO ..= secs(255);
        rfc: "RFC 9293 3.4.2";
        low: "an old duplicate can meet a new connection of the same ports.";
        high: "memory.";
    }

    /// The same towards this host itself.
    msl_loopback: Duration = secs(2), "msl.loopback", Unit::Time => {
        range: Duration::ZERO ..= secs(255);
        rfc: "RFC 9293 3.4.2";
        low: "an old duplicate can meet a new connection of the same ports.";
        high: "memory.";
    }

    /// A SYN that carries FIN opens nothing: a listener drops it, TIME-WAIT challenges it. Linux
    /// does so without asking. RFC 9293 3.10.7.2 does not drop it, nor does FreeBSD unless it is
    /// told: then the SYN counts, and the FIN is to come again.
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

    /// What a reset that ends CLOSE-WAIT means to the application.
    rst_close_wait: RstInCloseWait = RstInCloseWait::Pipe, "rst.close_wait", RstInCloseWait::UNIT => {
        rfc: "RFC 9293 3.10.7.4";
    }

    /// What text is answered that comes when both directions are shut down.
    text_after_shutdown: TextAfterShutdown = TextAfterShutdown::Reset, "shutdown.text",
    TextAfterShutdown::UNIT => {
        rfc: "RFC 9293 3.6.1";
    }

    /// What a SYN in the window of a connection does.
    syn_in_window: SynInWindow = SynInWindow::Challenge, "syn", SynInWindow::UNIT => {
        also: "net.inet.tcp.insecure_syn" (Reading::Words(&[("0", "challenge"), ("1", "reset")]));
        rfc: "RFC 5961 4.2";
    }

    /// Which SYN opens a flow in TIME-WAIT again.
    tw_syn: SynInTimeWait = SynInTimeWait::Rfc6191, "tw.syn", SynInTimeWait::UNIT => {
        rfc: "RFC 6191, RFC 9293 3.10.7.4, RFC 1122 4.2.2.13";
    }

    /// What a SYN is answered that does not.
    tw_answer: AnswerInTimeWait = AnswerInTimeWait::ChallengeAck, "tw.answer",
    AnswerInTimeWait::UNIT => {
        rfc: "RFC 9293 3.10.7.4";
    }

    /// Which reset ends a record in TIME-WAIT.
    tw_rst: RstInTimeWait = RstInTimeWait::Challenged, "tw.rst", RstInTimeWait::UNIT => {
        also: "net.ipv4.tcp_rfc1337" (Reading::Words(&[("1", "ignore"), ("0", "at-rcv-nxt")]));
        rfc: "RFC 1337";
    }

    /// What an empty segment at RCV.NXT is answered in TIME-WAIT. Others that are acceptable, or are
    /// not, are answered, the peer's FIN each time.
    tw_empty: EmptyInTimeWait = EmptyInTimeWait::Answer, "tw.empty", EmptyInTimeWait::UNIT => {
        rfc: "RFC 9293 3.10.7.4";
    }

    /// Whether `connect` may end TIME-WAITs of its own, of connections with timestamps, to take their
    /// ports: where no other port is free towards the peer, or none may be taken.
    tw_reuse: PortReuse = PortReuse::Timestamped, "net.ipv4.tcp_tw_reuse"
    (Reading::Words(&[("1", "on"), ("2", "loopback"), ("0", "off")])), PortReuse::UNIT => {
        rfc: "RFC 1122 4.2.2.13, RFC 7323 B.2, RFC 6191";
    }

    /// How long ago the last segment of a connection must be for that, towards hosts beyond a
    /// router. It is the peer's clock that must have ticked since: RFC 7323 allows one second.
    tw_reuse_delay_remote: Duration = secs(1), "tw.reuse_delay.remote", Unit::Time => {
        range: Duration::ZERO ..= secs(3600);
        rfc: "RFC 7323 5.4, B.2";
        low: "a peer whose timestamps tick slowly takes an old duplicate for new.";
        high: "fewer connections a second to one server: ports / this.";
    }

    /// The same towards hosts on a directly connected network.
    tw_reuse_delay_link: Duration = secs(1), "tw.reuse_delay.link", Unit::Time => {
        range: Duration::ZERO ..= secs(3600);
        rfc: "RFC 7323 5.4, B.2";
        low: "a peer whose timestamps tick slowly takes an old duplicate for new.";
        high: "fewer connections a second to one server: ports / this.";
    }

    /// The same towards this host itself.
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

    /// The most half-open entries in all, 64 bytes each.
    max_syn_entries: u32 = 64 << 10, "max_syn_entries", Unit::Count("entries") => {
        also: "net.ipv4.tcp_max_syn_backlog", "net.inet.tcp.syncache.cachelimit";
        range: 1 ..= 1 << 28;
        rfc: "RFC 4987 3.2";
        low: "a burst of clients is refused.";
        high: "memory that forged SYNs can pin.";
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

    /// How long a server's port is left alone after a SYN with Fast Open went unanswered there, or its
    /// text was not taken; doubled with each such failure in a row, up to 64 times as long. 0: not at
    /// all.
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

    /// The time to live, or hop limit, of packets with segments; what an application sets for a
    /// connection comes before it.
    hop_limit: u8 = 64, "net.ipv4.ip_default_ttl", Unit::Count("hops") => {
        also: "net.inet.ip.ttl", "net.inet6.ip6.hlim", "net.ipv6.conf.all.hop_limit",
            "IP_DEFAULT_TTL", "TCP_TTL";
        range: 1 ..= 255;
        rfc: "RFC 9293 3.9.2, RFC 1122 3.2.1.7";
        low: "packets expire before they are there.";
        high: "a loop of routes is fed for longer.";
    }

    /// The MSS of an IPv4 peer that announces none.
    default_mss_v4: u16 = 536, "mss.default.v4", Unit::Octets => {
        also: "net.inet.tcp.mssdflt", "tcp_mss_def_ipv4", "TCP_MSS";
        range: 48 ..= 65_495;
        rfc: "RFC 9293 3.7.1";
        low: "many small segments to peers of no options.";
        high: "more than such a peer can take.";
    }

    /// The MSS of an IPv6 peer that announces none.
    default_mss_v6: u16 = 1_220, "mss.default.v6", Unit::Octets => {
        also: "net.inet.tcp.v6mssdflt", "tcp_mss_def_ipv6";
        range: 48 ..= 65_475;
        rfc: "RFC 9293 3.7.1";
        low: "many small segments to peers of no options.";
        high: "more than such a peer can take.";
    }

    /// The least that segments are cut to, options included, whatever the peer announces or a
    /// router reports.
    least_mss: u16 = 48, "net.ipv4.tcp_min_snd_mss", Unit::Octets => {
        also: "net.inet.tcp.minmss";
        range: 48 ..= 536;
        rfc: "RFC 9293 3.7.1";
        low: "a peer makes us send headers for the most part (CVE-2019-11479).";
        high: "peers and paths that carry less get nothing.";
    }

    /// ICMP errors that call it hopeless end an attempt to open. Connections that are there outlive
    /// them in any case.
    icmp_aborts: bool = true, "icmp_aborts", Unit::Switch => {
        also: "net.inet.tcp.icmp_may_rst";
        rfc: "RFC 9293 3.9.2.2, RFC 5461";
        low: "an application waits for its SYNs to time out.";
        high: "whoever can guess the numbers of a SYN can end the attempt.";
    }

    /// When a router's report that a segment was too big lowers the path MTU.
    frag_needed: FragNeeded = FragNeeded::Verified, "icmp.frag_needed", FragNeeded::UNIT => {
        rfc: "RFC 5927 7.2";
    }

    /// What a station is answered that claims to be a neighbour which another was confirmed to be.
    neighbour_claims: NeighbourClaims = NeighbourClaims::Verify, "neighbours.claims",
    NeighbourClaims::UNIT => {
        rfc: "RFC 4861 7.2.5, RFC 826";
    }

    /// What it means to an attempt to open that somebody forbids it, while `icmp_aborts` is on.
    icmp_prohibited: ProhibitedByIcmp = ProhibitedByIcmp::Unreachable, "icmp.prohibited",
    ProhibitedByIcmp::UNIT => {
        rfc: "RFC 1122 4.2.3.9";
    }

    /// What it means to an attempt to open that its SYN's hop limit ran out, while `icmp_aborts` is on.
    icmp_time_exceeded: TimeExceededByIcmp = TimeExceededByIcmp::Soft, "icmp.time_exceeded",
    TimeExceededByIcmp::UNIT => {
        rfc: "RFC 1122 4.2.3.9, RFC 5461";
    }

    /// What it means to an attempt to open that there is no way to the peer, while `icmp_aborts` is on.
    icmp_unreachable: UnreachableByIcmp = UnreachableByIcmp::Soft, "icmp.unreachable",
    UnreachableByIcmp::UNIT => {
        rfc: "RFC 1122 4.2.3.9, RFC 5461";
    }

    /// Whether `SO_ERROR` tells of ICMP errors that a connection outlives.
    soft_errors: SoftErrors = SoftErrors::Told, "icmp.soft_errors", SoftErrors::UNIT => {
        rfc: "RFC 9293 3.9.1.8, 3.9.2.2";
    }

    /// The first ephemeral port.
    port_first: u16 = 32_768, "ports.first", Unit::Port => {
        also: "net.inet.ip.portrange.first", "tcp_smallest_anon_port",
            "TCP_LOCAL_PORT_RANGE_START";
        range: 1 ..= 65_535;
        rfc: "RFC 6056 3.2";
        low: "ports that servers of this host want are taken.";
        high: "few ports, which are used up towards one server.";
    }

    /// The last ephemeral port.
    port_last: u16 = 60_999, "ports.last", Unit::Port => {
        also: "net.inet.ip.portrange.last", "tcp_largest_anon_port", "TCP_LOCAL_PORT_RANGE_END";
        range: 1 ..= 65_535;
        rfc: "RFC 6056 3.2";
        low: "few ports, which are used up towards one server.";
        high: "nothing.";
    }

    /// Ports of the range that are never drawn: those of servers, as a rule. `bind` may name them.
    reserved_ports: ReservedPorts = ReservedPorts::NONE, "net.ipv4.ip_local_reserved_ports",
    Unit::Ports => {
        low: "a server that starts late finds its port taken.";
        high: "few ports, which are used up towards one server.";
    }

    /// In which order ephemeral ports are tried.
    port_order: PortOrder = PortOrder::DoubleHash, "ports", PortOrder::UNIT => {
        also: "net.inet.ip.portrange.randomized"
            (Reading::Words(&[("1", "random"), ("0", "sequential")]));
        rfc: "RFC 6056 3.3";
    }

    /// Whether a client remembers that a peer refuses connections from ports that came back. With our own
    /// initial sequence numbers such a port is refused again, until the peer forgets.
    refused_ports: RefusedPorts = RefusedPorts::Last, "ports.refused", RefusedPorts::UNIT => {
        rfc: "RFC 6056 3.3";
    }

    /// How initial sequence numbers are chosen.
    isn: Isn = Isn::Rfc6528, "isn", Isn::UNIT => {
        also: "tcp_strong_iss"
            (Reading::Words(&[("0", "host-wide-plain"), ("1", "host-wide"), ("2", "rfc6528")]));
        rfc: "RFC 6528, RFC 9293 3.4.1";
    }

    /// The time that one increment of the ISN clock takes, under `isn=rfc6528`. At 256 ns it gains
    /// 3.9 MB/s and is half round after 550 s, beyond twice the longest usual TIME-WAIT; RFC 9293
    /// suggests 4 us.
    isn_tick_nanos: u32 = 256, "isn.tick", Unit::Nanos => {
        range: 1 ..= 1_000_000;
        rfc: "RFC 9293 3.4.1";
        low: "it is half round within TIME-WAIT, and the next SYN looks old.";
        high: "a fast upload outruns it, and the next connection's SYN looks old.";
    }

    /// What each connection adds to the counter, under `isn=host-wide` and `isn=host-wide-plain`.
    isn_step: u32 = 125_000, "isn.step", Unit::Count("octets") => {
        also: "tcp_iss_incr" (Reading::Twice);
        range: 1 ..= 1 << 24;
        rfc: "RFC 6528 2";
        low: "connections that follow each other share sequence numbers.";
        high: "the counter is half round within TIME-WAIT at fewer connections a second.";
    }

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

    /// How many challenge acknowledgments a connection may send in quick succession. RFC 5961 has 10
    /// in 5 s for the whole host; here each connection has them.
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
}

#[cfg(test)]
mod tests;
