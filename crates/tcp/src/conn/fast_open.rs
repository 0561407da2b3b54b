//! Fast Open (RFC 7413): text in a SYN, ours or the peer's.
//!
//! Whether a cookie is valid, and which one a server granted, is for the tables to say; a connection
//! knows what its SYN is to bring and what came of it. A segment of a connection that does without
//! passes nothing of this.
//!
//! ```text
//!   ours     SYN-SENT      SYN + option + text ->     <- SYN,ACK of the text: it arrived
//!                                                     <- SYN,ACK of the SYN: it is sent again at once
//!   peer's   SYN-RECEIVED  <- SYN + cookie + text     SYN,ACK of the text ->
//!                                                     our text, within the initial window ->
//! ```

use whimbrel_wire::tcp::FastOpen;

use crate::conn::tcb::initial_window;
use crate::conn::{Connection, FastSyn, Flags, Handshake, State};
use crate::{Context, RxSegment};

/// A SYN of the peer's whose cookie was valid.
impl Connection {
    /// A connection whose SYN had a valid cookie: in SYN-RECEIVED, and the SYN-ACK is the first thing
    /// that it wants to transmit. `renewed` is the cookie for that, if there is to be one. What was set
    /// on its listener comes next, then [`Connection::take_syn_text`].
    pub fn from_syn(
        cx: &mut Context,
        handshake: &Handshake,
        syn: &RxSegment<'_>,
        renewed: Option<FastOpen>,
    ) -> Self {
        let mut connection = Self::build(cx, &handshake.open, State::SynReceived);
        let (tcb, irs) = (&mut connection.transfer.tcb, handshake.irs);
        tcb.flags.set(Flags::EARLY);
        tcb.sender.queue_syn();
        tcb.sender.on_syn(irs, syn.header.window);
        let window = initial_window(cx.tunables.recv_buffer);
        tcb.receiver.begin(irs, window);
        connection.transfer.agree(cx, handshake);
        if let Some(option) = renewed {
            let mss = handshake.peer_mss;
            connection.transfer.tcb.buffers(cx).fast_syn = Some(FastSyn { option, mss });
        }
        connection
    }
}

/// The outcome of Fast Open.
impl Connection {
    /// True if a handshake of Fast Open is under way.
    #[inline]
    pub const fn is_fast_opening(&self) -> bool {
        self.transfer.tcb.flags.has(Flags::FAST_OPENING)
    }

    /// True if text of a SYN arrived: of the peer's, or of ours, which is on its way until the peer
    /// answers.
    pub const fn has_syn_data(&self) -> bool {
        self.transfer.tcb.flags.has(Flags::SYN_DATA)
    }
}
