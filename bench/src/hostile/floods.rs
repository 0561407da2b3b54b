//! Streams from anybody, under any address: packets that open, refuse, ask or complain, and fragments.

use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Fragment, IcmpMessage, Protocol};

use super::{ISN, Victim, message, numbers, packet};

pub(super) fn syn_flood(victim: &Victim) -> Vec<Vec<u8>> {
    let of = |number| (1 + number / 60_000, 1_024 + (number % 60_000) as u16);
    numbers().map(|it| victim.segment_from(of(it), TcpFlags::SYN, ISN, 0)).collect()
}

pub(super) fn stray_ack_flood(victim: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| victim.segment_from((1 + it, 9), TcpFlags::ACK, ISN, 0)).collect()
}

/// One acknowledgment repeated, as after a loss.
pub(super) fn ack_flood(victim: &Victim) -> Vec<Vec<u8>> {
    let old = |_| victim.segment(TcpFlags::ACK, victim.next, 0);
    numbers().map(old).collect()
}

pub(super) fn reset_flood(victim: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| victim.segment(TcpFlags::RST, victim.next + 1 + it, 0)).collect()
}

pub(super) fn syn_in_window_flood(victim: &Victim) -> Vec<Vec<u8>> {
    numbers().map(|it| victim.segment(TcpFlags::SYN, victim.next + 1 + it, 0)).collect()
}

pub(super) fn echo_flood(_: &Victim) -> Vec<Vec<u8>> {
    let data = [7; 56];
    let ask = |it| IcmpMessage::EchoRequest { identifier: 1, sequence: it as u16, data: &data };
    numbers().map(|it| message(&ask(it))).collect()
}

/// About the segment in flight: a path that carries ever less.
pub(super) fn icmp_error_flood(victim: &Victim) -> Vec<Vec<u8>> {
    let quoted = &victim.last[..28];
    let error = |it: u32| {
        let next_hop_mtu = 1_400 - (it % 1_000) as u16;
        message(&IcmpMessage::FragmentationNeeded { next_hop_mtu, quoted })
    };
    numbers().map(error).collect()
}

/// Fragments of ever other datagrams and senders, none of which becomes whole.
pub(super) fn fragment_flood(_: &Victim) -> Vec<Vec<u8>> {
    let of = |it: u32| {
        let fragment = Fragment { identification: it, offset: 8, more: true };
        packet(1 + it % 50, Protocol::UDP, Some(fragment), &[7; 64])
    };
    numbers().map(of).collect()
}

/// Fragments of eight bytes, of whole datagrams, each of which comes from behind.
pub(super) fn fragments_backwards(_: &Victim) -> Vec<Vec<u8>> {
    const EACH: u32 = 128;
    let of = |it: u32| {
        let place = EACH - 1 - it % EACH;
        let (offset, more) = (place as u16 * 8, place < EACH - 1);
        let fragment = Fragment { identification: it / EACH, offset, more };
        packet(1, Protocol::UDP, Some(fragment), &[7; 8])
    };
    numbers().map(of).collect()
}
