//! The network of a host: its internet layer, its link below that where the device has one, and what it sends
//! for no connection and no socket.

mod addressing;
mod echo;
pub mod ip;
pub mod link;
mod loopback;
mod paths;
pub mod ping;
pub(crate) mod replies;
mod reply;
mod unclaimed;

use whimbrel_base::packet::TxSegment;
use whimbrel_base::{Instant, Key};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::PathFinding;
use whimbrel_wire::plain::PlainSegment;
use whimbrel_wire::{Address, EthernetHeader};

use crate::ip::{ErrorReport, FlowKey, FrameDrop, IpLayer, UdpArrival};
use crate::link::{
    AddressCheck, AddressConflict, CheckedAddress, FrameContents, Link, LinkControl, TooManyChecks,
    destination_of,
};
use crate::net::loopback::{LoopbackQueue, QueueFull};
use crate::net::replies::{PendingReply, Replies};
use crate::ping::Pings;
use crate::{RxFrame, TxBatch};

use self::unclaimed::Unclaimed;

pub use self::paths::{DatagramPath, DatagramPathNews, DatagramPathsSeen};

pub(crate) use self::paths::check_mtu;

/// Everything of a host below its transports.
#[derive(Debug)]
pub(crate) struct Net {
    /// Its addresses, routes and packets.
    pub(crate) ip: IpLayer,
    /// Its Ethernet, if the device has one.
    pub(crate) link: Option<Link>,
    /// Checks of each packet before it leaves. Without any, a packet of a stream
    /// to another host pays one comparison.
    checks: PacketChecks,
    looped: LoopbackQueue,
    /// One queue for all protocols: what it holds leaves in the order in which it was asked for.
    pub(crate) replies: Replies,
    pub(crate) pings: Pings,
    pub(crate) unclaimed: Unclaimed,
}

/// Checks of packets before they leave.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct PacketChecks {
    /// True if each is checked for a destination that is this host itself, or has no route any more: from the
    /// first packet on that this host sends to itself, or the first change of its addresses and routes.
    destinations: bool,
    /// True if each is checked for a path that carries less than is believed of one, on which it may be
    /// fragmented: while there is such a path.
    narrow_paths: bool,
}

impl PacketChecks {
    #[inline]
    const fn is_nothing(self) -> bool {
        !(self.destinations | self.narrow_paths)
    }
}

impl Net {
    /// The network of a host that has these layers; `key` numbers its echo requests.
    pub(crate) fn new(ip: IpLayer, link: Option<Link>, key: &Key) -> Self {
        Self {
            ip,
            link,
            checks: PacketChecks::default(),
            looped: LoopbackQueue::default(),
            replies: Replies::default(),
            pings: Pings::new(key),
            unclaimed: Unclaimed::default(),
        }
    }

    /// From now on the link goes by these rules.
    pub(crate) fn set_link_rules(&mut self, tunables: &Tunables) {
        if let Some(link) = &mut self.link {
            link.set_rules(tunables);
        }
    }

    /// Returns the contents of a frame.
    #[inline(always)]
    fn open<'a>(&self, frame: &'a [u8]) -> Result<FrameContents<'a>, FrameDrop> {
        match &self.link {
            None => Ok(FrameContents::Packet(frame)),
            Some(link) => link.open(frame),
        }
    }

    /// A frame that is what nearly every one is; its caller counts it. What is not, [`Net::unframe`] reads.
    #[inline(always)]
    pub(crate) fn read_plain<'a>(
        &mut self,
        frame: &RxFrame<'a>,
    ) -> Option<(FlowKey, PlainSegment<'a>)> {
        let Ok(FrameContents::Packet(packet)) = self.open(frame.bytes) else { return None };
        self.ip.read_plain(packet, frame.meta.checksum)
    }

    /// A frame that is what nearly every datagram is, counted, and its packet. What is not, [`Net::unframe`] reads.
    #[inline(always)]
    pub(crate) fn read_plain_datagram<'a>(
        &mut self,
        frame: &RxFrame<'a>,
    ) -> Option<(RxFrame<'a>, UdpArrival<'a>)> {
        let Ok(FrameContents::Packet(bytes)) = self.open(frame.bytes) else { return None };
        let arrived = self.ip.read_plain_datagram(bytes, &frame.meta)?;
        self.ip.counters.in_receives += 1;
        Some((RxFrame { bytes, ..*frame }, arrived))
    }

    /// The packet of a frame, if it has one that is to be read: what a neighbour said is dealt with.
    #[inline(always)]
    pub(crate) fn unframe<'a>(&mut self, now: Instant, frame: &RxFrame<'a>) -> Option<RxFrame<'a>> {
        self.ip.counters.in_receives += 1;
        let reason = match self.open(frame.bytes) {
            Ok(FrameContents::Packet(bytes)) => return Some(RxFrame { bytes, ..*frame }),
            Ok(FrameContents::LinkControl(heard)) => match self.process_control(heard, now) {
                Ok(()) => {
                    self.ip.counters.in_delivers += 1;
                    return None;
                }
                Err(reason) => reason,
            },
            Err(reason) => reason,
        };
        self.ip.counters.drop_frame(reason);
        None
    }

    /// Begins to check our addresses for duplicates, if the link has neighbours.
    pub(crate) fn begin_check(&mut self, now: Instant) {
        if let Some(link) = &mut self.link {
            link.begin_check(now);
        }
    }

    /// Returns the state of the check of our addresses.
    pub(crate) fn address_check(&self) -> AddressCheck {
        self.link.as_ref().map_or(AddressCheck::Done, Link::address_check)
    }

    /// Another station that turned out to have an address of ours, once.
    pub(crate) fn take_conflict(&mut self) -> Option<AddressConflict> {
        self.link.as_mut()?.take_conflict()
    }

    /// Begins to check an address for duplicates; returns false if the link has no neighbours.
    pub(crate) fn check_tentative(
        &mut self,
        addr: Address,
        now: Instant,
    ) -> Result<bool, TooManyChecks> {
        match &mut self.link {
            None => Ok(false),
            Some(link) => link.check_tentative(addr, now).map(|()| true),
        }
    }

    /// The next address whose check has ended.
    pub(crate) fn pop_checked(&mut self) -> Option<CheckedAddress> {
        self.link.as_mut()?.pop_checked()
    }

    /// Acts upon what a neighbour said.
    fn process_control(&mut self, heard: LinkControl, now: Instant) -> Result<(), FrameDrop> {
        let Self { ip, link: Some(link), .. } = self else { return Err(FrameDrop::EtherType) };
        link.process_control(&ip.addresses, heard, now)
    }

    /// From now on packets may be for this host itself, or for a destination without a route.
    pub(crate) fn enable_destination_check(&mut self) {
        self.checks.destinations = true;
    }

    /// The path to `remote` carries no more than `said` bytes, by a router's report.
    pub(crate) fn note_path_mtu(&mut self, now: Instant, remote: Address, said: u16) {
        self.ip.path_mtus.note(now, remote, said);
        self.checks.narrow_paths |= self.ip.path_mtus.has_narrow();
    }

    /// Probes of a connection found what the path to `remote` carries.
    pub(crate) fn note_path_finding(&mut self, now: Instant, remote: Address, found: PathFinding) {
        match found {
            PathFinding::Narrow(mtu) if mtu < self.mtu() => {
                self.ip.probed_mtus.set(now, remote, mtu);
            }
            PathFinding::Narrow(_) | PathFinding::Wide => self.ip.probed_mtus.forget(&remote),
        }
    }

    /// Addresses a packet. `false` if it does not leave now.
    #[inline]
    pub(crate) fn transmit(&mut self, tx: &mut TxSegment, now: Instant) -> bool {
        // Where frames begin with their IP header, and none is for this host itself, it leaves unchanged.
        if self.checks.is_nothing() && self.link.is_none() {
            return true;
        }
        self.transmit_addressed(tx, now)
    }

    #[inline(never)]
    fn transmit_addressed(&mut self, tx: &mut TxSegment, now: Instant) -> bool {
        if self.checks.destinations && !self.leaves(tx) {
            return false;
        }
        if self.checks.narrow_paths {
            self.check_narrow_path(tx, now);
        }
        self.transmit_to_device(tx, now)
    }

    #[cold]
    #[inline(never)]
    fn check_narrow_path(&mut self, tx: &mut TxSegment, now: Instant) {
        self.ip.path_mtus.sweep(now);
        self.checks.narrow_paths = self.ip.path_mtus.has_narrow();
        self.ip.allow_fragments(now, tx);
    }

    /// True if a packet leaves this host; if it is for itself, it is kept.
    #[cold]
    #[inline(never)]
    fn leaves(&mut self, tx: &mut TxSegment) -> bool {
        let packet = tx.header().get(self.ip.link_header_len()..).unwrap_or_default();
        let Some(dst) = destination_of(packet) else { return true };
        if self.ip.addresses.is_local(&dst) {
            match self.looped.push(core::mem::take(tx)) {
                Ok(()) => self.ip.counters.looped += 1,
                Err(QueueFull) => self.ip.counters.looped_dropped += 1,
            }
            return false;
        }
        // RFC 1122 3.2.1.3 (g): "Addresses of this form MUST NOT appear outside a host." An Ethernet looks
        // for the route itself.
        let has_way = self.link.is_some() || self.ip.routes.find(&dst).is_some();
        let leaves = has_way && !dst.to_ip().is_loopback();
        self.ip.counters.out_no_routes += u64::from(!leaves);
        leaves
    }

    /// The next packet that this host sent to itself.
    pub(crate) fn pop_looped(&mut self) -> Option<TxSegment> {
        self.looped.pop()
    }

    /// True if there is one.
    #[inline]
    pub(crate) fn has_looped(&self) -> bool {
        !self.looped.is_empty()
    }

    /// Returns their number.
    pub(crate) fn looped(&self) -> usize {
        self.looped.len()
    }

    /// Addresses a packet that goes by the wire in any case; `false` if it does not leave now.
    fn transmit_to_device(&mut self, tx: &mut TxSegment, now: Instant) -> bool {
        match &mut self.link {
            None => true,
            Some(link) => link.transmit(&self.ip.routes, tx, now),
        }
    }

    /// Nothing comes back from `dst` (RFC 9293 3.8.3, R1).
    pub(crate) fn suspect_path(&mut self, dst: &Address, now: Instant) {
        if let Some(link) = self.link.as_mut() {
            link.suspect(&self.ip.routes, dst, now);
        }
    }

    /// Fills `batch` with what the link itself has to send.
    pub(crate) fn tx_link(&mut self, batch: &mut TxBatch) {
        if let Some(link) = &mut self.link {
            link.tx(&self.ip.addresses, batch);
        }
    }

    /// True if [`Net::tx_link`] has something to send.
    pub(crate) fn link_waits(&self) -> bool {
        self.link.as_ref().is_some_and(Link::waits)
    }

    /// Does up to `left` of what is due on the link, and takes it from `left`.
    pub(crate) fn advance_link(&mut self, now: Instant, left: &mut usize) {
        if let Some(link) = &mut self.link {
            link.advance(&self.ip.addresses, &self.ip.routes, now, left);
        }
    }

    /// Takes the report about the next packet that could not leave because its neighbour did not
    /// answer.
    pub(crate) fn pop_unreachable(&mut self) -> Option<ErrorReport> {
        loop {
            let packet = self.link.as_mut()?.pop_failed()?;
            let header = packet.header().get(EthernetHeader::LEN..).unwrap_or_default();
            // Of an ICMP message, which has no room in the headers, these bytes tell what it is.
            let data = packet.payload.as_slice().first().map_or(&[][..], |first| first);
            let quoted = [header, data.get(..QUOTED).unwrap_or(data)].concat();
            if let Some(report) = self.ip.report_unsent(&quoted) {
                return Some(report);
            }
        }
    }

    /// Memory of the packets that it holds, bytes.
    pub(crate) fn memory(&self) -> usize {
        let waiting = self.link.as_ref().map_or(0, |link| link.neighbours().waiting());
        self.ip.reassembly.bytes()
            + self.replies.len() * size_of::<PendingReply>()
            + waiting * size_of::<TxSegment>()
    }

    /// When packets of this host to itself, or echo requests that are under way, are due.
    #[inline]
    pub(crate) fn own_packets_deadline(&self, now: Instant) -> Option<Instant> {
        match self.has_looped() {
            true => Some(now),
            false => self.pings.next_deadline(),
        }
    }

    /// When [`Net::advance_link`] must be called at the latest.
    pub(crate) fn next_link_deadline(&self) -> Option<Instant> {
        self.link.as_ref()?.next_deadline()
    }
}

/// Bytes of a message that an ICMP error quotes at least (RFC 792).
const QUOTED: usize = 8;
