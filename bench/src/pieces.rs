//! Cost of a packet of text for a receive buffer, in any order: instructions, under limits that leave
//! no room for work that grows with the amount held.

use std::fmt;
use std::hint::black_box;

use whimbrel_base::packet::Payload;
use whimbrel_tcp::recv::{ChunkPool, RecvBuffer, Text};

use crate::Failure;
use crate::counts::measured;
use orders::Order;

#[path = "../../tests/harness/orders.rs"]
mod orders;

/// Pieces of some length, in some order, and what one may cost: 15 % more than it does in the dearest of
/// [`BUFFERS`].
pub(crate) struct Pieces {
    order: Order,
    len: usize,
    /// Instructions for each packet: those that put right, fill the gaps and read included.
    pub(crate) most: u64,
}

/// An order of pieces, sent into a buffer.
pub(crate) struct Case {
    order: Order,
    len: usize,
    buffer: usize,
}

/// Sizes of receive buffers.
pub(crate) const BUFFERS: [usize; 3] = [64 << 10, 256 << 10, 6 << 20];

impl Pieces {
    const fn new(order: Order, len: usize, most: u64) -> Self {
        Self { order, len, most }
    }

    pub(crate) const ALL: [Self; 35] = [
        Self::new(Order::Straight, 1, 190),
        Self::new(Order::Straight, 3, 200),
        Self::new(Order::Straight, 64, 250),
        Self::new(Order::Straight, 512, 450),
        Self::new(Order::Straight, 1_448, 710),
        Self::new(Order::Ascending, 1, 1_640),
        Self::new(Order::Ascending, 3, 1_790),
        Self::new(Order::Ascending, 64, 2_010),
        Self::new(Order::Ascending, 512, 2_580),
        Self::new(Order::Ascending, 1_448, 2_870),
        Self::new(Order::Descending, 1, 2_240),
        Self::new(Order::Descending, 3, 2_410),
        Self::new(Order::Descending, 64, 2_980),
        Self::new(Order::Descending, 512, 3_190),
        Self::new(Order::Descending, 1_448, 3_320),
        Self::new(Order::EverySecond, 1, 1_980),
        Self::new(Order::EverySecond, 3, 2_300),
        Self::new(Order::EverySecond, 64, 2_750),
        Self::new(Order::EverySecond, 512, 4_960),
        Self::new(Order::EverySecond, 1_448, 7_030),
        Self::new(Order::Triples, 1, 3_920),
        Self::new(Order::Triples, 3, 3_980),
        Self::new(Order::Triples, 64, 4_220),
        Self::new(Order::Triples, 512, 4_650),
        Self::new(Order::Triples, 1_448, 6_600),
        Self::new(Order::Random, 1, 7_410),
        Self::new(Order::Random, 3, 7_030),
        Self::new(Order::Random, 64, 6_200),
        Self::new(Order::Random, 512, 6_340),
        Self::new(Order::Random, 1_448, 6_890),
        Self::new(Order::Overlapping, 1, 5_180),
        Self::new(Order::Overlapping, 3, 5_770),
        Self::new(Order::Overlapping, 64, 5_570),
        Self::new(Order::Overlapping, 512, 5_520),
        Self::new(Order::Overlapping, 1_448, 5_740),
    ];

    pub(crate) fn within(&self, buffer: usize) -> Case {
        Case { order: self.order, len: self.len, buffer }
    }
}

impl fmt::Display for Pieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}-{}", self.order, self.len)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}-{}-{}K", self.order, self.len, self.buffer >> 10)
    }
}

impl Case {
    /// The case of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let cases = Pieces::ALL.iter().flat_map(|it| BUFFERS.map(|buffer| it.within(buffer)));
        cases.into_iter().find(|case| case.to_string() == name)
    }

    /// As many packets as it sends.
    pub(crate) fn packets(&self) -> u64 {
        self.starts().len() as u64
    }

    /// True if the other says the same, as its buffer is not full either and may have as many ranges.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let same =
            (self.order, self.len, self.ranges()) == (other.order, other.len, other.ranges());
        same && self.packets() == other.packets()
    }

    /// Sends them all.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let (starts, frame) = (self.starts(), vec![0; self.len]);
        let mut receiver = Receiver { ranges: self.ranges(), ..Receiver::default() };
        measured(&mut || {
            for (number, start) in starts.iter().enumerate() {
                receiver.take(*start, &frame);
                // The application reads after every 32 that are in order.
                if self.order == Order::Straight && number % 32 == 31 {
                    receiver.read();
                }
            }
            receiver.take(0, &[0]);
            receiver.read();
        });
        if receiver.buffer.unread() == 0 { Ok(()) } else { Err("text was left unread".into()) }
    }

    /// Starts of the pieces, all within the buffer.
    fn starts(&self) -> Vec<usize> {
        let starts = self.order.starts(self.len, PACKETS.min((self.buffer - 1) / self.len));
        starts.into_iter().filter(|start| start + self.len <= self.buffer).collect()
    }

    /// As many as such a buffer may have by the default of `max_out_of_order`.
    fn ranges(&self) -> usize {
        (self.buffer / 1_448 / 2).max(256)
    }
}

/// A buffer, and what its connection knows of it.
#[derive(Default)]
struct Receiver {
    pool: ChunkPool,
    buffer: RecvBuffer,
    /// RCV.NXT, from the first byte of the stream.
    nxt: usize,
    /// The most that are held out of order.
    ranges: usize,
}

impl Receiver {
    fn take(&mut self, start: usize, text: &[u8]) {
        let (payload, take) = (Payload::borrowed(text), text.len() as u32);
        if start <= self.nxt {
            let known = ((self.nxt - start) as u32).min(take);
            self.nxt += self.buffer.append(&mut self.pool, payload, known, take - known) as usize;
        } else {
            let ahead = (start - self.nxt) as u32;
            black_box(self.buffer.hold(ahead, payload, Text { skip: 0, take }, self.ranges));
        }
    }

    fn read(&mut self) {
        while let Some(chunk) = self.buffer.read(usize::MAX) {
            drop(black_box(chunk));
        }
    }
}

/// The most pieces of a case: enough that work for each one held would show. Those of 1 and 3 bytes do not fill a
/// buffer of 64 KiB or more, so that its size tells there only by the ranges that it may have. More would say less: of
/// 40,000 single bytes at random in 6 MiB three quarters are one range too many, which is cheap to refuse, and of
/// 10,000 a sixteenth.
const PACKETS: usize = 10_000;
