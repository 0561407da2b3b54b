//! The rest of a connection that is over.

use whimbrel_wire::{RawWindow, SeqNum, WindowScale};

/// The rest of a connection in TIME-WAIT, without its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remains {
    /// SND.NXT: one past our FIN.
    pub snd_nxt: SeqNum,
    /// RCV.NXT: one past the peer's FIN.
    pub rcv_nxt: SeqNum,
    /// The window field of the acknowledgment.
    pub window: RawWindow,
    /// The scale of that field: as our windows were.
    pub scale: WindowScale,
    /// TS.Recent, if timestamps were negotiated.
    pub ts_recent: Option<u32>,
}
