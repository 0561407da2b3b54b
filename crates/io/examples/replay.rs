//! Sends the frames of a capture into a TUN device again and again, with the system calls that a
//! worker makes and no protocol: the most that `whimbrel serve` could move with such frames.
//!
//! ```text
//! replay CAPTURE SECONDS WIRE
//! ```
//!
//! Frames that went out are written to an address that nobody has, so that the kernel drops them
//! behind the device; for each that came in the device is read once. Prints octets of TCP text a
//! second.

use std::error::Error;
use std::time::{Duration, Instant};
use std::{env, fs};

use bytes::Bytes;
use pcap_parser::pcapng::{Block, EnhancedPacketBlock, OptionCode, parse_block_le};
use whimbrel_io::{Device, Tun, WireSpec};
use whimbrel_tcp::TxSegment;
use whimbrel_tcp::segment::TxChecksum;
use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{IpHeader, Sum};

/// What the worker did.
enum Step {
    Read,
    Write(Box<TxSegment>),
}

fn main() -> Result<(), Box<dyn Error>> {
    let typed: Vec<String> = env::args().skip(1).collect();
    let [capture, seconds, wire] = &typed[..] else {
        return Err("usage: replay CAPTURE SECONDS WIRE".into());
    };
    let WireSpec::Tun(config) = wire.parse()? else { return Err("give a tun: wire".into()) };
    let steps = steps(&fs::read(capture)?)?;
    let mut tun = Tun::open(&config)?;
    let (began, lasts) = (Instant::now(), Duration::from_secs_f64(seconds.parse()?));
    let mut octets = 0;
    while began.elapsed() < lasts {
        for step in &steps {
            match step {
                Step::Read => _ = tun.rx_burst(&mut |_| ())?,
                Step::Write(segment) => {
                    tun.send(segment)?;
                    octets += u64::from(segment.payload.octets());
                }
            }
        }
    }
    let counters = tun.counters();
    if counters.tx_dropped + counters.tx_blocked + counters.tx_congested > 0 {
        return Err(format!("the device refused frames: {counters:?}").into());
    }
    println!("{:.0}", octets as f64 / began.elapsed().as_secs_f64());
    Ok(())
}

fn steps(mut capture: &[u8]) -> Result<Vec<Step>, Box<dyn Error>> {
    let text = Bytes::from(vec![b'a'; 1 << 16]);
    let mut steps = Vec::new();
    while !capture.is_empty() {
        let (rest, block) = parse_block_le(capture).map_err(|error| format!("{error:?}"))?;
        capture = rest;
        let Block::EnhancedPacket(packet) = block else { continue };
        match goes_out(&packet) {
            true => steps.extend(segment(&packet, &text).map(Box::new).map(Step::Write)),
            false => steps.push(Step::Read),
        }
    }
    Ok(steps)
}

fn goes_out(packet: &EnhancedPacketBlock<'_>) -> bool {
    let flags = packet.options.iter().find(|option| option.code == OptionCode(2));
    flags.is_some_and(|flags| flags.value.first() == Some(&2))
}

/// A segment of the same size, for nobody. `None` if it is not one of TCP over IPv4.
fn segment(packet: &EnhancedPacketBlock<'_>, text: &Bytes) -> Option<TxSegment> {
    let mut octets = packet.data.to_vec();
    // As long as it was, so that its header can be read.
    octets.resize(packet.origlen as usize, 0);
    let (ip, tcp) = IpHeader::parse(&octets).ok().filter(|(ip, _)| ip.src.is_v4())?;
    let (_, tcp_len) = TcpHeader::parse(tcp).ok()?;
    let (ip_len, header_len) = (usize::from(ip.header_len), usize::from(ip.header_len) + tcp_len);
    octets.get_mut(16..20)?.copy_from_slice(&NOBODY);
    octets.get_mut(10..12)?.fill(0);
    let checksum = Sum::new().add_bytes(octets.get(..ip_len)?).finish();
    octets.get_mut(10..12)?.copy_from_slice(&checksum.to_be_bytes());
    let mut segment = TxSegment::new();
    segment.header_room().get_mut(..header_len)?.copy_from_slice(octets.get(..header_len)?);
    segment.set_header_len(header_len);
    segment.transport_offset = ip.header_len as u8;
    segment.checksum = TxChecksum::Partial(TcpHeader::CHECKSUM_OFFSET as u8);
    let text = text.slice(..octets.len() - header_len);
    if text.len() > MSS {
        segment.gso_size = MSS as u16;
    }
    segment.payload.push(text).ok()?;
    Some(segment)
}

/// In the network of the default wire, and no host's.
const NOBODY: [u8; 4] = [10, 9, 0, 77];
/// Octets of text in a packet of 1,500 octets with timestamps.
const MSS: usize = 1_448;
