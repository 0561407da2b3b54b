//! Packets that are made, kept or compared outside of any stack.

use whimbrel_wire::Sum;

use crate::churn::address;

/// Bytes of the longest packet that is kept: IPv4 and TCP headers with 20 bytes of options.
const FRAME: usize = 60;

/// The packet that each idle connection's client sent last, to be received once more: an
/// acknowledgment of nothing new.
#[derive(Default)]
pub(crate) struct Kept {
    last: Vec<[u8; FRAME]>,
    staged: Vec<[u8; FRAME]>,
}

impl Kept {
    /// Keeps `packet` if it is the acknowledgment that completes a handshake.
    pub(crate) fn keep(&mut self, packet: &[u8]) {
        if packet.get(IP + 13) == Some(&ACK) && packet.len() <= FRAME {
            let mut kept = [0; FRAME];
            kept[..packet.len()].copy_from_slice(packet);
            self.last.push(kept);
        }
    }

    /// Copies those of these connections to where a device would leave them.
    pub(crate) fn stage(&mut self, connections: &[u32]) {
        self.staged.clear();
        self.staged.extend(connections.iter().map(|&index| self.last[index as usize]));
    }

    /// The packets that were staged.
    pub(crate) fn staged(&self) -> impl Iterator<Item = &[u8]> {
        self.staged.iter().map(|packet| &packet[..usize::from(packet[3]).min(FRAME)])
    }
}

/// The SYN with this number, from a host and port of its own in 10.0.0.0/8 to port 80 of
/// 10.0.0.1, with a maximum segment size of 1,460 as its only option.
pub(crate) fn syn(number: u32) -> Vec<u8> {
    let (src, dst) = (address(2 + number / 60_000), address(1));
    let port = 1_024 + (number % 60_000) as u16;
    let mut packet = vec![0x45, 0, 0, 44, 0, 0, 0x40, 0, 64, 6, 0, 0];
    packet.extend(src.v4_bytes());
    packet.extend(dst.v4_bytes());
    let header = Sum::new().add_bytes(&packet).finish();
    packet[10..12].copy_from_slice(&header.to_be_bytes());
    let pseudo_header = Sum::pseudo_header(src, dst, 6, 24);
    packet.extend(port.to_be_bytes());
    packet.extend([0, 80]);
    packet.extend(number.to_be_bytes());
    packet.extend([0, 0, 0, 0, 0x60, SYN, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4]);
    let segment = pseudo_header.add_bytes(&packet[IP..]).finish();
    packet[IP + 16..IP + 18].copy_from_slice(&segment.to_be_bytes());
    packet
}

/// Error for packets wanted in another case.
pub(crate) const NOT_KEPT: &str = "packets are kept in one case only";

const IP: usize = 20;
const SYN: u8 = 2;
const ACK: u8 = 16;
