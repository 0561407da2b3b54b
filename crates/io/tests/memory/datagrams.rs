//! Memory of a host with UDP sockets under all kinds of input: to its ports, to any port, damaged,
//! in fragments, and errors about packets that it never sent.

use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::udp::{Bind, Local};
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, RxFrame, Shard, ShardConfig, TxBatch, UdpHandle,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{
    Address, Endpoint, IcmpMessage, Icmpv6Message, Ipv4Header, Ipv6Header, Protocol, UdpHeader,
};

use crate::allocator::held;

/// Limit in bytes of two unread sockets, each with `SO_RCVBUF` and one datagram more.
const UNREAD: isize = 2 * ((208 << 10) + (64 << 10));
/// Limit in bytes of all fragments, 4,096 destinations of a lesser MTU, waiting replies and what
/// they quote.
const OTHERS: isize = (1 << 20) + 4_096 * 100 + 1_024 * 128 + (1 << 20);
/// Bytes that the host may allocate for one packet in addition to its own: a queue that doubles.
const STEP: isize = 256 << 10;
/// Bytes of the chunks that a shard keeps for short datagrams.
const SHARED: usize = 17 * (512 + 64);
/// Bytes of the trees and lists that all senders share.
const SLACK: isize = 64 << 10;

const OPEN: u16 = 53;
const OURS: [u8; 4] = [10, 0, 0, 1];
const OURS_V6: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const PACKETS: u32 = 8_000;
/// Bytes of payload in each of a datagram's three fragments.
const THIRD: usize = 1_336;

struct Host {
    shard: Shard,
    sockets: [UdpHandle; 2],
}

impl Host {
    /// Creates an unconnected socket, and one that is connected to the peer numbered 0.
    fn new() -> Self {
        let own = |addr, prefix_len| InterfaceAddress { addr, prefix_len };
        let mut shard = Shard::new(ShardConfig {
            tunables: Tunables::default(),
            secrets: Secrets::from_seed(1),
            capabilities: Capabilities::plain(Medium::Ip, 1_500),
            addresses: vec![
                own(Address::from_v4_bytes(OURS), 8),
                own(Address::from_bytes(OURS_V6), 64),
            ],
            routes: Vec::new(),
        })
        .unwrap();
        let open = shard.udp_bind(&Bind::new(Local::Both, OPEN)).unwrap();
        let connected = shard.udp_bind(&Bind::new(Local::Both, OPEN + 1)).unwrap();
        shard.udp_connect(connected, Endpoint::new(peer(4, 0), OPEN)).unwrap();
        Self { shard, sockets: [open, connected] }
    }

    fn send_all(&mut self) {
        let mut batch = TxBatch::new(64);
        while self.shard.tx(&mut batch) || !batch.is_empty() {
            batch.consume(batch.pending().len());
        }
    }

    /// Closes the sockets and lets time pass: no memory is left.
    fn end(mut self, base: isize) {
        self.send_all();
        while self.shard.poll_event().is_some() {}
        assert!(self.sockets.into_iter().all(|socket| self.shard.udp_close(socket)));
        while self.shard.advance(Instant::from_millis(900_000), 64) {}
        self.send_all();
        assert!(self.shard.udp().is_empty());
        assert_eq!((self.shard.udp().held(), self.shard.census().fragment_bytes), (0, 0));
        // Destinations of a lesser MTU stay until others replace them.
        let left = held() - base;
        assert!(left <= SLACK + 4_096 * 100, "{left} bytes left");
    }
}

/// Passes packets to the host, one at a time; it sends after each `every`.
fn pour(what: &str, every: u32, packet: impl Fn(u32) -> Vec<u8>) {
    let base = held();
    let mut host = Host::new();
    let fixed = held();
    for number in 0..PACKETS {
        let packet = packet(number);
        let before = held();
        let now = Instant::from_nanos(u64::from(number) * 1_000);
        host.shard.rx(now, &[RxFrame::new(&packet, SegMeta::SINGLE)]);
        let taken = held() - before;
        assert!(taken <= packet.len() as isize + STEP, "{what}: {taken} bytes for one packet");
        let held = held() - fixed - packet.capacity() as isize;
        assert!(held <= UNREAD + OTHERS + SLACK, "{what}: {held} bytes are held");
        if number % every == every - 1 {
            host.send_all();
        }
    }
    host.end(base);
}

/// Returns a peer's address in this family.
fn peer(family: u8, number: u32) -> Address {
    let [_, high, mid, low] = number.to_be_bytes();
    if family == 4 {
        return Address::from_v4_bytes([10, 1 + high, mid, low]);
    }
    let mut bytes = OURS_V6;
    bytes[12..].copy_from_slice(&[1, high, mid, low]);
    Address::from_bytes(bytes)
}

fn wrap(family: u8, number: u32, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    let src = peer(family, number);
    let mut packet = if family == 4 {
        let mut bytes = vec![0; Ipv4Header::LEN];
        let (src, dst) = (src.v4_bytes().into(), OURS.into());
        Ipv4Header::new(src, dst, protocol, payload.len()).emit(&mut bytes);
        bytes
    } else {
        let mut bytes = vec![0; Ipv6Header::LEN];
        let (src, dst) = ((*src.as_bytes()).into(), OURS_V6.into());
        Ipv6Header::new(src, dst, protocol, payload.len()).emit(&mut bytes);
        bytes
    };
    packet.extend_from_slice(payload);
    packet
}

fn ours(family: u8) -> Address {
    if family == 4 { Address::from_v4_bytes(OURS) } else { Address::from_bytes(OURS_V6) }
}

/// Returns a datagram of the peer of this number to a port.
fn payload(family: u8, number: u32, dst_port: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; UdpHeader::LEN + data.len()];
    let header = UdpHeader { src_port: OPEN, dst_port };
    header.emit_datagram(peer(family, number), ours(family), data, &mut bytes);
    bytes
}

fn datagram(family: u8, number: u32, dst_port: u16, data: &[u8]) -> Vec<u8> {
    wrap(family, number, Protocol::UDP, &payload(family, number, dst_port, data))
}

#[test]
fn flood_of_datagrams_stays_within_socket_and_reply_bounds() {
    for family in [4, 6] {
        for every in [1, 1_000, u32::MAX] {
            pour("every port", every, |number| datagram(family, number, number as u16, &[7; 100]));
            for len in [0, 1, 1_400, 9_000] {
                let data = vec![7; len];
                pour("one port", every, |number| datagram(family, number, OPEN, &data));
            }
        }
        pour("a peer", 1, |_| datagram(family, 0, OPEN + 1, &[]));
    }
}

/// Between two datagrams of a socket come four of another, which are read: none shares its chunk with a
/// second one of its own.
#[test]
fn unread_short_datagrams_hold_no_more_than_they_count() {
    for len in [0, 1, 48, 128] {
        let base = held();
        let mut host = Host::new();
        let [unread, read] = host.sockets;
        let fixed = held();
        let packets = [(OPEN, len, 1), (OPEN + 1, 128, 4)]
            .map(|(port, len, times)| (datagram(4, 0, port, &vec![7; len]), times));
        while host.shard.udp().counters.rcvbuf_errors == 0 {
            for (packet, times) in &packets {
                for _ in 0..*times {
                    host.shard.rx(Instant::ZERO, &[RxFrame::new(packet, SegMeta::SINGLE)]);
                }
            }
            while host.shard.udp_recv(read).is_some() {}
            while host.shard.poll_event().is_some() {}
        }
        let (waiting, counted) = (host.shard.udp().waiting(unread), host.shard.udp().held());
        drop(packets);
        let holds = (held() - fixed) as usize;
        assert!(waiting > 200 && holds > waiting * 512, "{waiting} hold {holds} bytes");
        assert!(holds <= counted + SHARED, "{waiting} of {len} hold {holds}, count {counted}");
        host.end(base);
    }
}

#[test]
fn broken_datagrams_are_kept_nowhere() {
    for family in [4, 6] {
        pour("a length that is none", 64, |number| {
            let mut payload = payload(family, number, OPEN, &[7; 64]);
            payload[4..6].copy_from_slice(&(number as u16).to_be_bytes());
            wrap(family, number, Protocol::UDP, &payload)
        });
        pour("a checksum that is none", 64, |number| {
            let mut payload = payload(family, number, OPEN, &[7; 64]);
            payload[6..8].copy_from_slice(&(number as u16).to_be_bytes());
            wrap(family, number, Protocol::UDP, &payload)
        });
        pour("cut off anywhere", 64, |number| {
            let mut packet = datagram(family, number, OPEN, &[7; 64]);
            packet.truncate(number as usize % packet.len());
            packet
        });
        pour("a byte that is another", 64, |number| {
            let mut packet = datagram(family, number, OPEN, &[7; 64]);
            let at = number as usize % packet.len();
            packet[at] ^= (number >> 8) as u8 | 1;
            packet
        });
    }
}

/// Returns the fragment at `at` of a host's datagram to an open port.
fn piece(family: u8, [host, id]: [u32; 2], at: usize) -> Vec<u8> {
    let (len, whole) = (THIRD, payload(family, host, OPEN, &[7; 4_000]));
    let more = at + len < whole.len();
    let part = &whole[at..(at + len).min(whole.len())];
    let place = at as u16 | u16::from(more);
    if family == 4 {
        let mut packet = wrap(4, host, Protocol::UDP, part);
        packet[4..6].copy_from_slice(&(id as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&(place >> 3 | (place & 1) << 13).to_be_bytes());
        packet[10..12].fill(0);
        let checksum = whimbrel_wire::Sum::new().add_bytes(&packet[..Ipv4Header::LEN]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        return packet;
    }
    let mut body = vec![Protocol::UDP.0, 0];
    body.extend(place.to_be_bytes());
    body.extend(id.to_be_bytes());
    body.extend_from_slice(part);
    wrap(6, host, Protocol::FRAGMENT, &body)
}

#[test]
fn fragmented_datagrams_stay_within_fragment_and_socket_bounds() {
    for family in [4, 6] {
        pour("beginnings", 64, |number| piece(family, [number; 2], 0));
        pour("ends", 64, |number| piece(family, [number; 2], 2 * THIRD));
        pour("beginnings of one host", 64, |number| piece(family, [0, number], 0));
        for back in [0, 2] {
            pour("all of each", 64, |number| {
                let [id, at] = [number / 3, (number % 3).abs_diff(back)];
                piece(family, [id % 100, id], at as usize * THIRD)
            });
        }
    }
}

/// Returns an ICMP error about a datagram that claims to be from the host to the peer of this
/// number.
fn error(family: u8, number: u32, src_port: u16, quoted: usize) -> Vec<u8> {
    let datagram = UdpHeader { src_port, dst_port: OPEN };
    let mut bytes = vec![0; UdpHeader::LEN + 1_000];
    let (own, other) = (ours(family), peer(family, number));
    datagram.emit_datagram(own, other, &[7; 1_000], &mut bytes);
    error_about(family, number, Protocol::UDP, &bytes, quoted)
}

/// Returns an ICMP error about an echo reply, as [`error`] does about a datagram.
fn error_about_reply(family: u8, number: u32, quoted: usize) -> Vec<u8> {
    let mut bytes = vec![0; 1_008];
    let (identifier, sequence, data) = (number as u16, 1, &[7; 1_000][..]);
    if family == 4 {
        IcmpMessage::EchoReply { identifier, sequence, data }.emit(&mut bytes);
        return error_about(4, number, Protocol::ICMP, &bytes, quoted);
    }
    let reply = Icmpv6Message::EchoReply { identifier, sequence, data };
    reply.emit(OURS_V6.into(), (*peer(6, number).as_bytes()).into(), &mut bytes);
    error_about(6, number, Protocol::ICMPV6, &bytes, quoted)
}

/// Returns an ICMP error about a packet that carries these bytes.
fn error_about(
    family: u8,
    number: u32,
    protocol: Protocol,
    bytes: &[u8],
    quoted: usize,
) -> Vec<u8> {
    let mut about = wrap(family, number, protocol, bytes);
    let (src, dst) = if family == 4 { (12..16, 16..20) } else { (8..24, 24..40) };
    let to_peer = about[src.clone()].to_vec();
    let from_own = about[dst.clone()].to_vec();
    about[src].copy_from_slice(&from_own);
    about[dst].copy_from_slice(&to_peer);
    about.truncate(quoted);
    let router = number;
    if family == 4 {
        let quoted = &about[..];
        let message = match number % 3 {
            0 => IcmpMessage::FragmentationNeeded { next_hop_mtu: number as u16, quoted },
            _ => IcmpMessage::DestinationUnreachable { code: number as u8 % 16, quoted },
        };
        let mut bytes = vec![0; message.wire_len()];
        message.emit(&mut bytes);
        return wrap(4, router, Protocol::ICMP, &bytes);
    }
    let message = match number % 3 {
        0 => Icmpv6Message::PacketTooBig { mtu: number, quoted: &about },
        _ => Icmpv6Message::DestinationUnreachable { code: number as u8 % 8, quoted: &about },
    };
    let mut bytes = vec![0; message.wire_len()];
    message.emit((*peer(6, router).as_bytes()).into(), OURS_V6.into(), &mut bytes);
    wrap(6, router, Protocol::ICMPV6, &bytes)
}

#[test]
fn errors_about_datagrams_leave_at_most_4096_paths() {
    for family in [4, 6] {
        for quoted in [0, 20, 27, 28, 47, 48, 500] {
            pour("of a socket", 64, |number| error(family, number, OPEN, quoted));
            pour("of none", 64, |number| error(family, number, number as u16, quoted));
        }
        pour("of a connected one", 64, |_| error(family, 0, OPEN + 1, 500));
    }
}

#[test]
fn errors_about_echo_replies_leave_at_most_4096_paths() {
    for family in [4, 6] {
        for quoted in [20, 28, 48, 500] {
            pour("of many", 64, |number| error_about_reply(family, number, quoted));
        }
        pour("of one", 64, |number| error_about_reply(family, number % 3, 500));
    }
}
