//! Writing of the application, urgent data included (RFC 9293 3.8.5, RFC 6093), and the end of it. What
//! arrives is looked at in `text.rs`.

use bytes::Bytes;

use whimbrel_base::cold_path;
use whimbrel_wire::SeqNum;

use crate::Context;
use crate::budget::Pressure;
use crate::conn::State;
use crate::conn::transfer::Transfer;

impl Transfer {
    /// Sends FIN after what was written; reading goes on (RFC 9293 3.10.4).
    pub(in crate::conn) fn shutdown(&mut self, cx: &mut Context) {
        match self.tcb.state {
            // FIN follows once the handshake is complete.
            State::SynSent | State::SynReceived => {}
            State::Established => self.tcb.state = State::FinWait1,
            State::CloseWait => self.tcb.state = State::LastAck,
            _ => return,
        }
        self.tcb.sender.queue_fin(&cx.tunables);
        self.watch_for_stall(cx);
    }

    /// Takes from the front of `data` what there is room for. Less than all of it: a
    /// [`Signals::WRITABLE`] follows.
    pub(in crate::conn) fn write(
        &mut self,
        cx: &mut Context,
        data: &mut Bytes,
    ) -> Result<usize, WriteClosed> {
        if !self.tcb.takes_text() {
            cold_path();
            return Err(WriteClosed);
        }
        self.tcb.update_memory_limit(cx);
        let bounds = self.tcb.send_bounds();
        // What most write has room in a buffer that never grew.
        let usual = cx.tunables.send_buffer;
        let is_roomy = data.len() as u64 + u64::from(self.tcb.send_queued()) <= usual.into();
        let is_usual = is_roomy && self.tcb.sender.size() == usual;
        if !is_usual || cx.pool.budget.pressure() != Pressure::None {
            self.tcb.update_send_size(cx);
        }
        let queue = self.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        let take = self.tcb.sender.admit(cx, queue, &bounds, data.len());
        if take < data.len() {
            // What it holds itself is not in its way.
            let others = cx.pool.budget.text().saturating_sub(self.tcb.send_queued().into());
            self.tcb.sender.note_refused(others > u64::from(cx.tunables.send_crowd));
        }
        if take > 0 {
            let all = take == data.len();
            let piece = if all { core::mem::take(data) } else { split_front(data, take) };
            self.queue_text(cx, piece);
        }
        Ok(take)
    }

    /// Takes all of `data`, whatever room there is: what was promised to an application that closes the
    /// connection now, and that it cannot wait with.
    pub(in crate::conn) fn write_whole(
        &mut self,
        cx: &mut Context,
        data: Bytes,
    ) -> Result<(), WriteClosed> {
        if !self.tcb.takes_text() {
            return Err(WriteClosed);
        }
        if !data.is_empty() {
            let queue = self.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
            self.tcb.sender.on_text(cx, queue);
            self.queue_text(cx, data);
        }
        Ok(())
    }

    #[inline]
    fn queue_text(&mut self, cx: &mut Context, piece: Bytes) {
        self.tcb.buffers(cx).send.text.push(piece);
        if self.tcb.sender.has_mtu_probe_planned() {
            self.follow_mtu_search(cx);
        }
        self.watch_for_stall(cx);
        if let Some(buffers) = self.tcb.buffers.as_mut().filter(|buffers| buffers.may_differ()) {
            buffers.account(cx);
        }
    }

    /// With nothing in flight only the persist timer finds out that a window opened.
    #[inline]
    pub(in crate::conn) fn watch_for_stall(&mut self, cx: &Context) {
        if self.tcb.sender.may_be_stalled() {
            self.watch_stalled(cx);
        }
    }

    /// Arms the timer that probes the peer's window, if that keeps back what was written.
    #[inline(never)]
    fn watch_stalled(&mut self, cx: &Context) {
        let sender = &self.tcb.sender;
        let watched = sender.is_persisting() || sender.waits_for_window(self.tcb.queue());
        if watched && sender.is_idle() && !sender.has_syn() {
            self.rearm_retransmission(cx);
        }
    }

    /// Takes from the front of `data` what there is room for, as [`Connection::write`] does, and
    /// marks the stream up to its end as urgent. It stays in the stream: segments announce where
    /// it ends until the peer has acknowledged all of it.
    pub(in crate::conn) fn write_urgent(
        &mut self,
        cx: &mut Context,
        data: &mut Bytes,
    ) -> Result<usize, WriteClosed> {
        let taken = self.write(cx, data)?;
        if let Some(buffers) = self.tcb.buffers.as_mut().filter(|_| taken > 0) {
            buffers.send.text.note_urgent();
        }
        Ok(taken)
    }

    /// The urgent pointer of a segment at `seq` that is no SYN; 0 if it is to have none.
    pub(in crate::conn) fn urgent_pointer(&self, seq: SeqNum) -> u16 {
        let opening = matches!(self.tcb.state, State::SynSent | State::SynReceived);
        // Text that Fast Open sends before our SYN is acknowledged has one.
        if opening && (!self.tcb.is_early() || seq == self.tcb.sender.seq().una) {
            cold_path();
            return 0;
        }
        // RFC 9293 3.8.5: "The urgent pointer MUST point to the sequence number of the octet
        // following the urgent data (MUST-62)."
        match self.tcb.sender.urgent_end(self.tcb.queue()) {
            // What lies beyond the field's reach is announced as far as it reaches: the peer hears
            // of it early, and of its end in time.
            Some(up) if up.after(seq) => up.offset_from(seq).min(u32::from(u16::MAX)) as u16,
            _ => 0,
        }
    }
}

/// The first `len` bytes, which the data then begins behind.
// Out of line: what most write has room as a whole.
#[inline(never)]
fn split_front(data: &mut Bytes, len: usize) -> Bytes {
    data.split_to(len)
}

/// Why nothing can be written: the application closed its direction, or the connection is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteClosed;
