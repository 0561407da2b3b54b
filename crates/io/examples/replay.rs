//! Replays the frames of a capture with the system calls that a worker makes and no protocol: the
//! most that `whimbrel serve` could move with such frames.
//!
//! ```text
//! replay CAPTURE SECONDS
//! ```
//!
//! Outgoing frames are written to `whim0`; the kernel forwards them (`net.ipv4.ip_forward=1`) to
//! `whim1`. Another thread reads them there and sends, for as many as there were in the capture, a
//! frame as small as an acknowledgment. This reader stands for a client such as curl: the kernel
//! wakes it and copies the frames once more. For each incoming frame `whim0` is read once.
//!
//! Prints the bytes of TCP text written, the processor time of the writing thread and the elapsed
//! time, in nanoseconds.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use bytes::Bytes;
use pcap_parser::pcapng::{Block, EnhancedPacketBlock, OptionCode, parse_block_le};
use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::{Device, Stop, Tun, WireSpec};
use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{IpHeader, Sum};

type Failure = Box<dyn Error + Send + Sync>;

/// A step of the recorded worker.
enum Step {
    Read,
    Write(Box<TxSegment>),
}

fn main() -> Result<(), Failure> {
    let typed: Vec<String> = env::args().skip(1).collect();
    let [capture, seconds] = &typed[..] else {
        return Err("usage: replay CAPTURE SECONDS".into());
    };
    let lasts = Duration::from_secs_f64(seconds.parse()?);
    let steps = steps(&fs::read(capture)?)?;
    let inward = steps.iter().filter(|step| matches!(step, Step::Read)).count();
    let outward = steps.len() - inward;
    let answer = steps.iter().find_map(|step| match step {
        Step::Write(segment) => acknowledgment(segment),
        Step::Read => None,
    });
    let answer = answer.ok_or("the capture has no frame of TCP over IPv4 that went out")?;
    let (mut near, far) = (open(NEAR)?, open(FAR)?);
    let (arrived, stop) = (AtomicU64::new(0), Stop::new()?);
    let began = Instant::now();
    let (bytes, took) = thread::scope(|scope| {
        let reading = scope.spawn(|| read(far, &answer, [inward, outward], &arrived, &stop));
        let written = write(&mut near, &steps, lasts, &arrived);
        stop.set();
        reading.join().map_err(|_| "the reader panicked")??;
        written
    })?;
    println!("{bytes} {took} {}", began.elapsed().as_nanos());
    Ok(())
}

fn open(wire: &str) -> Result<Tun, Failure> {
    let WireSpec::Tun(config) = wire.parse()? else { return Err("not a tun: wire".into()) };
    Ok(Tun::open(&config)?)
}

/// Repeats the steps of the recorded worker. Returns bytes and processor time.
fn write(
    tun: &mut Tun,
    steps: &[Step],
    lasts: Duration,
    arrived: &AtomicU64,
) -> Result<(u64, u64), Failure> {
    let (began, used) = (Instant::now(), processor_time()?);
    let (mut bytes, mut frames) = (0, 0);
    while began.elapsed() < lasts {
        for step in steps {
            match step {
                Step::Read => _ = tun.rx_burst(&mut |_| ())?,
                Step::Write(segment) => {
                    // Waits like a sender whose window is full.
                    while frames - arrived.load(Ordering::Relaxed) >= MOST_UNDER_WAY {
                        if began.elapsed() > 2 * lasts {
                            return Err("frames were lost: does the kernel forward them?".into());
                        }
                        wait(tun)?;
                        tun.rx_burst(&mut |_| ())?;
                    }
                    tun.send(segment)?;
                    frames += 1;
                    bytes += u64::from(segment.payload.bytes());
                }
            }
        }
    }
    let counters = tun.counters();
    if counters.tx_dropped + counters.tx_blocked + counters.tx_congested > 0 {
        return Err(format!("the device refused frames: {counters:?}").into());
    }
    Ok((bytes, processor_time()? - used))
}

/// Counts the frames that arrive, and answers `inward` of each `outward` frames.
fn read(
    mut tun: Tun,
    answer: &TxSegment,
    [inward, outward]: [usize; 2],
    arrived: &AtomicU64,
    stop: &Stop,
) -> Result<(), Failure> {
    let mut owed = 0;
    while !stop.is_set() {
        let frames = tun.rx_burst(&mut |_| ())?;
        arrived.fetch_add(frames as u64, Ordering::Relaxed);
        owed += frames * inward;
        while owed >= outward {
            tun.send(answer)?;
            owed -= outward;
        }
        if frames == 0 {
            wait(&tun)?;
        }
    }
    Ok(())
}

/// Waits until a frame arrives, for a limited time, because frames may be dropped.
fn wait(tun: &Tun) -> io::Result<()> {
    ppoll(&mut [PollFd::new(tun, Interest::Read)], Some(Duration::from_millis(10))).map(|_| ())
}

/// Returns the processor time of this thread so far, in nanoseconds (proc_pid_schedstat).
fn processor_time() -> Result<u64, Failure> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}

fn steps(mut capture: &[u8]) -> Result<Vec<Step>, Failure> {
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

/// Returns a segment of the same size, for the reader. `None` if it is not TCP over IPv4.
fn segment(packet: &EnhancedPacketBlock<'_>, text: &Bytes) -> Option<TxSegment> {
    let mut bytes = packet.data.to_vec();
    // Its original length, so that its header can be parsed.
    bytes.resize(packet.origlen as usize, 0);
    let (ip, tcp) = IpHeader::parse(&bytes).ok().filter(|(ip, _)| ip.src.is_v4())?;
    let (_, tcp_len) = TcpHeader::parse(tcp).ok()?;
    let header_len = usize::from(ip.header_len) + tcp_len;
    let mut segment = TxSegment::new();
    segment.header_room().get_mut(..header_len)?.copy_from_slice(bytes.get(..header_len)?);
    segment.set_header_len(header_len);
    segment.transport_offset = ip.header_len as u8;
    segment.checksum = TxChecksum::Partial(TcpHeader::CHECKSUM_OFFSET as u8);
    let text = text.slice(..bytes.len() - header_len);
    if text.len() > MSS {
        segment.gso_size = MSS as u16;
    }
    segment.payload.push(text).ok()?;
    address(&mut segment, [NEAR_STACK, FAR_STACK])
}

/// Returns an acknowledgment of `segment`: without text, in the other direction.
fn acknowledgment(segment: &TxSegment) -> Option<TxSegment> {
    let mut small = TxSegment::new();
    let header = segment.header();
    small.header_room().get_mut(..header.len())?.copy_from_slice(header);
    small.set_header_len(header.len());
    small.transport_offset = segment.transport_offset;
    small.checksum = segment.checksum;
    address(&mut small, [FAR_STACK, NEAR_STACK])
}

/// Sets a segment's addresses and its length.
fn address(segment: &mut TxSegment, [from, to]: [[u8; 4]; 2]) -> Option<TxSegment> {
    let len = u16::try_from(segment.len()).ok()?;
    let ip = segment.header_room().get_mut(..IP_HEADER)?;
    ip[2..4].copy_from_slice(&len.to_be_bytes());
    ip[10..12].fill(0);
    ip[12..16].copy_from_slice(&from);
    ip[16..20].copy_from_slice(&to);
    let checksum = Sum::new().add_bytes(ip).finish();
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    Some(std::mem::take(segment))
}

const NEAR: &str = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1";
const FAR: &str = "tun:whim1,addr=10.8.0.2/24,host=10.8.0.1";
const NEAR_STACK: [u8; 4] = [10, 9, 0, 2];
const FAR_STACK: [u8; 4] = [10, 8, 0, 2];
/// Length of the stack's IPv4 headers in bytes.
const IP_HEADER: usize = 20;
/// Bytes of text in a packet of 1,500 bytes with timestamps.
const MSS: usize = 1_448;
/// Limit of frames written and not read: as many as fill the kernel's largest window (6 MiB).
const MOST_UNDER_WAY: u64 = 96;
