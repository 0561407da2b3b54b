//! A connection as `ss` and `TCP_INFO` show it: copied out at one moment, nothing changed.

use core::num::NonZeroU64;
use core::time::Duration;

use whimbrel_base::packet::SoftError;
use whimbrel_base::{Instant, Micros};
use whimbrel_recovery::CaState;
use whimbrel_recovery::cc::Algorithm;
use whimbrel_wire::WindowScale;

use crate::Tunables;
use crate::conn::{Connection, Flags, Limit, Nagle, State, Tally, TcpInfoCounts};
use crate::recv::RecvSequence;
use crate::send::SendSequence;
use crate::verdict::CloseReason;

/// The variables of one connection at one moment.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its state of RFC 9293 3.3.2.
    pub state: State,
    /// Why it is over, once it is.
    pub closed: Option<CloseReason>,
    /// The peer's FIN was taken.
    pub fin_received: bool,
    /// Our FIN is sent or to be sent, and not acknowledged.
    pub fin_unacked: bool,
    /// The send sequence variables.
    pub snd: SendSequence,
    /// The receive sequence variables.
    pub rcv: RecvSequence,
    /// The scales of the peer's windows and of ours, if scaling was negotiated (while opening:
    /// offered) and one of them is not 0.
    pub scales: Option<(WindowScale, WindowScale)>,
    /// Timestamps were negotiated (while opening: offered).
    pub timestamps: bool,
    /// Selective acknowledgments were negotiated (RFC 2018 2).
    pub sack: bool,
    /// Explicit congestion notification was negotiated (RFC 3168; while opening: asked for).
    pub ecn: bool,
    /// The peer's SYN opened it at once (Fast Open), and our own is not acknowledged yet: it can be
    /// read and written all the same.
    pub early: bool,
    /// Text of a SYN arrived, of ours or of the peer's (Fast Open).
    pub syn_data: bool,
    /// Nagle's algorithm is off.
    pub no_delay: bool,
    /// The connection is probed when it is silent.
    pub keep_alive: bool,
    /// The peer's closed window is being probed.
    pub persist: bool,
    /// Bytes of text in a full segment.
    pub mss: u16,
    /// The MSS that we announced.
    pub advertised_mss: u16,
    /// cwnd (RFC 5681 2): how many bytes may be in flight.
    pub cwnd: u32,
    /// ssthresh, bytes; `u32::MAX` before the first loss.
    pub ssthresh: u32,
    /// The congestion control that sets them.
    pub congestion_control: Algorithm,
    /// The state of loss recovery.
    pub ca_state: CaState,
    /// Bytes that are thought to be in the network: RFC 6675's pipe.
    pub pipe: u32,
    /// Bytes in flight that were taken for lost, whether they were sent again since or not.
    pub lost: u32,
    /// Full segments beyond SND.UNA that the peer is known to hold.
    pub sacked: u32,
    /// The number of bytes of the lost were sent again.
    pub sent_again: u32,
    /// SRTT, if there was a measurement.
    pub srtt: Option<Duration>,
    /// RTTVAR (RFC 6298 2): how much round trips vary; zero before the first measurement.
    pub rttvar: Duration,
    /// RTO, doubled for each time-out since the last acknowledgment of new data.
    pub rto: Duration,
    /// The number of time-outs doubled RTO.
    pub backoff: u8,
    /// The number of times that the retransmission timer ran out in a row: retransmissions without progress, or
    /// unanswered probes of a closed window.
    pub attempts: u8,
    /// Unanswered keep-alive probes in a row.
    pub keep_alive_probes: u8,
    /// Why segments did not arrive, as a host on the path last reported; forgotten when new data is
    /// acknowledged (RFC 9293 3.9.1.8).
    pub soft_error: Option<SoftError>,
    /// Bytes that can be read.
    pub unread: u32,
    /// Bytes of text in the send buffer, acknowledged ones excluded.
    pub send_queued: u32,
    /// Bytes of text that were never sent.
    pub unsent: u32,
    /// The size of the send buffer, bytes.
    pub send_size: u32,
    /// The size of the receive buffer, bytes.
    pub recv_size: u32,
    /// The largest window that may be announced, bytes.
    pub recv_limit: u32,
    /// The most bytes that may wait to be sent for the first time: what was set, or a share while many wait;
    /// `None`: what the send buffer holds.
    pub unsent_most: Option<u32>,
    /// Bytes per second at which text leaves: the congestion control's rate, or the window's in each round trip, at
    /// most `max_pacing_rate`. Of a flow that is not paced, the rate that it would have. `None` before a round trip
    /// of a millisecond or more was measured, which pacing takes.
    pub pacing_rate: Option<u64>,
    /// The most of that which was set, bytes per second (`SO_MAX_PACING_RATE`).
    pub max_pacing_rate: Option<NonZeroU64>,
    /// The time for which what keeps the sender from sending more ([`Tally::limit`]) has held; 0 if it is the
    /// application.
    pub limit_held: Duration,
    /// Counts since the connection began.
    pub tally: Tally,
    /// Counts of retransmissions and time-outs, and other rare ones.
    pub info_counts: TcpInfoCounts,
}

impl Snapshot {
    /// Bytes of send buffer that are free.
    pub const fn send_room(&self) -> u32 {
        self.send_size.saturating_sub(self.send_queued)
    }

    /// The time for which this limit held, to a millisecond.
    pub fn limited(&self, limit: Limit) -> Duration {
        let millis = match limit {
            Limit::Network => self.tally.network_limited(),
            Limit::Application | Limit::Window | Limit::Buffer => self.info_counts.limited(limit),
        };
        Duration::from_millis(u64::from(millis))
    }

    /// Bytes of text that were sent and not acknowledged.
    pub const fn unacked_text(&self) -> u32 {
        self.send_queued - self.unsent
    }
}

impl Connection {
    /// Copies its variables; times in them are as of `now`.
    pub fn snapshot(&self, now: Instant, tunables: &Tunables) -> Snapshot {
        let (sender, tally) = (&self.transfer.tcb.sender, self.transfer.tcb.tally(now));
        let mss = u32::from(sender.mss());
        let flight = self.transfer.tcb.queue().map(|queue| (&queue.flight, &queue.recovery));
        let repaired = flight.map_or(0, |(flight, _)| flight.repaired() as u32);
        let lost = flight.map_or(0, |(flight, _)| flight.lost().bytes() as u32);
        Snapshot {
            state: self.transfer.tcb.state,
            closed: self.transfer.tcb.closed,
            fin_received: self.transfer.tcb.receiver.fin_received(),
            fin_unacked: sender.fin_queued(),
            snd: *sender.seq(),
            rcv: *self.transfer.tcb.receiver.seq(),
            scales: self
                .transfer
                .tcb
                .scaling()
                .then_some((sender.scale(), self.transfer.tcb.receiver.scale())),
            timestamps: self.transfer.tcb.flags.has(Flags::TIMESTAMPS),
            sack: self.transfer.tcb.flags.has(Flags::SACK),
            ecn: self.transfer.tcb.flags.has(Flags::ECN),
            early: self.transfer.tcb.is_early(),
            syn_data: self.has_syn_data(),
            no_delay: sender.nagle() == Nagle::Off,
            keep_alive: self.transfer.tcb.flags.has(Flags::KEEP_ALIVE),
            persist: sender.is_persisting(),
            mss: sender.mss(),
            advertised_mss: self.transfer.tcb.receiver.advertised_mss(),
            cwnd: sender.cwnd(),
            ssthresh: sender.ssthresh(),
            congestion_control: sender.algorithm(),
            ca_state: flight.map_or(CaState::Open, |(flight, recovery)| recovery.ca_state(flight)),
            pipe: sender.pipe(self.transfer.tcb.queue()),
            lost: lost + repaired,
            sacked: flight.map_or(0, |(flight, recovery)| recovery.segs_sacked(flight, mss)),
            sent_again: repaired,
            srtt: sender.rtt().srtt(),
            rttvar: sender.rtt().rttvar(),
            rto: sender.rtt().rto(tunables),
            backoff: sender.rtt().back_offs(),
            attempts: sender.attempts(),
            keep_alive_probes: self.transfer.tcb.keep_alive_probes,
            soft_error: self.soft_error(),
            unread: self.transfer.tcb.unread(),
            send_queued: self.transfer.tcb.send_queued(),
            unsent: sender.unsent(self.transfer.tcb.queue()),
            send_size: sender.size(),
            recv_size: self.transfer.tcb.receiver.size(),
            recv_limit: self.transfer.tcb.recv_limit(),
            unsent_most: self
                .transfer
                .tcb
                .cold()
                .unsent_low_water()
                .or_else(|| self.transfer.tcb.sender.share()),
            pacing_rate: self.pacing_rate(tunables),
            max_pacing_rate: self.transfer.tcb.cold().max_pacing_rate(),
            limit_held: Duration::from_millis(tally.limit.millis(now.tick()).into()),
            tally,
            info_counts: self.transfer.tcb.cold().info_counts().until(tally.limit, now),
        }
    }

    fn pacing_rate(&self, tunables: &Tunables) -> Option<u64> {
        let tcb = &self.transfer.tcb;
        let window = &tcb.sender.window;
        let own = tcb.queue().and_then(|queue| queue.cc.pacing_rate(window));
        let srtt = tcb.sender.rtt().srtt().map_or_else(Micros::default, Micros::from);
        let rate = own.or_else(|| tunables.pacing_ratios().rate(window, srtt));
        match tcb.cold().max_pacing_rate() {
            Some(most) => Some(rate.map_or(most.get(), |rate| rate.min(most.get()))),
            None => rate,
        }
    }
}
