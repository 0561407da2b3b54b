//! What a packet of text costs a receive buffer, in whatever order a peer sends it: instructions of the
//! worst orders, under bounds that leave no room for work that grows with what is held.

use std::hint::black_box;

use whimbrel_tcp::Payload;
use whimbrel_tcp::recv::{ChunkPool, RecvBuffer, Text};

use crate::Failure;
use crate::counts::measured;
use orders::Order;

#[path = "../../tests/harness/orders.rs"]
mod orders;

/// Pieces of some length, in some order, and what one may cost.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    order: Order,
    len: usize,
    /// Instructions for each packet: those that put right, fill the gaps and read included.
    pub(crate) most: u64,
}

impl Case {
    const fn new(name: &'static str, order: Order, len: usize, most: u64) -> Self {
        Self { name, order, len, most }
    }

    pub(crate) const ALL: [Self; 15] = [
        Self::new("straight-1", Order::Straight, 1, 250),
        Self::new("straight-1448", Order::Straight, 1_448, 1_200),
        Self::new("ascending-1", Order::Ascending, 1, 2_000),
        Self::new("ascending-1448", Order::Ascending, 1_448, 3_000),
        Self::new("descending-1", Order::Descending, 1, 2_700),
        Self::new("descending-64", Order::Descending, 64, 3_500),
        Self::new("descending-1448", Order::Descending, 1_448, 4_200),
        Self::new("every-second-1", Order::EverySecond, 1, 1_700),
        Self::new("every-second-1448", Order::EverySecond, 1_448, 5_500),
        Self::new("triples-1", Order::Triples, 1, 2_600),
        Self::new("triples-3", Order::Triples, 3, 2_600),
        Self::new("random-1", Order::Random, 1, 3_600),
        Self::new("random-512", Order::Random, 512, 7_500),
        Self::new("overlapping-64", Order::Overlapping, 64, 3_300),
        Self::new("overlapping-1448", Order::Overlapping, 1_448, 7_800),
    ];

    /// The case of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|case| case.name == name)
    }

    /// As many packets as it sends.
    pub(crate) fn packets(&self) -> u64 {
        self.starts().len() as u64
    }

    /// Sends them all.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let (starts, frame) = (self.starts(), vec![0; self.len]);
        let (mut pool, mut buffer) = (ChunkPool::default(), RecvBuffer::default());
        let mut nxt = 0;
        measured(&mut || {
            for (number, start) in starts.iter().enumerate() {
                put(&mut pool, &mut buffer, &mut nxt, *start, &frame);
                // The application reads after every 32 that are in order.
                if self.order == Order::Straight && number % 32 == 31 {
                    read(&mut buffer);
                }
            }
            put(&mut pool, &mut buffer, &mut nxt, 0, &[0]);
            read(&mut buffer);
        });
        if buffer.unread() == 0 { Ok(()) } else { Err("text was left unread".into()) }
    }

    fn starts(&self) -> Vec<usize> {
        self.order.starts(self.len, PACKETS.min((BUFFER - 1) / self.len))
    }
}

fn put(pool: &mut ChunkPool, buffer: &mut RecvBuffer, nxt: &mut usize, start: usize, text: &[u8]) {
    let (payload, take) = (Payload::Borrowed(text), text.len() as u32);
    if start <= *nxt {
        let known = ((*nxt - start) as u32).min(take);
        *nxt += buffer.append(pool, payload, known, take - known) as usize;
    } else {
        let ahead = (start - *nxt) as u32;
        black_box(buffer.hold(ahead, payload, Text { skip: 0, take }, RANGES));
    }
}

fn read(buffer: &mut RecvBuffer) {
    while let Some(chunk) = buffer.read(usize::MAX) {
        drop(black_box(chunk));
    }
}

const BUFFER: usize = 6 << 20;
const PACKETS: usize = 40_000;
/// As many as such a buffer may have by the default of `max_out_of_order`.
const RANGES: usize = BUFFER / 1_448 / 2;
