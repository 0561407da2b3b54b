//! SYNs from unassigned addresses onto an interface, at a given rate per second.
//!
//! ```text
//! syn_flood INTERFACE STATION TARGET RATE SECONDS
//! ```
//!
//! Each has a different source in 10.128.0.0/9 and the options of usual clients; it goes to port 80 of
//! the IPv4 address TARGET at that station. A RATE of 0 is as fast as possible. Prints the number sent
//! and the time in nanoseconds; answers are ignored. Needs root.

use std::error::Error;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use std::{env, thread};

use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_io::device::MAX_BURST;
use whimbrel_io::{Device, PacketWire, WireSpec};
use whimbrel_stack::{Medium, TxBatch};
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{
    EtherType, EthernetHeader, Ipv4Header, MacAddress, Mss, Protocol, RawWindow, SeqNum, Sum,
    WindowScale,
};

type Failure = Box<dyn Error + Send + Sync>;

/// Parts that all SYNs share.
struct Flood {
    ethernet: [u8; EthernetHeader::LEN],
    target: Ipv4Addr,
}

fn main() -> Result<(), Failure> {
    let typed: Vec<String> = env::args().skip(1).collect();
    let [interface, station, target, rate, seconds] = &typed[..] else {
        return Err("usage: syn_flood INTERFACE STATION TARGET RATE SECONDS".into());
    };
    // The address is never used: no host asks for it, and nothing is received.
    let spec = format!("packet:{interface},addr=10.127.255.254/32");
    let WireSpec::Packet(config) = spec.parse()? else { return Err("not a packet: wire".into()) };
    let mut wire = PacketWire::open(&config)?;
    let Medium::Ethernet { mac: src } = wire.capabilities().medium else {
        return Err("not an Ethernet".into());
    };
    let dst = station_of(station)?;
    let ethernet = EthernetHeader { dst, src, ether_type: EtherType::IPV4 }.emit();
    let flood = Flood { ethernet, target: target.parse()? };
    let lasts = Duration::from_secs_f64(seconds.parse()?);
    let (sent, nanos) = flood.send(&mut wire, rate.parse()?, lasts)?;
    println!("{sent} {nanos}");
    Ok(())
}

impl Flood {
    /// Returns how many SYNs were sent, and in how many nanoseconds.
    fn send(
        &self,
        wire: &mut PacketWire,
        rate: f64,
        lasts: Duration,
    ) -> Result<(u64, u128), Failure> {
        let mut batch = TxBatch::new(MAX_BURST);
        let (began, mut number) = (Instant::now(), 0_u32);
        while began.elapsed() < lasts {
            let due = began.elapsed().as_secs_f64() * rate;
            if rate > 0.0 && f64::from(number) > due {
                thread::sleep(PAUSE);
                continue;
            }
            while batch.fill(|segment| self.write(number, segment).is_some()).is_some() {
                number = number.wrapping_add(1);
            }
            // Packets without room in the queue are tried again.
            wire.tx_burst(&mut batch)?;
        }
        Ok((wire.counters().tx_frames, began.elapsed().as_nanos()))
    }

    /// The SYN with this number.
    fn write(&self, number: u32, segment: &mut TxSegment) -> Option<()> {
        let [_, a, b, c] = number.wrapping_mul(0x9e37_79b1).to_be_bytes();
        let src = Ipv4Addr::new(10, 128 | a, b, c);
        let syn = TcpHeader {
            src_port: 1_024 | (number >> 8) as u16,
            dst_port: 80,
            seq: SeqNum::new(number.wrapping_mul(0x85eb_ca6b)),
            flags: TcpFlags::SYN,
            window: RawWindow::new(64_240),
            options: TcpOptions {
                mss: Some(Mss::new(1_460)),
                window_scale: Some(WindowScale::new(7)),
                sack_permitted: true,
                timestamps: Some(Timestamps { val: number, ecr: 0 }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        let (link, packet) = segment.header_room().split_at_mut(EthernetHeader::LEN);
        link.copy_from_slice(&self.ethernet);
        let (ip, tcp) = packet.split_at_mut(Ipv4Header::LEN);
        let tcp_len = syn.emit(OptionOrder::Linux, tcp);
        // The device completes it.
        let (from, to) = (src.into(), self.target.into());
        let pseudo = Sum::pseudo_header(from, to, Protocol::TCP.0, tcp_len as u32);
        TcpHeader::set_checksum(tcp.get_mut(..tcp_len)?, pseudo.fold());
        let header = Ipv4Header::new(src, self.target, Protocol::TCP, tcp_len);
        header.emit(ip);
        segment.set_header_len(EthernetHeader::LEN + Ipv4Header::LEN + tcp_len);
        segment.transport_offset = (EthernetHeader::LEN + Ipv4Header::LEN) as u8;
        segment.checksum = TxChecksum::Partial(TcpHeader::CHECKSUM_OFFSET as u8);
        Some(())
    }
}

/// Of `02:00:00:00:00:01`.
fn station_of(text: &str) -> Result<MacAddress, Failure> {
    let bytes: Vec<u8> =
        text.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect::<Result<_, _>>()?;
    Ok(MacAddress(bytes.try_into().map_err(|_| format!("{text}: six bytes make a station"))?))
}

/// Ahead of its rate, it sleeps.
const PAUSE: Duration = Duration::from_micros(50);
