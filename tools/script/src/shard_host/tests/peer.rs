//! A peer written by hand, and short forms of calls.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_posix::{Domain, Errno, MsgFlags, Protocol, SocketFlags, SocketType};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::BufferPolicy;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpOptions};
use whimbrel_wire::{
    Endpoint, IpHeader, Ipv4Header, Protocol as WireProtocol, RawWindow, SeqNum, Sum,
};

use crate::call::{Call, Filled, ReadCall, Reading, Returned, Unconnected, WriteCall, Writing};
use crate::host::{CallId, Network, Progress, ScriptHost};
use crate::shard_host::ShardHost;

pub(super) const PORT: u16 = 8080;
pub(super) const PEER_PORT: u16 = 40_000;
pub(super) const PEER_ISN: u32 = 1_000;

/// A host whose receive buffer fits in the window field without a scale.
pub(super) fn host() -> ShardHost {
    let (recv_buffer, recv_buffer_max) = (65_535, 65_535);
    let buffers = BufferPolicy::Exact;
    let send_auto = false;
    let tunables =
        Tunables { recv_buffer, recv_buffer_max, buffers, send_auto, ..Tunables::default() };
    ShardHost::new(&Network::v4(), tunables).expect("a valid configuration")
}

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A segment that left.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) at: Duration,
    pub(super) tcp: TcpHeader,
    pub(super) text: Vec<u8>,
}

/// All segments so far, with their checksums verified.
pub(super) fn seen(host: &mut ShardHost) -> Vec<Seen> {
    core::iter::from_fn(|| host.poll_packet()).map(|(at, packet)| read(at, &packet)).collect()
}

/// The only segment that left.
pub(super) fn only(host: &mut ShardHost) -> Seen {
    let mut seen = seen(host);
    assert_eq!(seen.len(), 1, "{seen:?}");
    seen.remove(0)
}

fn read(at: Duration, packet: &[u8]) -> Seen {
    let (ip, segment) = IpHeader::parse(packet).expect("an IP packet");
    let len = segment.len() as u32;
    let sum = Sum::pseudo_header(ip.src, ip.dst, WireProtocol::TCP.0, len).add_bytes(segment);
    assert_eq!(sum.finish(), 0, "the checksum is done");
    let (tcp, text_at) = TcpHeader::parse(segment).expect("a TCP header");
    Seen { at, tcp, text: segment[text_at..].to_vec() }
}

/// A segment of the peer: `seq` counts from its SYN, `ack` is as in the header.
pub(super) fn segment(
    ports: (u16, u16),
    flags: TcpFlags,
    numbers: (u32, u32),
    text: &[u8],
) -> Vec<u8> {
    let (seq, ack) = numbers;
    let Network { local, remote, .. } = Network::v4();
    let syn = flags.contains(TcpFlags::SYN);
    let options =
        TcpOptions { mss: syn.then_some(whimbrel_wire::Mss::new(1460)), ..TcpOptions::default() };
    let header = TcpHeader {
        src_port: ports.0,
        dst_port: ports.1,
        seq: SeqNum::new(PEER_ISN + seq),
        ack: SeqNum::new(ack),
        flags,
        window: RawWindow::new(32_000),
        urgent: 0,
        options,
    };
    let mut tcp = vec![0; header.header_len(OptionOrder::Linux)];
    header.emit(OptionOrder::Linux, &mut tcp);
    tcp.extend_from_slice(text);
    let pseudo = Sum::pseudo_header(remote, local, WireProtocol::TCP.0, tcp.len() as u32);
    let checksum = pseudo.add_bytes(&tcp).finish();
    TcpHeader::set_checksum(&mut tcp, checksum);
    let mut packet = vec![0; Ipv4Header::LEN];
    let ip = Ipv4Header::new(
        remote.v4_bytes().into(),
        local.v4_bytes().into(),
        WireProtocol::TCP,
        tcp.len(),
    );
    ip.emit(&mut packet);
    packet.extend(tcp);
    packet
}

/// A segment from the peer to the listener.
pub(super) fn inject(host: &mut ShardHost, flags: TcpFlags, numbers: (u32, u32), text: &[u8]) {
    host.inject(&segment((PEER_PORT, PORT), flags, numbers, text));
}

/// Value of a call that does not block.
pub(super) fn done(host: &mut ShardHost, call: Call) -> Result<i64, Errno> {
    returned(host, call).value
}

pub(super) fn returned(host: &mut ShardHost, call: Call) -> Returned {
    match host.call(call) {
        Progress::Done(returned) => returned,
        Progress::Blocked(_) => panic!("it blocks"),
    }
}

pub(super) fn blocked(host: &mut ShardHost, call: Call) -> CallId {
    match host.call(call) {
        Progress::Blocked(id) => id,
        Progress::Done(returned) => panic!("it does not block: {returned:?}"),
    }
}

pub(super) fn socket(host: &mut ShardHost) -> i32 {
    let call = Call::Socket {
        domain: Domain::Inet,
        kind: SocketType::Stream,
        flags: SocketFlags::NONE,
        protocol: Protocol::Tcp,
    };
    done(host, call).expect("a free descriptor") as i32
}

pub(super) fn listener(host: &mut ShardHost) -> i32 {
    let fd = socket(host);
    let to = Endpoint::new(Domain::Inet.unspecified(), PORT);
    assert_eq!(done(host, Call::Bind { fd, to }), Ok(0));
    assert_eq!(done(host, Call::Listen { fd, backlog: 1 }), Ok(0));
    fd
}

pub(super) fn accept(fd: i32) -> Call {
    Call::Accept { fd, flags: SocketFlags::NONE }
}

pub(super) fn recv(fd: i32, sizes: &[usize], flags: MsgFlags) -> Call {
    let call = if sizes.len() == 1 { ReadCall::Recv } else { ReadCall::Readv };
    Call::Receive { fd, with: Reading { call, sizes: sizes.to_vec() }, flags }
}

pub(super) fn send(fd: i32, pieces: &[&[u8]]) -> Call {
    let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
    let with =
        Writing { call: WriteCall::SendTo, pieces, to: None, unconnected: Unconnected::Fails };
    Call::Send { fd, with, flags: MsgFlags::NONE }
}

pub(super) fn bytes(returned: &Returned) -> &[u8] {
    match &returned.out {
        Filled::Bytes(bytes, _) => bytes,
        other => panic!("nothing was read: {other:?}"),
    }
}

/// Opens a connection from the peer; returns the host's ISN.
pub(super) fn handshake(host: &mut ShardHost) -> u32 {
    inject(host, TcpFlags::SYN, (0, 0), &[]);
    let syn_ack = only(host);
    assert_eq!(syn_ack.tcp.flags, TcpFlags::SYN | TcpFlags::ACK);
    let isn = syn_ack.tcp.seq.raw();
    inject(host, TcpFlags::ACK, (1, isn + 1), &[]);
    isn
}

/// A host with a listener and a connection, their descriptors, and the host's ISN.
pub(super) fn joined() -> (ShardHost, i32, i32, u32) {
    let mut host = host();
    let listening = listener(&mut host);
    let isn = handshake(&mut host);
    let fd = done(&mut host, accept(listening)).expect("a connection") as i32;
    (host, listening, fd, isn)
}

/// Runs to `until`, over any number of stops.
pub(super) fn run(host: &mut ShardHost, until: Duration) {
    while host.now() < until {
        host.run_until(until);
    }
}
