//! Packets that are made, kept or compared outside of any stack.

/// Octets of the longest packet that is kept: IPv4 and TCP headers with 20 octets of options.
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
    let host = 0x0a00_0002 + number / 60_000;
    let port = 1_024 + (number % 60_000) as u16;
    let mut packet = vec![0x45, 0, 0, 44, 0, 0, 0x40, 0, 64, 6, 0, 0];
    packet.extend(host.to_be_bytes());
    packet.extend(0x0a00_0001_u32.to_be_bytes());
    let header = sum(&packet, 0);
    packet[10..12].copy_from_slice(&header.to_be_bytes());
    let pseudo_header = host.to_be_bytes().into_iter().chain([10, 0, 0, 1, 0, 6, 0, 24]);
    let pseudo_header: Vec<_> = pseudo_header.collect();
    packet.extend(port.to_be_bytes());
    packet.extend([0, 80]);
    packet.extend(number.to_be_bytes());
    packet.extend([0, 0, 0, 0, 0x60, SYN, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4]);
    let segment = sum(&packet[IP..], u32::from(!sum(&pseudo_header, 0)));
    packet[IP + 16..IP + 18].copy_from_slice(&segment.to_be_bytes());
    packet
}

/// The Internet checksum of octets whose number is even, on top of `carried`.
fn sum(octets: &[u8], carried: u32) -> u16 {
    let words =
        octets.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum = words.sum::<u32>() + carried;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// What is wrong if packets are wanted in another case.
pub(crate) const NOT_KEPT: &str = "packets are kept in one case only";

const IP: usize = 20;
const SYN: u8 = 2;
const ACK: u8 = 16;
