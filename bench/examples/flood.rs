//! Cost of a SYN flood: SYNs from unassigned addresses, and the answers.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml --example flood -- POLICY [SYNS]`, where
//! POLICY is `room` (each gets a half-open entry), `auto` (the SYN cache is full: a cookie),
//! `always` (a cookie) or `off` (the SYN cache is full: an entry is evicted). Under callgrind with
//! `--toggle-collect='flood::serve'` nothing but the server's work is counted.

use std::time::Instant as Clock;

use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, RxFrame, Shard, ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{Address, Endpoint, Ipv4Header, Mss, Protocol, RawWindow, SeqNum, WindowScale};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let policy = arguments.next().ok_or("give room, auto, always or off")?;
    let syns = arguments.next().map_or(Ok(100_000), |syns| syns.parse::<u32>())?;
    let mut server = server(&policy, syns)?;
    let flood: Vec<Vec<u8>> = (0..syns + FILL).map(spoofed).collect();
    let (filling, flood) = flood.split_at(FILL as usize);
    if policy == "auto" || policy == "off" {
        answer(&mut server, filling);
    }
    let begun = Clock::now();
    let answered = serve(&mut server, flood);
    let nanos = begun.elapsed().as_nanos() / u128::from(syns.max(1));
    let (counters, census) = (server.counters(), server.census());
    println!(
        "{syns} SYNs, {answered} answers, {nanos} ns each; {} cookies, {} evictions, {} entries",
        counters.cookies_sent, counters.syn_evictions, census.syn_entries
    );
    Ok(())
}

/// Receives the flood and answers it: the function that callgrind counts.
#[inline(never)]
fn serve(server: &mut Shard, flood: &[Vec<u8>]) -> usize {
    answer(server, flood)
}

fn answer(server: &mut Shard, flood: &[Vec<u8>]) -> usize {
    let mut batch = TxBatch::new(64);
    let meta = SegMeta { checksum: RxChecksum::Verified, ..SegMeta::SINGLE };
    let mut answers = 0;
    for burst in flood.chunks(64) {
        let frames: Vec<_> = burst.iter().map(|packet| RxFrame::new(packet, meta)).collect();
        server.rx(Instant::from_millis(1), &frames);
        while server.tx(&mut batch) || !batch.pending().is_empty() {
            answers += batch.pending().len();
            batch.consume(batch.pending().len());
        }
    }
    answers
}

/// A server whose SYN cache holds [`FILL`] entries, or all SYNs.
fn server(policy: &str, syns: u32) -> Result<Shard, Failure> {
    let mut tunables = Tunables { max_syn_entries: 1 << 20, ..Tunables::default() };
    let cookies = if policy == "room" { "auto" } else { policy };
    tunables.set_by_name("net.ipv4.tcp_syncookies", cookies)?;
    let mut shard = Shard::new(ShardConfig {
        tunables,
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ip, 1_500),
        addresses: vec![InterfaceAddress { addr: SERVER, prefix_len: 8 }],
        routes: Vec::new(),
    })?;
    let backlog = if policy == "room" { syns } else { FILL };
    shard.listen(Endpoint::new(SERVER, 80), backlog)?;
    Ok(shard)
}

/// The SYN with this number, with the options that clients have.
fn spoofed(number: u32) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b1);
    let syn = TcpHeader {
        src_port: 1_024 | number as u16,
        dst_port: 80,
        seq: SeqNum::new(mixed),
        flags: TcpFlags::SYN,
        window: RawWindow::new(64_240),
        options: TcpOptions {
            mss: Some(Mss::new(1_460)),
            window_scale: Some(WindowScale::new(7)),
            sack_permitted: true,
            timestamps: Some(Timestamps { val: 1, ecr: 0 }),
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    };
    let mut bytes = [0; 80];
    let (ip, tcp) = bytes.split_at_mut(Ipv4Header::LEN);
    let len = Ipv4Header::LEN + syn.emit(OptionOrder::Linux, tcp);
    let [a, b, c, _] = mixed.to_be_bytes();
    let header = Ipv4Header::new(
        [10, a | 128, b, c].into(),
        SERVER.v4_bytes().into(),
        Protocol::TCP,
        len - Ipv4Header::LEN,
    );
    header.emit(ip);
    bytes[..len].to_vec()
}

const SERVER: Address = Address::from_v4_bytes([10, 0, 0, 2]);
/// Entries that fill the SYN cache.
const FILL: u32 = 4_096;
