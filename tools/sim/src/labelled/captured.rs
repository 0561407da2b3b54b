//! Captures of a played scene: at the client, at the server or between, cut, and damaged.

use std::time::Duration;

use fastrand::Rng;
use whimbrel_base::Instant;
use whimbrel_link::pcapng::{Direction, LinkType, PacketNote, Section};

use whimbrel_wire::{Address, Family};

use super::Played;
use crate::pair::{client_addr, server_at};
use crate::world::TapFrame;

/// Place of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spot {
    /// At the client.
    Client,
    /// At the server.
    Server,
    /// Halfway on the line: behind all that happens to the client's packets, in front of all that happens to
    /// the server's.
    Between,
}

/// Damage of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// No damage.
    None,
    /// One frame of a hundred is missing.
    Lossy,
    /// Nearly each frame stands twice.
    Doubled,
    /// Only what the client sent is there.
    OneWay,
}

impl Played {
    /// The capture as a pcapng file, with the first 96 bytes of each packet and no comments.
    pub fn capture(&self, spot: Spot, damage: Damage, seed: u64) -> Vec<u8> {
        write(&self.frames(spot), spot, damage, seed)
    }

    /// The capture, and in it the packets of `others`, whose hosts have other addresses there
    /// ([`Self::is_other`]).
    pub fn capture_with(&self, others: &Self, spot: Spot, damage: Damage, seed: u64) -> Vec<u8> {
        let mut all = self.frames(spot);
        all.extend(others.frames(spot).into_iter().map(|frame| {
            let mut packet = frame.packet.to_vec();
            [12, 16].into_iter().for_each(|at| packet[at] ^= OTHERS);
            TapFrame { packet: packet.into(), ..frame }
        }));
        all.sort_by_key(|frame| frame.at);
        write(&all, spot, damage, seed)
    }

    /// True if an address is one of the other hosts of [`Self::capture_with`].
    pub fn is_other(address: Address) -> bool {
        address != client_addr(Family::V4) && address != server_at(Family::V4, 0).addr
    }

    /// The packets as that place sees them, in the order of time.
    fn frames(&self, spot: Spot) -> Vec<TapFrame> {
        let half = self.delay / 2;
        let at_server = || self.taps[1].iter().cloned();
        match spot {
            Spot::Client => self.taps[0].clone(),
            Spot::Server => self.taps[1].clone(),
            Spot::Between => {
                let moved = at_server().map(|frame| {
                    let since = frame.at.since(Instant::ZERO);
                    let since =
                        if frame.is_sent { since + half } else { since.saturating_sub(half) };
                    TapFrame { at: Instant::ZERO + since, ..frame }
                });
                let mut all: Vec<_> = moved.collect();
                all.sort_by_key(|frame| frame.at);
                all
            }
        }
    }
}

/// A file of these frames.
fn write(frames: &[TapFrame], spot: Spot, damage: Damage, seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    let mut file = Vec::new();
    let mut section = Section::begin(&mut file);
    let interface = section.describe(&mut file, "tap0", LinkType::Raw);
    for frame in frames {
        let is_client = frame.is_sent == (spot == Spot::Client);
        let is_kept = match damage {
            Damage::Lossy => random.u32(..100) > 0,
            Damage::OneWay => is_client,
            Damage::None | Damage::Doubled => true,
        };
        let copies = match damage {
            Damage::Doubled => 1 + usize::from(random.u32(..20) > 0),
            _ => usize::from(is_kept),
        };
        let captured = frame.packet.get(..SNAP).unwrap_or(&frame.packet);
        for copy in 0..copies {
            let note = PacketNote {
                interface,
                at: frame.at + BEGIN + Duration::from_nanos(1_500 * copy as u64),
                direction: Direction::In,
                wire_len: frame.packet.len() as u32,
                comment: "",
            };
            section.packet(&mut file, &note, captured);
        }
    }
    file
}

const SNAP: usize = 96;
/// Bit of the first byte by which other hosts' addresses differ.
const OTHERS: u8 = 0x80;
/// Captures begin some time after 1970.
const BEGIN: Duration = Duration::from_secs(1_700_000_000);
