//! A TUN queue opened elsewhere, each test in its own network namespace.
//!
//! Needs root. Without it the tests report that and pass; `WHIMBREL_REQUIRE_NET=1` makes them fail.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::fs::{File, OpenOptions};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_io::config::ConfigError;
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::{Device, Layer, Offload, Tun, TunConfig, TunError, WireSpec};
use whimbrel_stack::{InterfaceAddress, Medium, Steering};

use common::in_namespace;
use common::needs::{self, TUN};

mod common;

fn own() -> Vec<InterfaceAddress> {
    vec![InterfaceAddress { addr: IpAddr::from([10, 9, 0, 2]).into(), prefix_len: 24 }]
}

/// Opens a queue of the interface whim0, as a service or a parent does it.
fn made_with(flags: i32) -> OwnedFd {
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun").unwrap();
    // SAFETY: `ifreq` is a C structure of integers and arrays, for which zeroes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"whim0") {
        *place = byte.cast_signed();
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which is lent exclusively.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    file.into()
}

fn bring_up() {
    for line in ["ip address add 10.9.0.1/24 dev whim0", "ip link set whim0 up"] {
        assert!(needs::command(line).status().unwrap().success(), "{line}");
    }
}

/// Exchanges a datagram with the kernel in each direction. Returns the metadata of the received
/// frame.
fn talk(tun: &mut Tun) -> SegMeta {
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(b"whimbrel", "10.9.0.2:7").unwrap();
    let mut heard = None;
    while heard.is_none() {
        ppoll(&mut [PollFd::new(&*tun, Interest::Read)], Some(PATIENCE)).unwrap();
        let taken = tun.rx_burst(&mut |burst| {
            let found = burst.iter().find(|frame| frame.bytes.ends_with(b"whimbrel"));
            heard = heard.take().or(found.map(|frame| (frame.bytes.to_vec(), frame.meta)));
        });
        taken.unwrap();
    }
    let (mut packet, meta) = heard.unwrap();
    // The frame goes back with its endpoints exchanged, which changes no sum; the datagram's may be
    // left out.
    packet[12..20].rotate_left(4);
    packet[20..24].rotate_left(2);
    packet[26..28].fill(0);
    assert!(tun.send_packet(&packet).unwrap());
    let mut answer = [0; 16];
    assert_eq!(socket.recv(&mut answer).unwrap(), 8);
    assert_eq!(&answer[..8], b"whimbrel");
    meta
}

#[test]
fn queue_without_vnet_header_carries_packets_without_offload() {
    in_namespace(&[TUN, "ip"], || {
        let fd = made_with(libc::IFF_TUN | libc::IFF_NO_PI);
        bring_up();
        let config = TunConfig::from_fd(fd, own()).unwrap().with_offload(Offload::On);
        assert_eq!((config.name(), config.layer(), config.queues()), (c"whim0", Layer::Ip, 1));
        let mut tun = Tun::open(&config.with_mtu(1_400).unwrap()).unwrap();
        let capabilities = tun.capabilities();
        assert_eq!((capabilities.mtu, capabilities.max_super), (1_400, 1_400));
        assert!(!capabilities.tx_checksum);
        assert_eq!((capabilities.medium, capabilities.steering), (Medium::Ip, Steering::None));
        assert_eq!(tun.about(), "tun:whim0 (offloads: none; mtu 1400)");
        assert_eq!(talk(&mut tun), SegMeta::SINGLE);
    });
}

#[test]
fn inherited_queue_with_vnet_header_keeps_its_offloads() {
    in_namespace(&[TUN, "ip"], || {
        let spec = "tun:whim0,addr=10.9.0.2/24,queues=1";
        let WireSpec::Tun(config) = spec.parse().unwrap() else { panic!("no tun") };
        let fd = Tun::open(&config).unwrap().into_fd();
        let mut tun = Tun::open(&TunConfig::from_fd(fd, own()).unwrap()).unwrap();
        assert!(tun.capabilities().tx_checksum);
        assert_eq!(tun.capabilities().max_super, 65_535);
        let partial = SegMeta { checksum: RxChecksum::Partial, ..SegMeta::SINGLE };
        assert_eq!(talk(&mut tun), partial);
    });
}

#[test]
fn a_queue_of_several_keeps_a_flow_where_it_was_sent_from() {
    in_namespace(&[TUN, "ip"], || {
        let fd = made_with(libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_MULTI_QUEUE);
        bring_up();
        let config = TunConfig::from_fd(fd, own()).unwrap();
        assert_eq!(config.clone().with_queues(2), Err(ConfigError::OneQueue(2)));
        let mut tun = Tun::open(&config).unwrap();
        assert_eq!(tun.capabilities().steering, Steering::Consistent);
        talk(&mut tun);
    });
}

#[test]
fn an_interface_of_ethernet_frames_is_known_as_one() {
    in_namespace(&[TUN, "ip"], || {
        let fd = made_with(libc::IFF_TAP | libc::IFF_NO_PI);
        let config = TunConfig::from_fd(fd, own()).unwrap();
        assert_eq!(config.layer(), Layer::Ethernet(None));
        assert_eq!(config.clone().with_layer(Layer::Ip), Err(ConfigError::GivenLayer("tap")));
        let tun = Tun::open(&config).unwrap();
        assert!(matches!(tun.capabilities().medium, Medium::Ethernet { .. }));
    });
}

#[test]
fn what_is_no_queue_of_packets_is_refused_in_words() {
    let (reader, _writer) = std::io::pipe().unwrap();
    for fd in [OwnedFd::from(reader), File::open("/dev/null").unwrap().into()] {
        let error = TunConfig::from_fd(fd, own()).unwrap_err();
        assert!(matches!(error, TunError::NotTun), "{error}");
        assert!(error.to_string().contains("/dev/net/tun"), "{error}");
    }
    in_namespace(&[TUN, "ip"], || {
        let unattached = OpenOptions::new().read(true).write(true).open("/dev/net/tun").unwrap();
        let error = TunConfig::from_fd(unattached.into(), own()).unwrap_err();
        assert!(matches!(error, TunError::NotAttached), "{error}");
        let fd = made_with(libc::IFF_TUN | libc::IFF_NO_PI);
        let error = TunConfig::from_fd(fd, Vec::new()).unwrap_err();
        assert!(matches!(error, TunError::Config(ConfigError::NoAddress)), "{error}");
    });
}

#[test]
fn packet_information_in_front_of_frames_is_told_by_the_first() {
    in_namespace(&[TUN, "ip"], || {
        let fd = made_with(libc::IFF_TUN);
        bring_up();
        let mut tun = Tun::open(&TunConfig::from_fd(fd, own()).unwrap()).unwrap();
        UdpSocket::bind("10.9.0.1:0").unwrap().send_to(b"whimbrel", "10.9.0.2:7").unwrap();
        ppoll(&mut [PollFd::new(&tun, Interest::Read)], Some(PATIENCE)).unwrap();
        let error = tun.rx_burst(&mut |_| ()).unwrap_err();
        assert!(error.to_string().contains("make it with IFF_NO_PI"), "{error}");
    });
}

#[test]
fn a_frame_without_an_offload_header_goes_out_as_it_is() {
    in_namespace(&[TUN, "ip"], || {
        let fd = made_with(libc::IFF_TUN | libc::IFF_NO_PI);
        bring_up();
        let mut tun = Tun::open(&TunConfig::from_fd(fd, own()).unwrap()).unwrap();
        let socket = UdpSocket::bind("10.9.0.1:9").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut segment = whimbrel_base::packet::TxSegment::new();
        let mut header = [
            0x45, 0, 0, 33, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 9, 0, 2, 10, 9, 0, 1, //
            0, 7, 0, 9, 0, 13, 0, 0,
        ];
        let sum: u32 =
            header[..20].chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1])).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        segment.header_room()[..28].copy_from_slice(&header);
        segment.set_header_len(28);
        segment.transport_offset = 20;
        segment.payload.push(Bytes::from_static(b"plain")).unwrap();
        assert_eq!(tun.send(&segment).unwrap(), None);
        let mut heard = [0; 16];
        assert_eq!(socket.recv(&mut heard).unwrap(), 5);
        assert_eq!(&heard[..5], b"plain");
    });
}

const PATIENCE: Duration = Duration::from_secs(5);
