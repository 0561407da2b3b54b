//! An observer at both ends of the wires: it checks rules that hold for TCP in every state.
//!
//! It sees each segment when it is sent, before the link harms it, and keeps each flow's promises per
//! direction.

use std::collections::BTreeMap;
use std::fmt;

use whimbrel_wire::tcp::{TcpFlags, TcpHeader};
use whimbrel_wire::{Endpoint, IpHeader, Protocol, SeqNum, WindowScale};

use crate::sacked::Sacked;

/// Observations of every flow.
#[derive(Default, Debug)]
pub struct Watch {
    flows: BTreeMap<[Endpoint; 2], EndObserved>,
    sacked: Sacked,
}

/// Numbers that one end of a flow has sent.
#[derive(Clone, Copy, Default, Debug)]
struct EndObserved {
    /// Scale on its SYN, if there was one.
    scale: Option<WindowScale>,
    /// Initial sequence number: a SYN with another begins a new connection.
    isn: Option<SeqNum>,
    /// Number of connections it has begun. While the ends differ, one of them still refers to an
    /// earlier connection, as a TIME-WAIT record does when it challenges a SYN.
    begun: u32,
    /// Number after the highest sent.
    sent: Option<SeqNum>,
    /// Right edge of its window: the farthest ever announced.
    edge: Option<SeqNum>,
}

/// A broken promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The sender at fault, and its peer.
    pub flow: [Endpoint; 2],
    /// The promise, and the segment that broke it.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}: {}", self.flow[0], self.flow[1], self.what)
    }
}

impl Watch {
    /// Observes a packet that is sent.
    pub fn on_packet(&mut self, packet: &[u8]) -> Result<(), Broken> {
        let Some((flow, header, text)) = read(packet) else { return Ok(()) };
        if header.flags.contains(TcpFlags::RST) {
            // A reset may refer to a connection that its sender does not have.
            return Ok(());
        }
        let broken = |what| Broken { flow, what };
        self.sacked.on_segment(flow, &header).map_err(broken)?;
        let [from, to] = flow;
        let peer = self.flows.get(&[to, from]).copied().unwrap_or_default();
        let own = self.flows.entry(flow).or_default();
        if header.flags.contains(TcpFlags::SYN) {
            own.on_syn(&header, text);
        }
        if own.begun != peer.begun {
            return Ok(());
        }
        own.process_numbers(&header, text, &peer).map_err(broken)?;
        own.process_window(&header, &peer).map_err(broken)
    }
}

impl EndObserved {
    fn on_syn(&mut self, header: &TcpHeader, text: u32) {
        if self.isn != Some(header.seq) {
            let (isn, begun) = (Some(header.seq), self.begun + 1);
            // The SYN itself is one number; with Fast Open text follows.
            *self = Self { isn, begun, sent: Some(header.seq + 1 + text), ..Self::default() };
        }
        self.scale = header.options.window_scale;
    }

    /// No data is sent beyond the announced window, except for a probe of one number and a FIN, and
    /// no acknowledgment covers data that was not sent.
    fn process_numbers(
        &mut self,
        header: &TcpHeader,
        text: u32,
        peer: &Self,
    ) -> Result<(), String> {
        let end = header.seq + text + header.flags.sequence_len();
        if let Some(edge) = peer.edge.filter(|_| text > 0) {
            let over = (header.seq + text).distance_from(edge);
            if over > PROBE {
                return Err(format!("sends {over} bytes beyond the window: {header:?}"));
            }
        }
        let sent = peer.sent.filter(|_| header.flags.contains(TcpFlags::ACK));
        if sent.is_some_and(|sent| header.ack.after(sent)) {
            return Err(format!("acknowledges what was not sent ({sent:?}): {header:?}"));
        }
        self.sent = Some(self.sent.map_or(end, |sent| sent.later(end)));
        Ok(())
    }

    /// RFC 9293 3.8.6: "A TCP receiver SHOULD NOT shrink the window". Rounding may take less than
    /// one unit of it (RFC 7323 2.4).
    fn process_window(&mut self, header: &TcpHeader, peer: &Self) -> Result<(), String> {
        if !header.flags.contains(TcpFlags::ACK) {
            return Ok(());
        }
        // RFC 7323 2.2: the window of a SYN is not scaled, and others are if both sides offered it.
        let scales = self.scale.filter(|_| !header.flags.contains(TcpFlags::SYN));
        let scale = scales.filter(|_| peer.scale.is_some()).unwrap_or(WindowScale::ZERO);
        let edge = header.ack + header.window.scaled(scale).get();
        // A SYN-ACK sent again after a scaled ACK announces as much as it can.
        let is_full = header.flags.contains(TcpFlags::SYN) && header.window.get() == u16::MAX;
        if let Some(before) = self.edge.filter(|_| !is_full) {
            let back = before.distance_from(edge);
            if back >= 1 << scale.get() {
                return Err(format!("takes back {back} bytes of its window: {header:?}"));
            }
        }
        self.edge = Some(self.edge.map_or(edge, |before| before.later(edge)));
        Ok(())
    }
}

/// Endpoints, header and bytes of text of a TCP segment.
fn read(packet: &[u8]) -> Option<([Endpoint; 2], TcpHeader, u32)> {
    let (ip, payload) = IpHeader::parse(packet).ok()?;
    let (header, header_len) =
        (ip.protocol == Protocol::TCP).then(|| TcpHeader::parse(payload).ok())??;
    let flow = [Endpoint::new(ip.src, header.src_port), Endpoint::new(ip.dst, header.dst_port)];
    Some((flow, header, (payload.len() - header_len) as u32))
}

/// Bytes that may be sent beyond a closed window to learn if it has opened (RFC 9293 3.8.6.1).
const PROBE: i32 = 1;
