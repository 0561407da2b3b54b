//! TUN against the kernel, each test in its own network namespace, which ends with its thread.
//!
//! Needs root. Without it the tests report that and pass; `WHIMBREL_REQUIRE_NET=1` makes them fail.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use bytes::Bytes;
use whimbrel_base::packet::{RxChecksum, SegMeta, TxChecksum, TxSegment};
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::{Device, Tun, TunError, WireSpec};
use whimbrel_stack::RxFrame;
use whimbrel_tcp::recv::ChunkPool;

use common::in_namespace;
use common::needs::{self, IPV6, TUN};

mod common;

const SPEC: &str = "tun:whim0,addr=10.9.0.2/24";
const PATIENCE: Duration = Duration::from_secs(5);

fn open(spec: &str) -> Tun {
    let WireSpec::Tun(config) = spec.parse().unwrap() else { panic!("no tun: {spec}") };
    Tun::open(&config).unwrap()
}

fn bytes<'a>(frame: &RxFrame<'a>) -> &'a [u8] {
    frame.bytes
}

/// Returns the next frame for which `wanted` is true.
fn next_frame(tun: &mut Tun, wanted: impl Fn(&[u8]) -> bool) -> (Vec<u8>, SegMeta) {
    let deadline = Instant::now() + PATIENCE;
    let mut found = None;
    while found.is_none() {
        assert!(Instant::now() < deadline, "no such frame; {:?}", tun.counters());
        let mut fds = [PollFd::new(&*tun, Interest::Read)];
        ppoll(&mut fds, Some(PATIENCE)).unwrap();
        tun.rx_burst(&mut |burst| {
            for frame in burst {
                if found.is_none() && wanted(bytes(frame)) {
                    found = Some((bytes(frame).to_vec(), frame.meta));
                }
            }
        })
        .unwrap();
    }
    found.unwrap()
}

fn sum(bytes: &[u8]) -> u32 {
    bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns an IPv4 header from the stack to the machine.
fn ip_header(protocol: u8, payload: usize) -> [u8; 20] {
    let len = (20 + payload) as u16;
    let [high, low] = len.to_be_bytes();
    let mut header =
        [0x45, 0, high, low, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 9, 0, 2, 10, 9, 0, 1];
    let checksum = !fold(sum(&header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn segment(header: &[u8], payload: Bytes) -> TxSegment {
    let mut segment = TxSegment::new();
    segment.header_room()[..header.len()].copy_from_slice(header);
    segment.set_header_len(header.len());
    segment.transport_offset = 20;
    segment.payload.push(payload).unwrap();
    segment
}

/// Returns a TCP header whose checksum field holds the pseudo-header's sum.
fn tcp_header(from: u16, to: u16, numbers: (u32, u32), flags: u8, text: usize) -> Vec<u8> {
    let (seq, ack) = numbers;
    let len = 20 + text;
    let mut header = ip_header(6, len).to_vec();
    let pseudo = fold(sum(&header[12..20]) + 6 + len as u32);
    header.extend_from_slice(&from.to_be_bytes());
    header.extend_from_slice(&to.to_be_bytes());
    header.extend_from_slice(&seq.to_be_bytes());
    header.extend_from_slice(&ack.to_be_bytes());
    header.extend_from_slice(&[5 << 4, flags, 0xff, 0xff]);
    header.extend_from_slice(&pseudo.to_be_bytes());
    header.extend_from_slice(&[0, 0]);
    header
}

fn tcp_segment(header: &[u8], text: Bytes) -> TxSegment {
    let mut segment = segment(header, text);
    segment.checksum = TxChecksum::Partial(16);
    segment.gso_size = 1448;
    segment
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().unwrap())
}

#[test]
fn datagrams_of_both_families_arrive_with_unfinished_checksums() {
    in_namespace(&[TUN, IPV6], || {
        let mut tun = open(&format!("{SPEC},addr=fd09::2/64"));
        for (to, from) in [("10.9.0.2", "10.9.0.1"), ("fd09::2", "fd09::1")] {
            let to: IpAddr = to.parse().unwrap();
            let from: IpAddr = from.parse().unwrap();
            // Binding fails while an address is tentative: it must be valid at once.
            let socket = UdpSocket::bind((from, 0)).unwrap();
            socket.send_to(b"whimbrel", (to, 7)).unwrap();
            let (frame, meta) = next_frame(&mut tun, |frame| frame.ends_with(b"whimbrel"));
            assert_eq!(frame.len(), if to.is_ipv4() { 20 + 8 + 8 } else { 40 + 8 + 8 });
            assert_eq!(meta, SegMeta { checksum: RxChecksum::Partial, ..SegMeta::SINGLE });
        }
        assert_eq!(tun.counters().rx_malformed, 0);
    });
}

#[test]
fn what_comes_for_the_machines_new_ipv6_address_arrives() {
    in_namespace(&[TUN, IPV6], || {
        for _ in 0..200 {
            let mut tun = open("tun:whim0,addr=fd09::2/64,offload=off");
            let socket = UdpSocket::bind("[fd09::1]:53").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            assert!(tun.send_packet(&ipv6_datagram(b"whimbrel")).unwrap());
            let mut buf = [0; 16];
            assert_eq!(socket.recv(&mut buf).unwrap(), 8);
        }
    });
}

/// Returns a datagram from the stack to port 53 of the machine.
fn ipv6_datagram(data: &[u8]) -> Vec<u8> {
    let [high, low] = (8 + data.len() as u16).to_be_bytes();
    let (from, to): (Ipv6Addr, Ipv6Addr) = ("fd09::2".parse().unwrap(), "fd09::1".parse().unwrap());
    let addresses = [from.octets(), to.octets()].concat();
    let udp = [&[0, 7, 0, 53, high, low, 0, 0], data].concat();
    let checksum = !fold(sum(&addresses) + 17 + udp.len() as u32 + sum(&udp));
    let mut packet = [&[0x60, 0, 0, 0, high, low, 17, 64], &*addresses, &udp].concat();
    packet[46..48].copy_from_slice(&checksum.to_be_bytes());
    packet
}

#[test]
fn without_offloads_checksums_are_finished() {
    in_namespace(&[TUN], || {
        let mut tun = open("tun:whim0,addr=10.9.0.2/24,offload=off");
        assert_eq!(tun.offloads().names().count(), 0);
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.send_to(b"whimbrel", "10.9.0.2:7").unwrap();
        let (frame, meta) = next_frame(&mut tun, |frame| frame.ends_with(b"whimbrel"));
        assert_eq!(meta, SegMeta::SINGLE);
        let pseudo = sum(&frame[12..20]) + 17 + (frame.len() - 20) as u32;
        assert_eq!(fold(pseudo + sum(&frame[20..])), 0xffff);
    });
}

#[test]
fn an_address_without_a_network_is_reached_by_a_route() {
    in_namespace(&[TUN, IPV6], || {
        let mut tun = open("tun:whim0,addr=10.9.0.2/24,addr=192.0.2.7/32,addr=2001:db8::7/128");
        UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"lone", "192.0.2.7:7").unwrap();
        next_frame(&mut tun, |frame| frame.ends_with(b"lone"));
    });
}

#[test]
fn the_kernel_answers_an_echo_request() {
    in_namespace(&[TUN], || {
        let mut tun = open(SPEC);
        let mut echo = [8, 0, 0, 0, 0x12, 0x34, 0, 1];
        let text = Bytes::from_static(b"curlew and whimbrel");
        let checksum = !fold(sum(&echo) + sum(&text));
        echo[2..4].copy_from_slice(&checksum.to_be_bytes());
        let mut header = ip_header(1, echo.len() + text.len()).to_vec();
        header.extend_from_slice(&echo);
        assert_eq!(tun.send(&segment(&header, text)).unwrap(), None);
        let (frame, _) = next_frame(&mut tun, |frame| frame.ends_with(b"curlew and whimbrel"));
        assert_eq!(frame[20], 0, "an echo reply");
        assert_eq!(frame[24..28], [0x12, 0x34, 0, 1]);
    });
}

/// Opens a connection by hand from the stack's port 7777 to a listener of the kernel's. Returns the
/// next sequence numbers.
fn shake_hands(tun: &mut Tun, port: u16) -> (u32, u32) {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let syn = tcp_header(7777, port, (1000, 0), SYN, 0);
    tun.send(&tcp_segment(&syn, Bytes::new())).unwrap();
    let (syn_ack, _) = next_frame(tun, |frame| frame[9] == 6 && frame[33] == SYN | ACK);
    let next = (1001, number(&syn_ack[24..28]).wrapping_add(1));
    let ack = tcp_header(7777, port, next, ACK, 0);
    tun.send(&tcp_segment(&ack, Bytes::new())).unwrap();
    next
}

#[test]
fn a_super_segment_of_64_kb_reaches_the_kernels_socket_whole() {
    in_namespace(&[TUN], || {
        let mut tun = open(SPEC);
        let listener = std::net::TcpListener::bind("10.9.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let next = shake_hands(&mut tun, port);
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let text: Vec<u8> = (0..64_000u32).map(|at| (at % 251) as u8).collect();
        let header = tcp_header(7777, port, next, 0x18, text.len());
        // In eighteen slices, as a send queue would have it.
        let mut large = tcp_segment(&header, Bytes::new());
        large.payload.clear();
        for slice in text.chunks(text.len().div_ceil(18)) {
            large.payload.push(Bytes::copy_from_slice(slice)).unwrap();
        }
        assert_eq!(tun.send(&large).unwrap(), None);
        let mut received = vec![0; text.len()];
        stream.read_exact(&mut received).unwrap();
        assert!(received == text, "bytes differ");
        let counters = tun.counters();
        assert_eq!((counters.tx_frames, counters.tx_super, counters.tx_dropped), (3, 1, 0));
    });
}

#[test]
fn the_kernels_super_segments_arrive_counted_by_segment() {
    in_namespace(&[TUN], || {
        let mut tun = open(SPEC);
        let listener = std::net::TcpListener::bind("10.9.0.1:0").unwrap();
        let next = shake_hands(&mut tun, listener.local_addr().unwrap().port());
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&[7; 4000]).unwrap();
        let (frame, meta) = next_frame(&mut tun, |frame| frame.len() > 1500);
        let text = frame.len() - 40; // our SYN offered no options
        let size = usize::from(meta.gso_size);
        assert!(size > 0, "{meta:?}");
        assert_eq!(usize::from(meta.segs), text.div_ceil(size), "{meta:?}");
        assert_eq!(meta.checksum, RxChecksum::Partial);
        assert!(number(&frame[24..28]) >= next.1);
    });
}

#[test]
fn long_frames_are_read_into_chunks_while_there_are_some() {
    in_namespace(&[TUN], || {
        let mut tun = open("tun:whim0,addr=10.9.0.2/24,mtu=65535");
        let mut pool = ChunkPool::default();
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        // Sizes, and whether the frame is expected in a chunk: a single long one is not foreseen,
        // and the longest exceed a chunk.
        let mut sent =
            vec![(60_000, false), (60_000, true), (100, false), (65_507, false), (50_000, true)];
        sent.extend([(100, false); 17]);
        sent.push((60_000, false));
        for (number, (len, is_in_chunk)) in sent.into_iter().enumerate() {
            let datagram = vec![number as u8; len];
            socket.send_to(&datagram, "10.9.0.2:9").unwrap();
            let mut found = false;
            while !found {
                tun.take_room(&mut pool);
                let deliver = &mut |burst: &[RxFrame<'_>]| {
                    let wanted = |frame: &&RxFrame<'_>| frame.bytes.get(9) == Some(&17);
                    for frame in burst.iter().filter(wanted) {
                        found = true;
                        assert!(frame.bytes[28..] == datagram, "{number}: {len} bytes");
                        let lies_in = |chunk: &Bytes| {
                            chunk.as_ptr_range().contains(&frame.bytes.as_ptr())
                                && chunk.len() == 10 + 28 + len
                        };
                        assert_eq!(
                            frame.chunk.is_some_and(lies_in),
                            is_in_chunk,
                            "{number}: {len}"
                        );
                        assert_eq!(frame.chunk.is_some(), is_in_chunk, "{number}: {len}");
                    }
                };
                tun.rx_burst(deliver).unwrap();
            }
        }
        let counters = tun.counters();
        assert_eq!((counters.rx_malformed, counters.rx_oversized), (0, 0));
        assert!(pool.bytes() <= 4 << 16, "{}", pool.bytes());
    });
}

#[test]
fn a_segment_that_the_kernel_refuses_is_dropped_and_counted() {
    in_namespace(&[TUN], || {
        let mut tun = open(SPEC);
        tun.send(&segment(&[0x15; 20], Bytes::new())).unwrap();
        let counters = tun.counters();
        assert_eq!((counters.tx_frames, counters.tx_dropped), (0, 1));
        assert_eq!(counters.tx_last_error, Some(libc::EINVAL));
    });
}

#[test]
fn interface_busy_or_of_another_kind_is_refused_with_advice() {
    in_namespace(&[TUN], || {
        let _held = open(SPEC);
        let WireSpec::Tun(config) = SPEC.parse().unwrap() else { panic!() };
        let error = Tun::open(&config).unwrap_err();
        assert!(matches!(error, TunError::Busy(_)), "{error}");
        let WireSpec::Tun(config) = "tun:lo,addr=10.8.0.2/24".parse().unwrap() else { panic!() };
        let error = Tun::open(&config).unwrap_err();
        assert!(matches!(error, TunError::Mismatch(_)), "{error}");
        assert!(!error.is_privilege_or_device());
    });
}

#[test]
fn several_queues_are_opened_together() {
    in_namespace(&[TUN], || {
        let spec = "tun:whim0,addr=10.9.0.2/24,queues=3";
        let WireSpec::Tun(config) = spec.parse().unwrap() else { panic!() };
        assert!(matches!(Tun::open(&config), Err(TunError::Queues(3))));
        assert_eq!(Tun::open_queues(&config).unwrap().len(), 3);
    });
}

#[test]
fn a_removed_interface_is_an_error_not_silence() {
    in_namespace(&[TUN, "ip"], || {
        let mut tun = open(SPEC);
        assert!(needs::command("ip link delete whim0").status().unwrap().success());
        let mut fds = [PollFd::new(&tun, Interest::Read)];
        assert_eq!(ppoll(&mut fds, Some(PATIENCE)).unwrap(), 1);
        assert!(fds[0].is_broken());
        let error = tun.rx_burst(&mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("interface"), "{error}");
        tun.send(&segment(&ip_header(1, 0), Bytes::new())).unwrap_err();
    });
}

#[test]
fn a_connecting_client_s_syn_arrives() {
    in_namespace(&[TUN], || {
        let mut tun = open(SPEC);
        // Its SYN gets no reply, and waits in the device's queue meanwhile.
        let address: SocketAddr = "10.9.0.2:80".parse().unwrap();
        TcpStream::connect_timeout(&address, Duration::from_millis(20)).unwrap_err();
        let (syn, meta) = next_frame(&mut tun, |frame| frame[9] == 6);
        assert_eq!((syn[33] & 0x3f, meta.checksum), (2, RxChecksum::Partial));
    });
}

/// `cargo test --release -p whimbrel-io --test tun -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn reads_and_writes_per_second() {
    in_namespace(&[TUN], || {
        let mut tun = open(SPEC);
        let socket = UdpSocket::bind("10.9.0.1:9").unwrap();
        socket.connect("10.9.0.2:9").unwrap();
        for _ in 0..5 {
            let (read, write) = reflect(&mut tun, &socket, 200_000);
            println!("one frame of 46 bytes: read {read} ns, write (to the socket) {write} ns");
        }
        assert_eq!(tun.counters().tx_dropped, 0);
    });
}

/// Sends `frames` datagrams through the interface and back. Returns the nanoseconds of each read
/// and write.
fn reflect(tun: &mut Tun, socket: &UdpSocket, frames: u32) -> (u128, u128) {
    let (mut reading, mut writing, mut reflected) = (Duration::ZERO, Duration::ZERO, 0);
    let mut copies: Vec<TxSegment> = Vec::with_capacity(64);
    while reflected < frames {
        for _ in 0..64 {
            socket.send(&[0; 18]).unwrap();
        }
        copies.clear();
        let start = Instant::now();
        reflected += tun
            .rx_burst(&mut |burst| copies.extend(burst.iter().map(|frame| back(bytes(frame)))))
            .unwrap() as u32;
        reading += start.elapsed();
        let start = Instant::now();
        for copy in &copies {
            tun.send(copy).unwrap();
        }
        writing += start.elapsed();
    }
    (reading.as_nanos() / u128::from(reflected), writing.as_nanos() / u128::from(reflected))
}

/// Returns a datagram of equal ports in the other direction: its sums are the same.
fn back(datagram: &[u8]) -> TxSegment {
    let mut back = segment(datagram, Bytes::new());
    back.header_room()[12..16].copy_from_slice(&datagram[16..20]);
    back.header_room()[16..20].copy_from_slice(&datagram[12..16]);
    back.checksum = TxChecksum::Partial(6);
    back
}
