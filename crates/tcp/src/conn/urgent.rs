//! Sending urgent data (RFC 9293 3.8.5, RFC 6093). What arrives is looked at in `text.rs`.

use bytes::Bytes;
use whimbrel_wire::SeqNum;

use super::{Connection, State, WriteClosed};
use crate::Context;

impl Connection {
    /// Takes from the front of `data` what there is room for, as [`Connection::write`] does, and
    /// marks the stream up to its end as urgent. It stays in the stream: segments announce where
    /// it ends until the peer has acknowledged all of it.
    pub fn write_urgent(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Result<usize, WriteClosed> {
        let taken = self.write(cx, data)?;
        if let Some(cold) = self.cold.as_mut().filter(|_| taken > 0) {
            cold.send.note_urgent();
        }
        Ok(taken)
    }

    /// SND.UP: one past the last urgent octet, while it is not acknowledged.
    pub(super) fn snd_up(&self) -> Option<SeqNum> {
        let ahead = self.cold.as_ref()?.send.urgent()?;
        Some(self.text_end() - self.send_queued() + ahead)
    }

    /// The urgent pointer of a segment at `seq`; 0 if it is to have none.
    pub(super) fn urgent_pointer(&self, seq: SeqNum) -> u16 {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        // SYNs have none; text that Fast Open lets go before our SYN is acknowledged does.
        if opening && (!self.is_early() || seq == self.snd.una) {
            return 0;
        }
        // RFC 9293 3.8.5: "The urgent pointer MUST point to the sequence number of the octet
        // following the urgent data (MUST-62)."
        match self.snd_up() {
            // What lies beyond the field's reach is announced as far as it reaches: the peer hears
            // of it early, and of its end in time.
            Some(up) if up.after(seq) => up.offset_from(seq).min(u32::from(u16::MAX)) as u16,
            _ => 0,
        }
    }
}
