//! Packets to the besieged host, and what it answers.

use whimbrel_base::packet::{RxChecksum, SegMeta, TxSegment};
use whimbrel_stack::{RxFrame, TxBatch};
use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{EtherType, EthernetHeader, Protocol};

use super::fault::{Fault, judge};
use super::flow::{Flow, Granted};
use super::judge::{Answers, Sent};
use super::script::Script;
use super::segment::{Flaw, Forged};
use super::{MOST_BATCHES, MOST_FLOWS, MOST_RECENT, Siege, fuzzed_host, link, packet};

/// Packets to the host.
impl Siege {
    /// Adds `flow`, anew if it was known. Returns its place.
    pub(super) fn add_flow(&mut self, flow: Flow) -> usize {
        let known = self.flows.iter().position(|it| it.own == flow.own && it.host == flow.host);
        if let Some(place) = known {
            self.flows[place] = flow;
            return place;
        }
        if self.flows.len() >= MOST_FLOWS {
            // The first ones are the listeners' clients.
            self.flows.remove(MOST_FLOWS / 2);
        }
        self.flows.push(flow);
        self.flows.len() - 1
    }

    /// Completes a handshake begun by either side.
    pub(super) fn open(&mut self, place: usize) -> Result<(), Fault> {
        let mut nothing = Script::new(&[]);
        let first = match self.flows[place].opening {
            Some(TcpFlags::SYN) => TcpFlags::SYN_ACK,
            _ => TcpFlags::SYN,
        };
        for flags in [first, TcpFlags::ACK] {
            let flow = self.flows[place];
            self.send(place, &Forged::polite(&flow, flags, 0), Flaw::None, &mut nothing)?;
        }
        if let Some(listener) = self.listeners.first() {
            self.held.extend(self.shard.accept(*listener));
        }
        Ok(())
    }

    pub(super) fn send(
        &mut self,
        place: usize,
        forged: &Forged,
        flaw: Flaw,
        script: &mut Script<'_>,
    ) -> Result<(), Fault> {
        let flow = self.flows[place];
        let bytes = forged.emit(&flow, flaw);
        if flaw == Flaw::None && forged.seq == flow.next {
            self.flows[place].next = forged.end();
        }
        if forged.flags.contains(TcpFlags::FIN) {
            self.sacked.on_fin([flow.host, flow.own], forged.end());
        }
        let meta = self.meta(forged, flaw, script);
        let resets = forged.flags.contains(TcpFlags::RST) && flaw == Flaw::None;
        let packet = packet::wrap(flow.own.addr, flow.host.addr, Protocol::TCP, &bytes);
        self.send_packet(packet, meta, resets, script)
    }

    /// The device's metadata of a segment: merged of several, if the device does that.
    fn meta(&self, forged: &Forged, flaw: Flaw, script: &mut Script<'_>) -> SegMeta {
        const MERGED: usize = 1_000;
        let trusted = [RxChecksum::Unknown, RxChecksum::Verified, RxChecksum::Partial];
        let right = flaw == Flaw::None;
        let checksum = if right { script.one_of(&trusted) } else { RxChecksum::Unknown };
        if !self.offload || !right || forged.text.len() <= MERGED {
            return SegMeta { checksum, ..SegMeta::SINGLE };
        }
        let segs = forged.text.len().div_ceil(MERGED) as u16;
        // Drawn and not used, so that each seed and corpus file leads to the same run.
        if script.rarely(4) {
            script.u16();
        }
        SegMeta { segs, gso_size: MERGED as u16, checksum }
    }

    /// Sends a packet whole, changed, or in fragments.
    pub(super) fn send_packet(
        &mut self,
        mut packet: Vec<u8>,
        meta: SegMeta,
        resets: bool,
        script: &mut Script<'_>,
    ) -> Result<(), Fault> {
        match script.below(20) {
            1 => {
                for piece in packet::fragments(&packet, script) {
                    let frame = if self.ethernet { link::frame(&piece) } else { piece };
                    self.deliver(frame, SegMeta::SINGLE, false)?;
                }
                return Ok(());
            }
            2 => {
                packet::garnish(&mut packet, script);
                // The device's checks do not cover a changed packet.
                return self.send_frame(packet, SegMeta::SINGLE, false, script);
            }
            3 => self.send_frame(packet.clone(), meta, resets, script)?,
            _ => {}
        }
        self.send_frame(packet, meta, resets, script)
    }

    fn send_frame(
        &mut self,
        packet: Vec<u8>,
        meta: SegMeta,
        resets: bool,
        script: &mut Script<'_>,
    ) -> Result<(), Fault> {
        if !self.ethernet {
            return self.deliver(packet, meta, resets);
        }
        let mut frame = link::frame(&packet);
        if script.rarely(16) {
            link::garnish(&mut frame, script);
            return self.deliver(frame, SegMeta::SINGLE, false);
        }
        self.deliver(frame, meta, resets)
    }

    /// Delivers a frame, alone or in a burst.
    pub(super) fn deliver(
        &mut self,
        frame: Vec<u8>,
        meta: SegMeta,
        resets: bool,
    ) -> Result<(), Fault> {
        if self.wait_for > 0 {
            self.wait_for -= 1;
            self.burst.push((frame, meta));
            return Ok(());
        }
        self.drain()?;
        let alone = self.burst.is_empty();
        self.burst.push((frame, meta));
        let burst = core::mem::take(&mut self.burst);
        let frames: Vec<_> = burst.iter().map(|(frame, meta)| RxFrame::new(frame, *meta)).collect();
        let own_requests = self.shard.ip_counters().echo_requests;
        self.shard.rx(self.now, &frames);
        let answers = self.drain()?;
        let asked = burst.iter().map(|(frame, _)| frame.len()).sum();
        // A packet that waited for a neighbour does not answer the message with its address.
        // Neither does the host's own echo request that leaves again in smaller pieces after a
        // router's error.
        let repeats = self.shard.ip_counters().echo_requests != own_requests;
        if !self.ethernet && !repeats {
            self.reflection.add(asked, burst.len(), &answers)?;
        }
        judge(!(resets && alone) || answers.resets == 0, || {
            "a reset was answered by a reset".into()
        })
    }
}

/// Packets of the host.
impl Siege {
    /// Takes the host's output.
    pub(super) fn drain(&mut self) -> Result<Answers, Fault> {
        let mut answers = Answers::default();
        if self.stalled {
            return Ok(answers);
        }
        let mut batch = TxBatch::new(16);
        for _ in 0..MOST_BATCHES {
            let more = self.shard.tx(&mut batch);
            let mut told = Vec::new();
            for segment in batch.pending() {
                let frame = segment.to_vec();
                let sent = self.judge_frame(&frame, segment)?;
                answers.add(frame.len(), sent.as_ref());
                sent.iter().try_for_each(|sent| self.update_sacked(sent))?;
                told.extend(self.hear(frame, sent));
            }
            batch.consume(batch.pending().len());
            let quiet = told.is_empty();
            for frame in told {
                self.shard.rx(self.now, &[RxFrame::new(&frame, SegMeta::SINGLE)]);
            }
            if !more && quiet {
                return Ok(answers);
            }
        }
        Err(Fault("the host sends without end".into()))
    }

    fn judge_frame(&self, frame: &[u8], segment: &TxSegment) -> Result<Option<Sent>, Fault> {
        if !self.ethernet {
            return self.judge_sent(frame, segment);
        }
        let (header, packet) = EthernetHeader::parse(frame)
            .map_err(|_| Fault(format!("sent no Ethernet frame: {frame:02x?}")))?;
        judge(header.src == fuzzed_host::OUR_MAC, || format!("sent as another: {header:?}"))?;
        if header.ether_type == EtherType::ARP {
            return Ok(None);
        }
        self.judge_sent(packet, segment)
    }

    /// A connection keeps the data that it named. A new connection between the ends may begin, for
    /// example by the same cookie.
    fn update_sacked(&mut self, sent: &Sent) -> Result<(), Fault> {
        let counters = self.shard.counters();
        let opened = counters.active_opens + counters.passive_opens;
        if core::mem::replace(&mut self.opened, opened) != opened {
            self.sacked.forget();
        }
        self.sacked.on_segment([sent.from, sent.to], &sent.header).map_err(Fault)
    }

    /// Updates the peer by a packet; neighbours answer it.
    fn hear(&mut self, frame: Vec<u8>, sent: Option<Sent>) -> Option<Vec<u8>> {
        if let Some(sent) = sent {
            if let Some(option) = sent.header.options.fast_open.filter(|it| !it.is_request()) {
                self.granted = Some(Granted { to: sent.to, option });
            }
            let is_its = |it: &&mut Flow| it.own == sent.to && it.host == sent.from;
            if let Some(flow) = self.flows.iter_mut().find(is_its) {
                flow.learn(&sent.header, sent.text);
            }
        }
        let answer = if self.ethernet { link::answer(&frame) } else { None };
        let header = if self.ethernet { EthernetHeader::LEN } else { 0 };
        self.recent.truncate(MOST_RECENT - 1);
        self.recent.push_front(frame[header..].to_vec());
        answer.filter(|_| self.neighbourly)
    }
}
