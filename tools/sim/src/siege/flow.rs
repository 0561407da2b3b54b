//! The besieger's view of a flow: the segments it sent, and those it saw the host send.

use whimbrel_wire::tcp::{FastOpen, TcpFlags, TcpHeader, Timestamps};
use whimbrel_wire::{Endpoint, SeqNum};

use super::script::Script;

/// One flow, seen from the besieger.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// The besieger's end, and the host's.
    pub(super) own: Endpoint,
    pub(super) host: Endpoint,
    /// The besieger's next number.
    pub(super) next: SeqNum,
    /// The host's last acknowledgment, and the right edge of its window.
    pub(super) heard: SeqNum,
    pub(super) edge: SeqNum,
    /// Start of the host's last segment, and the number after all that it sent.
    pub(super) last: SeqNum,
    pub(super) sent: SeqNum,
    /// The host's last timestamps; `None` if it sends none.
    pub(super) stamps: Option<Timestamps>,
    /// Shift of the host's windows.
    pub(super) shift: u8,
    /// Flags of the host's last segment, if it was a SYN.
    pub(super) opening: Option<TcpFlags>,
    /// True if the application wrote data on the SYN before its number was known.
    pub(super) unread: bool,
}

/// The besieger's initial number: text soon wraps.
const ISN: SeqNum = SeqNum::new(u32::MAX - 3_000);

/// A Fast Open cookie that the host granted, and its owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) to: Endpoint,
    pub(super) option: FastOpen,
}

impl Flow {
    pub(super) const fn new(own: Endpoint, host: Endpoint) -> Self {
        Self {
            own,
            host,
            next: ISN,
            heard: ISN,
            edge: ISN,
            last: SeqNum::new(0),
            sent: SeqNum::new(0),
            stamps: None,
            shift: 0,
            opening: None,
            unread: false,
        }
    }

    /// Notes a segment of the host with `text` bytes.
    pub(super) fn learn(&mut self, header: &TcpHeader, text: u32) {
        let flags = header.flags;
        if flags.contains(TcpFlags::RST) {
            return;
        }
        let end = header.seq + text + flags.sequence_len();
        if flags.contains(TcpFlags::SYN) {
            self.opening = Some(flags);
            self.shift = header.options.window_scale.map_or(0, |scale| scale.get());
            self.sent = end;
        } else {
            self.opening = None;
        }
        self.last = header.seq;
        self.sent = self.sent.later(end);
        if flags.contains(TcpFlags::ACK) {
            let shift = if flags.contains(TcpFlags::SYN) { 0 } else { self.shift };
            self.heard = header.ack;
            self.edge = header.ack + (u32::from(header.window.get()) << shift);
            self.next = self.next.later(header.ack);
        }
        self.stamps = header.options.timestamps;
    }

    /// A number near one that matters to the connection.
    pub(super) fn near(&self, script: &mut Script<'_>, usual: SeqNum) -> SeqNum {
        let landmark = match script.below(12) {
            0..=5 => usual,
            6 => self.next,
            7 => self.heard,
            8 => self.edge,
            9 => self.last,
            10 => self.sent,
            _ => SeqNum::new(0),
        };
        let offset = match script.below(16) {
            0..=7 => 0,
            8 => 1,
            9 => u32::MAX,
            10 => u32::from(script.u8()),
            11 => u32::from(script.u8()).wrapping_neg(),
            12 => u32::from(script.u16()),
            13 => u32::from(script.u16()).wrapping_neg(),
            14 => (1_u32 << 31).wrapping_sub(2).wrapping_add(u32::from(script.u8() % 5)),
            _ => script.u32(),
        };
        landmark + offset
    }
}
