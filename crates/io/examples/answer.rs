//! Answers short connections of the kernel's clients without a protocol, with the system calls that
//! a worker makes: the least processor time that `whimbrel serve` could take for such frames.
//!
//! ```text
//! answer WIRE
//! ```
//!
//! It keeps no state and checks nothing; a segment's flags decide the reply: a SYN-ACK to a SYN, a
//! response with FIN to text, an acknowledgment to a FIN. So it serves only clients whose request
//! is one segment, on paths without loss. Over `packet:` the client must know the station (`ip
//! neighbour`), because the example does not answer ARP.
//!
//! Ends at SIGINT or SIGTERM, and prints the device's counters.

use std::error::Error;
use std::{env, io};

use bytes::Bytes;
use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_io::device::MAX_BURST;
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::signals::Signals;
use whimbrel_io::{Clock, Device, PacketWire, Stop, Tun, TxOutcome, WireSpec};
use whimbrel_stack::{Medium, RxFrame, TxBatch};
use whimbrel_wire::plain::{Checksum, PlainOpening, PlainOptions, Text};
use whimbrel_wire::tcp::{TcpFlags, TcpHeader, Timestamps};
use whimbrel_wire::{
    EthernetHeader, Ipv4Header, Mss, PlainHeaders, PlainSegment, RawWindow, TrafficClass,
    WindowScale,
};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let typed: Vec<String> = env::args().skip(1).collect();
    let [wire] = &typed[..] else { return Err("usage: answer WIRE".into()) };
    let stop = Stop::new()?;
    let _signals = Signals::install(&stop)?;
    match wire.parse()? {
        WireSpec::Tun(config) => serve(Tun::open(&config)?, &stop),
        WireSpec::Packet(config) => serve(PacketWire::open(&config)?, &stop),
        _ => Err("not a wire of this example's: give tun: or packet:".into()),
    }
}

/// Runs a worker's turns and sleeps, with [`answer`] in place of a shard.
fn serve(mut device: impl Device, stop: &Stop) -> Result<(), Failure> {
    let medium = device.capabilities().medium;
    let response = Bytes::from(format!("{HEAD}{}", "a".repeat(BODY)));
    let (clock, mut batch) = (Clock::start(), TxBatch::new(MAX_BURST));
    let mut sleeps = 0_u64;
    while !stop.is_set() {
        let now = clock.now().as_nanos() / 1_000_000;
        let frames = device.rx_burst(&mut |burst| {
            for frame in burst {
                batch.fill(|out| answer(frame, medium, now as u32, &response, out).is_some());
            }
        })?;
        if device.tx_burst(&mut batch)? != TxOutcome::Drained {
            return Err("the device takes no more".into());
        }
        if frames == 0 {
            sleeps += 1;
            wait(&device, stop)?;
        }
    }
    let counters = device.counters();
    println!("{sleeps} sleeps, {counters:?}");
    Ok(())
}

fn wait(device: &impl Device, stop: &Stop) -> io::Result<()> {
    let mut fds = [PollFd::new(device, Interest::Read), PollFd::new(stop, Interest::Read)];
    ppoll(&mut fds, None).map(|_| ())
}

/// Writes the reply to this frame; `None` if it needs none.
fn answer(
    frame: &RxFrame<'_>,
    medium: Medium,
    now: u32,
    response: &Bytes,
    out: &mut TxSegment,
) -> Option<()> {
    let link = match medium {
        Medium::Ip => 0,
        Medium::Ethernet { .. } => EthernetHeader::LEN,
    };
    let (ethernet, packet) = frame.bytes.split_at_checked(link)?;
    let segment = PlainSegment::read(packet, Checksum::Trust)?;
    let (header, text) = segment.view();
    let came = text.len() as u32 + header.flags.sequence_len();
    let val = header.options.timestamps.map_or(0, |stamps| stamps.val);
    let stamps = Timestamps { val: now, ecr: val };
    let (flags, options) = if came == 0 {
        return None;
    } else if header.flags.is_syn() {
        let opening = PlainOpening {
            mss: Mss::new(1_460),
            window_scale: Some(WindowScale::new(7)),
            sack_permitted: true,
            timestamps: Some(stamps),
        };
        (TcpFlags::SYN_ACK, PlainOptions::Opening(opening))
    } else if text.is_empty() {
        (TcpFlags::ACK, PlainOptions::Timestamps(stamps))
    } else {
        out.payload.push(response.clone()).ok()?;
        (TcpFlags::ACK | TcpFlags::PSH | TcpFlags::FIN, PlainOptions::Timestamps(stamps))
    };
    let headers = PlainHeaders {
        src: segment.dst(),
        dst: segment.src(),
        class: TrafficClass(0),
        hop_limit: 64,
        src_port: header.dst_port,
        dst_port: header.src_port,
        // The sequence number of the SYN-ACK is whatever the field of the SYN holds.
        seq: header.ack,
        ack: header.seq + came,
        flags,
        window: RawWindow::new(512),
        urgent: 0,
        options,
    };
    let text = Text { len: out.payload.bytes(), sum: None };
    let (back, room) = out.header_room().split_at_mut(link);
    back.copy_from_slice(ethernet);
    // The reply goes to the sender.
    if let Some((stations, _)) = back.split_first_chunk_mut::<12>() {
        stations.rotate_left(6);
    }
    let written = headers.emit(text, room.first_chunk_mut()?);
    out.transport_offset = (link + Ipv4Header::LEN) as u8;
    out.checksum = TxChecksum::Partial(TcpHeader::CHECKSUM_OFFSET as u8);
    out.set_header_len(link + written);
    Some(())
}

/// Head of the response, as `serve` sends it.
const HEAD: &str = "HTTP/1.1 200 OK\r\nServer: whimbrel\r\nDate: Sun, 22 Nov 2026 00:00:00 GMT\r\n\
                    Content-Type: text/plain\r\nContent-Length: 128\r\nConnection: close\r\n\r\n";
/// Length of the body in bytes.
const BODY: usize = 128;
