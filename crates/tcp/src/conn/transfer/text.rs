//! Text that arrives in order, its acknowledgment, and the growth of the receive buffer.

use whimbrel_base::packet::Payload;

use crate::conn::transfer::Transfer;
use crate::conn::{Flags, Signals};
use crate::recv::{RightSizing, RoundTripEnd, ShortTexts, Text};
use crate::{Context, RxSegment};

impl Transfer {
    /// Text in order arrived, and as much as an eighth of the buffer since the round trip under way
    /// began: if that is over, the buffer may grow.
    #[inline(never)]
    fn right_size(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        let stamps = self.tcb.flags.has(Flags::TIMESTAMPS).then_some(seg.header.options.timestamps);
        let echo = stamps.flatten().map(|stamps| stamps.ecr);
        let trip = self.judge_trip(cx, echo);
        let read = self.tcb.counts.bytes_received.wrapping_sub(self.tcb.unread());
        let (size, mss) = (self.tcb.receiver.size(), u32::from(self.tcb.sender.mss()));
        let Some(needed) = self.tcb.counts.stats_mut().sizing.on_text(read, size, mss, trip) else {
            return;
        };
        if needed > size {
            self.tcb.grow(cx, needed);
        }
    }

    /// The evidence by which the round trip under way is over. Timestamps tell of it: what echoes one that was sent
    /// since it began is an answer. Their clock has milliseconds; below that, and without them, the
    /// round trip counts that was measured on the way out, by the handshake if by nothing else.
    fn judge_trip(&self, cx: &Context, echo: Option<u32>) -> RoundTripEnd {
        let measured = self.tcb.sender.rtt().srtt();
        let measured = measured.map(|srtt| srtt.as_micros() as u32);
        match (echo, measured) {
            (Some(echo), None) => RoundTripEnd::Echo { now: self.tsval(cx.tick), echo },
            (Some(echo), Some(rtt)) if rtt > FINE => {
                RoundTripEnd::Echo { now: self.tsval(cx.tick), echo }
            }
            (_, rtt) => RoundTripEnd::Clock { now: cx.now.as_micros() as u32, rtt },
        }
    }

    pub(in crate::conn) fn take_in_order(
        &mut self,
        cx: &mut Context,
        seg: &RxSegment<'_>,
        text: Text,
    ) {
        let buffers = self.tcb.buffers(cx);
        let had_held = buffers.recv.has_held();
        if buffers.recv.unread() == 0 {
            buffers.unread_since = cx.tick;
        }
        let advance = match short(&seg.payload, text) {
            // What most short connections receive: one request, which is read at once.
            Some(short) if buffers.recv.is_empty() => {
                let chunk = cx.pool.short_texts.keep(short);
                buffers.recv.append_chunk(chunk, ShortTexts::CHUNK as u32);
                text.take
            }
            _ => buffers.recv.append(&mut cx.pool.chunks, seg.payload, text.skip, text.take),
        };
        self.tcb.receiver.advance(advance);
        self.note_received(cx, seg, advance);
        self.tcb.signals.raise(Signals::READABLE);
        let unacked = self.tcb.receiver.count_segs(seg.meta.segs);
        // RFC 5681 3.2: "a TCP receiver SHOULD send an immediate ACK when the incoming segment
        // fills in all or part of a gap in the sequence space." Text that did not fit is
        // acknowledged at once too, so that the sender learns how much did.
        let clipped = text.skip + text.take < seg.payload.len();
        let (every, delay) = (u16::from(cx.tunables.ack_every), cx.tunables.delayed_ack);
        let at_once = self.tcb.cold().acks_at_once() || delay.is_zero();
        if had_held || clipped || unacked >= every || at_once {
            self.tcb.receiver.owe_ack();
        } else {
            self.timers.delay_ack(cx.now, delay);
        }
    }

    /// `advance` more bytes are in order.
    #[inline]
    fn note_received(&mut self, cx: &mut Context, seg: &RxSegment<'_>, advance: u32) {
        self.tcb.counts.on_text(advance);
        let begun = self.tcb.counts.stats.as_deref().map(|stats| &stats.sizing);
        let (received, size) = (self.tcb.counts.bytes_received, self.tcb.receiver.size());
        if RightSizing::is_due(begun, received, size) {
            self.right_size(cx, seg);
        }
    }
}

/// Microseconds: what a clock of milliseconds says nothing of.
const FINE: u32 = 4_000;

/// The part of a payload that lies in the window, if it is in the device's memory and short.
#[inline]
fn short<'a>(payload: &Payload<'a>, text: Text) -> Option<&'a [u8]> {
    let Payload::Borrowed(_, bytes) = *payload else { return None };
    let from = text.skip as usize;
    let bytes = bytes.get(from..from + text.take as usize)?;
    (bytes.len() <= ShortTexts::MOST).then_some(bytes)
}
