//! A router's errors, and the packets that it drops silently.

use whimbrel_wire::{IcmpMessage, IpHeader, Ipv4Header, Protocol};

use super::too_long;

fn packet(dont_fragment: bool) -> Vec<u8> {
    let mut packet = vec![0; 600];
    let header = Ipv4Header {
        dont_fragment,
        ..Ipv4Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::TCP, 580)
    };
    header.emit(&mut packet);
    packet
}

#[test]
fn sender_hears_of_the_mtu_with_the_start_of_its_packet() {
    let packet = packet(true);
    let error = too_long(&packet, 576).expect("an error");
    let (ip, payload) = IpHeader::parse(&error).expect("a packet");
    let (sender, _) = IpHeader::parse(&packet).expect("a packet");
    assert_eq!((ip.dst, ip.protocol), (sender.src, Protocol::ICMP));
    let expected = IcmpMessage::FragmentationNeeded { next_hop_mtu: 576, quoted: &packet[..28] };
    assert_eq!(IcmpMessage::parse(payload), Ok(expected));
}

#[test]
fn router_is_silent_on_fragmentable_packets_and_noise() {
    assert_eq!(too_long(&packet(false), 576), None);
    assert_eq!(too_long(&[0xff; 600], 576), None);
}
