//! The values that a connection begins with: options of our SYN, and what both SYNs say.

use whimbrel_base::Micros;
use whimbrel_wire::plain::PlainOpening;
use whimbrel_wire::tcp::{FastOpen, TcpOptions, Timestamps};
use whimbrel_wire::{Address, Mss, SeqNum, WindowScale};

/// Values known in both ways of opening.
#[derive(Clone, Copy, Debug)]
pub struct ActiveOpen {
    /// The address to connect to, or of the peer that connected.
    pub remote: Address,
    /// The port to connect to, or of the peer that connected.
    pub remote_port: u16,
    /// The port that this side sends from.
    pub local_port: u16,
    /// This side's address, as an index into the shard's table of them.
    pub local_index: u16,
    /// Our initial sequence number.
    pub iss: SeqNum,
    /// The offset that is added to the clock to make TSval.
    pub timestamp_offset: u32,
    /// The MSS that we announce: what fits the link's MTU.
    pub mss: Mss,
}

/// A handshake that its third segment completed.
#[derive(Clone, Copy, Debug)]
pub struct Handshake {
    /// The ends, and our half of the numbers.
    pub open: ActiveOpen,
    /// The peer's initial sequence number.
    pub irs: SeqNum,
    /// The MSS that the peer announced, or the default.
    pub peer_mss: Mss,
    /// The scales of the peer's windows and of ours, if scaling was negotiated.
    pub scales: Option<(WindowScale, WindowScale)>,
    /// TS.Recent, if timestamps were negotiated.
    pub ts_recent: Option<u32>,
    /// Selective acknowledgments were negotiated (RFC 2018 2).
    pub sack: bool,
    /// From our SYN-ACK to the segment that acknowledged it.
    pub round_trip: FirstTrip,
}

/// The round trip of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstTrip {
    /// It took this long, as our clock measured it.
    Took(Micros),
    /// Either SYN was repeated, so that it cannot be told.
    Repeated,
    /// Nothing was remembered of it: neither how long it took nor whether anything was lost.
    Unknown,
}

/// The Fast Open part of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastSyn {
    /// The option: a request, or a cookie. With a request there is no text in the SYN.
    pub option: FastOpen,
    /// The MSS that the server announced last: what options and text of the SYN may take.
    pub mss: Mss,
}

/// Options of a SYN or SYN-ACK other than timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SynOptions {
    /// The MSS that is announced.
    pub mss: Mss,
    /// The scale of our windows, if that is offered or agreed upon.
    pub window_scale: Option<WindowScale>,
    /// SACK options are welcome.
    pub sack_permitted: bool,
    /// A cookie, or the request for one.
    pub fast_open: Option<FastOpen>,
}

impl SynOptions {
    /// Returns these as options that nearly all SYNs have, if they are.
    #[inline]
    pub(super) fn plain(&self, timestamps: Option<Timestamps>) -> Option<PlainOpening> {
        let Self { mss, window_scale, sack_permitted, fast_open: None } = *self else {
            return None;
        };
        Some(PlainOpening { mss, window_scale, sack_permitted, timestamps })
    }

    /// Returns these as options of a header.
    pub(super) fn options(&self, timestamps: Option<Timestamps>) -> TcpOptions {
        let Self { mss, window_scale, sack_permitted, fast_open } = *self;
        let mss = Some(mss);
        let rest = TcpOptions::default();
        TcpOptions { mss, window_scale, sack_permitted, fast_open, timestamps, ..rest }
    }
}
