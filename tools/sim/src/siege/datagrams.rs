//! Datagram sockets under siege: calls of applications, sensible or not, and datagrams of the
//! besieger.
//!
//! Each byte of a datagram follows from its position, so that fragments out of place are seen.

use bytes::Bytes;
use whimbrel_base::packet::{RxChecksum, SegMeta, TxChecksum, TxSegment};
use whimbrel_stack::SendTo;
use whimbrel_stack::ip::Unreachable;
use whimbrel_stack::udp::{Bind, Fragmenting, Local, SendOptions, Sharing};
use whimbrel_wire::{
    Address, Endpoint, Family, IpHeader, Protocol, TrafficClass, UdpHeader, UdpView,
};

use super::Siege;
use super::fault::{Fault, judge};
use super::fuzzed_host::{self, PORTS};
use super::packet::{FILLER, wrap};
use super::script::Script;

/// Most sockets that applications hold at once.
const MOST_SOCKETS: usize = 8;
/// Ports that sockets are usually bound to.
const OPEN: [u16; 4] = [53, 54, PORTS[0], 0];
/// Reasons to refuse a datagram.
const REFUSALS: [Unreachable; 4] =
    [Unreachable::Port, Unreachable::Host, Unreachable::Network, Unreachable::Prohibited];

/// Calls.
impl Siege {
    /// Makes one call on a datagram socket.
    pub(super) fn call_socket(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        let (which, call) = (script.below(MOST_SOCKETS), script.below(20));
        if self.sockets.is_empty() || call < 2 {
            self.bind(script);
            return Ok(());
        }
        let place = which % self.sockets.len();
        let socket = self.sockets[place];
        match call {
            2 | 3 => drop(self.shard.udp_connect(socket, self.draw_peer(script))),
            4 => drop(self.shard.udp_disconnect(socket)),
            5..=10 => self.send_datagrams(place, script),
            11..=13 => self.receive(place, script)?,
            14 => drop(self.shard.udp_take_error(socket)),
            15 => self.shard.udp_set_options(socket, options(script)),
            16 => self.shard.udp_set_recv_size(socket, size(script)),
            17 => self.shard.udp_set_send_size(socket, size(script)),
            18 => self.inject(script),
            _ => {
                self.sockets.swap_remove(place);
                judge(self.shard.udp_close(socket), || "a socket that is none".into())?;
                judge(!self.shard.udp_close(socket), || "closed twice".into())?;
            }
        }
        Ok(())
    }

    fn bind(&mut self, script: &mut Script<'_>) {
        if self.sockets.len() >= MOST_SOCKETS {
            return;
        }
        let family = script.one_of(self.families);
        let local = match script.below(5) {
            4 => return self.bind_any(script),
            0 => Local::Both,
            1 => Local::Every(family),
            2 => Local::Address(fuzzed_host::ours(family, script.u8())),
            _ => Local::Address(self.draw_address(script)),
        };
        let sharing = script.one_of(&[Sharing::Shared, Sharing::Alone]);
        let bound = self.shard.udp_bind(&Bind { local, port: script.one_of(&OPEN), sharing });
        self.sockets.extend(bound);
    }

    /// Binds a socket for any destination, its own or the shared one.
    fn bind_any(&mut self, script: &mut Script<'_>) {
        if script.rarely(2) {
            self.shard.take_any_address();
        }
        self.sockets.extend(self.shard.udp_bind_any());
    }

    fn draw_address(&self, script: &mut Script<'_>) -> Address {
        let family = script.one_of(self.families);
        match script.below(8) {
            0..=3 => fuzzed_host::peer(family, script.u8()),
            4 => fuzzed_host::ours(family, script.u8()),
            5 => fuzzed_host::router(family, script.u8()),
            6 => match family {
                Family::V4 => Address::from_v4_bytes([10, 0, 0, 255]),
                Family::V6 => Address::from(std::net::Ipv6Addr::UNSPECIFIED),
            },
            _ => Address::from_v4_bytes([script.u8(), 0, 0, script.u8()]),
        }
    }

    fn draw_peer(&self, script: &mut Script<'_>) -> Endpoint {
        Endpoint::new(self.draw_address(script), script.one_of(&[9_000, 9_001, 53, 0]))
    }

    /// Sends datagrams, usually to an existing peer, with any ancillary data.
    fn send_datagrams(&mut self, place: usize, script: &mut Script<'_>) {
        let socket = self.sockets[place];
        let source = script.rarely(4).then(|| self.draw_address(script));
        let drawn = self.shard.udp().is_any(socket) || script.rarely(8);
        let source_port = drawn.then(|| script.one_of(&OPEN));
        let to = (script.below(3) > 0).then(|| self.draw_peer(script));
        let options = script.rarely(3).then(|| options(script));
        let (len, segment) = (length(script), script.rarely(4).then(|| script.u16() >> 3));
        // Each of several datagrams begins anew.
        let data = match segment.map(usize::from) {
            Some(each @ 1..) => (0..len).map(|at| byte(at % each)).collect(),
            _ => Bytes::from(content(len)),
        };
        let mut send = to.map_or(SendTo::CONNECTED, SendTo::peer);
        (send.source, send.source_port) = (source, source_port);
        (send.segment, send.options) = (segment, options);
        for _ in 0..1 + script.below(16) / 12 * 40 {
            let _ = self.shard.udp_send(socket, data.clone(), &send);
        }
    }

    /// Receives some of the waiting datagrams, or all.
    fn receive(&mut self, place: usize, script: &mut Script<'_>) -> Result<(), Fault> {
        let socket = self.sockets[place];
        let port = self.shard.udp().local(socket).map(|local| local.port);
        for _ in 0..script.u8() {
            let first = self.shard.udp_peek(socket).cloned();
            let received = self.shard.udp_recv(socket);
            judge(first == received, || format!("{first:?} was first, {received:?} came"))?;
            let Some(received) = received else { break };
            let is_its = Some(received.to.port) == port || self.shard.udp().is_any(socket);
            judge(is_its, || format!("{received:?} at {port:?}"))?;
            match script.below(16) {
                0 => self.shard.udp_refuse(&received, script.one_of(&REFUSALS)),
                1 => {
                    let answer = SendTo::answer(&received);
                    let _ = self.shard.udp_send(socket, Bytes::from(content(9)), &answer);
                }
                _ => {}
            }
            // The besieger also sends datagrams of one repeated byte.
            if received.data.iter().any(|byte| *byte != FILLER) {
                judge_content(0, &received.data)?;
            }
        }
        Ok(())
    }

    /// Sends an application's own packet.
    fn inject(&mut self, script: &mut Script<'_>) {
        let family = script.one_of(self.families);
        let (from, to) = (fuzzed_host::ours(family, 0), fuzzed_host::peer(family, script.u8()));
        let packet = wrap(from, to, Protocol(253), &content(length(script)));
        let _ = self.shard.inject(Bytes::from(packet));
    }
}

/// Input of the sockets.
impl Siege {
    /// Sends a datagram, right or wrong, to a socket or to an unused port.
    pub(super) fn besiege_sockets(&mut self, script: &mut Script<'_>) -> Result<(), Fault> {
        let family = script.one_of(self.families);
        let (from, drawn) = (self.draw_peer(script), script.u8());
        let to = match drawn {
            // Usually an address without a host.
            240.. => Some(self.draw_address(script)).filter(|it| it.family() == family),
            _ => None,
        };
        let to = to.unwrap_or_else(|| fuzzed_host::ours(family, drawn));
        let from =
            if from.addr.family() == family { from.addr } else { fuzzed_host::peer(family, 0) };
        let known = self.sockets.get(script.below(MOST_SOCKETS));
        let port = known.and_then(|socket| self.shard.udp().local(*socket));
        let dst_port = port.map_or(script.one_of(&[9, 53, 0]), |local| local.port);
        let header = UdpHeader { src_port: script.one_of(&[9_000, 9_001, 53, 0]), dst_port };
        let data = content(length(script));
        let mut bytes = vec![0; UdpHeader::LEN + data.len()];
        header.emit_datagram(from, to, &data, &mut bytes);
        let mut meta = SegMeta::SINGLE;
        match script.below(10) {
            0 => bytes[4..6].copy_from_slice(&script.u16().to_be_bytes()),
            1 => bytes[6] ^= 1 << script.below(8),
            2 => bytes.truncate(script.below(9)),
            3 if self.offload && !data.is_empty() => {
                let each = script.one_of(&[1_000_u16, 1, 7, 65_535]);
                let segs = data.len().div_ceil(each.into()) as u16;
                // A merged datagram does not say where each part began.
                bytes[UdpHeader::LEN..].fill(FILLER);
                meta = SegMeta { segs, gso_size: each, checksum: RxChecksum::Verified };
            }
            4 if self.offload => meta.checksum = RxChecksum::Partial,
            _ => {}
        }
        self.send_packet(wrap(from, to, Protocol::UDP, &bytes), meta, false, script)
    }
}

/// Checks that the contents of a datagram packet of the host are in place.
pub(super) fn judge_sent(ip: &IpHeader, payload: &[u8], segment: &TxSegment) -> Result<(), Fault> {
    let offset = ip.fragment.map_or(0, |fragment| usize::from(fragment.offset));
    if ip.fragment.is_none() {
        let view = match segment.checksum {
            TxChecksum::Done => UdpView::parse(ip.src, ip.dst, payload),
            TxChecksum::Partial(_) => UdpView::parse_verified(ip.src.family(), payload),
        };
        judge(view.is_ok(), || format!("sent a wrong datagram: {view:?}"))?;
    }
    let header = UdpHeader::LEN.saturating_sub(offset).min(payload.len());
    let data = &payload[header..];
    match usize::from(segment.gso_size) {
        0 => judge_content(offset.saturating_sub(UdpHeader::LEN), data),
        each => data.chunks(each).try_for_each(|datagram| judge_content(0, datagram)),
    }
}

/// Content of datagrams: each byte follows from its position.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(byte).collect()
}

const fn byte(place: usize) -> u8 {
    (place / 8 % 251) as u8
}

fn judge_content(from: usize, bytes: &[u8]) -> Result<(), Fault> {
    let wrong = bytes.iter().enumerate().position(|(at, it)| *it != byte(from + at));
    judge(wrong.is_none(), || format!("byte {wrong:?} of {} from {from} on", bytes.len()))
}

/// Length of a datagram: none, few, a packet's, or the maximum.
fn length(script: &mut Script<'_>) -> usize {
    match script.below(8) {
        0 => 0,
        1..=3 => usize::from(script.u8()),
        4 => 1_400 + usize::from(script.u8()),
        5 => 65_507 - usize::from(script.u8() % 64),
        _ => usize::from(script.u16()) % 9_000,
    }
}

fn size(script: &mut Script<'_>) -> usize {
    script.one_of(&[0, 1, 2_048, 4_096, 65_536, 1 << 20, usize::MAX])
}

fn options(script: &mut Script<'_>) -> SendOptions {
    let mut options = SendOptions::new();
    options.hop_limit = script.rarely(2).then(|| script.u8());
    options.class = TrafficClass(script.u8());
    options.fragmenting = script.one_of(&[Fragmenting::Allowed, Fragmenting::Refused]);
    options
}
