//! The peer of a kernel under test, segment by segment.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::time::{Duration, Instant};

use whimbrel_kernel::{KernelHost, KernelHostError};
use whimbrel_posix::{Domain, MsgFlags, Protocol, SocketFlags, SocketType};
use whimbrel_script::call::{
    Call, Filled, ReadCall, Reading, Returned, Unconnected, WriteCall, Writing,
};
use whimbrel_script::host::{CallId, Network, Progress, ScriptHost};
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader};
use whimbrel_wire::{
    Address, Endpoint, Family, IpHeader, Ipv4Header, Ipv6Header, RawWindow, SeqNum, Sum,
};

#[path = "../../../../tests/harness/needs.rs"]
pub(crate) mod needs;

/// A kernel and the one connection that a test has with it.
pub(crate) struct Peer {
    pub(crate) host: KernelHost,
    network: Network,
    /// Ports of the peer and of the kernel.
    pub(crate) ports: (u16, u16),
    /// Next sequence numbers of the peer and of the kernel.
    pub(crate) next: (u32, u32),
}

/// A segment that the kernel sent.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) at: Duration,
    pub(crate) tcp: TcpHeader,
    pub(crate) text: Vec<u8>,
}

/// Creates a kernel host; `None`, after a message, if the system does not allow it. With
/// `WHIMBREL_REQUIRE_NET=1` that is a failure.
pub(crate) fn kernel(network: &Network) -> Option<Peer> {
    if network.local.family() == Family::V6 && !needs::found(&[needs::IPV6]) {
        return None;
    }
    match KernelHost::new(network) {
        Ok(host) => {
            Some(Peer { host, network: network.clone(), ports: (40_000, 8080), next: (1000, 0) })
        }
        Err(error) => {
            assert!(error.is_privilege_or_device(), "{error}");
            assert!(!matches!(error, KernelHostError::Network(_)), "{error}");
            needs::skip(&error.to_string());
            None
        }
    }
}

impl Peer {
    /// Makes a call that must not block. Returns its result.
    pub(crate) fn call(&mut self, call: Call) -> Returned {
        match self.host.call(call.clone()) {
            Progress::Done(returned) => returned,
            Progress::Blocked(_) => panic!("{call:?} blocks"),
        }
    }

    /// Returns the value of a call that must succeed.
    pub(crate) fn value(&mut self, call: Call) -> i32 {
        let returned = self.call(call.clone());
        let value = returned.value.unwrap_or_else(|error| panic!("{call:?}: {error}"));
        i32::try_from(value).unwrap()
    }

    /// Makes a call that must block.
    pub(crate) fn blocked(&mut self, call: Call) -> CallId {
        match self.host.call(call.clone()) {
            Progress::Blocked(number) => number,
            Progress::Done(returned) => panic!("{call:?} does not block: {returned:?}"),
        }
    }

    /// Returns the end of a call that blocked, and its result.
    pub(crate) fn end(&mut self, call: CallId) -> (Duration, Returned) {
        let begun = Instant::now();
        loop {
            if let Some(end) = self.host.poll_call(call) {
                return end;
            }
            assert!(begun.elapsed() < PATIENCE, "{call:?} does not end");
            self.pass(Duration::from_millis(10));
        }
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.host.now() + time;
        self.host.run_until(until);
    }

    pub(crate) fn socket(&mut self, flags: SocketFlags) -> i32 {
        let domain = match self.network.local.family() {
            Family::V4 => Domain::Inet,
            Family::V6 => Domain::Inet6,
        };
        let (kind, protocol) = (SocketType::Stream, Protocol::Tcp);
        self.value(Call::Socket { domain, kind, flags, protocol })
    }

    /// Returns a socket that listens at port 8080.
    pub(crate) fn listener(&mut self) -> i32 {
        let fd = self.socket(SocketFlags::NONE);
        let to = Endpoint::new(self.network.local, 8080);
        self.value(Call::Bind { fd, to });
        self.value(Call::Listen { fd, backlog: 1 });
        fd
    }

    pub(crate) fn remote(&self) -> Endpoint {
        Endpoint::new(self.network.remote, self.ports.0)
    }

    /// Sends a segment with the peer's next number, and advances it.
    pub(crate) fn send(&mut self, flags: TcpFlags, text: &[u8]) {
        let tcp = TcpHeader {
            src_port: self.ports.0,
            dst_port: self.ports.1,
            seq: SeqNum::new(self.next.0),
            ack: SeqNum::new(if flags.contains(TcpFlags::ACK) { self.next.1 } else { 0 }),
            flags,
            window: RawWindow::new(65_535),
            ..TcpHeader::default()
        };
        self.host.inject(&self.packet(&tcp, text));
        let control = flags.intersects(TcpFlags::SYN | TcpFlags::FIN);
        self.next.0 += text.len() as u32 + u32::from(control);
    }

    /// Sends a segment without text with the header `tcp`, from the peer's port to the kernel's.
    /// Advances no number.
    pub(crate) fn send_as(&mut self, tcp: &TcpHeader) {
        let (src_port, dst_port) = self.ports;
        let window = RawWindow::new(65_535);
        let tcp = TcpHeader { src_port, dst_port, window, ..*tcp };
        self.host.inject(&self.packet(&tcp, &[]));
    }

    /// Returns the next segment, which must arrive; the peer's next acknowledgment covers it.
    pub(crate) fn receive(&mut self) -> Segment {
        let begun = Instant::now();
        loop {
            if let Some((at, packet)) = self.host.poll_packet() {
                let (ip, payload) = IpHeader::parse(&packet).unwrap();
                assert_eq!((ip.src, ip.dst), (self.network.local, self.network.remote));
                let (tcp, text_at) = TcpHeader::parse(payload).unwrap();
                let pseudo = Sum::pseudo_header(ip.src, ip.dst, 6, payload.len() as u32);
                assert_eq!(
                    pseudo.add_bytes(payload).fold(),
                    0xffff,
                    "the checksum is not finished"
                );
                let text = payload[text_at..].to_vec();
                let control = tcp.flags.intersects(TcpFlags::SYN | TcpFlags::FIN);
                self.next.1 = tcp.seq.raw() + text.len() as u32 + u32::from(control);
                return Segment { at, tcp, text };
            }
            assert!(begun.elapsed() < PATIENCE, "no segment comes");
            self.pass(Duration::from_millis(10));
        }
    }

    /// Exchanges the three segments of a handshake with port 8080.
    pub(crate) fn shake_hands(&mut self) {
        self.send(TcpFlags::SYN, &[]);
        assert_eq!(self.receive().tcp.flags, TcpFlags::SYN_ACK);
        self.send(TcpFlags::ACK, &[]);
    }

    fn packet(&self, tcp: &TcpHeader, text: &[u8]) -> Vec<u8> {
        let mut segment = vec![0; TcpHeader::MAX_LEN];
        let len = tcp.emit(OptionOrder::Linux, &mut segment);
        segment.truncate(len);
        segment.extend_from_slice(text);
        let (from, to) = (self.network.remote, self.network.local);
        let pseudo = Sum::pseudo_header(from, to, 6, segment.len() as u32);
        let checksum = pseudo.add_bytes(&segment).finish();
        TcpHeader::set_checksum(&mut segment, checksum);
        let mut packet = ip_header(from, to, segment.len() as u16);
        packet.extend_from_slice(&segment);
        packet
    }
}

/// `read(fd, …, size)`.
pub(crate) fn read(fd: i32, size: usize) -> Call {
    let with = Reading { call: ReadCall::Read, sizes: vec![size] };
    Call::Receive { fd, with, flags: MsgFlags::NONE }
}

/// `write(fd, …, size)`.
pub(crate) fn write(fd: i32, size: usize) -> Call {
    let with = Writing {
        call: WriteCall::Write,
        pieces: vec![vec![7; size]],
        to: None,
        unconnected: Unconnected::Fails,
    };
    Call::Send { fd, with, flags: MsgFlags::NONE }
}

/// Returns the bytes that a call read.
pub(crate) fn bytes(returned: &Returned) -> &[u8] {
    match &returned.out {
        Filled::Bytes(bytes, _) => bytes,
        other => panic!("{other:?}"),
    }
}

fn ip_header(from: Address, to: Address, payload_len: u16) -> Vec<u8> {
    use std::net::IpAddr;
    let protocol = whimbrel_wire::Protocol::TCP;
    match (from.to_ip(), to.to_ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut bytes = vec![0; Ipv4Header::LEN];
            Ipv4Header::new(src, dst, protocol, payload_len.into()).emit(&mut bytes);
            bytes
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut bytes = vec![0; Ipv6Header::LEN];
            Ipv6Header::new(src, dst, protocol, payload_len.into()).emit(&mut bytes);
            bytes
        }
        _ => panic!("two families"),
    }
}

const PATIENCE: Duration = Duration::from_secs(5);
