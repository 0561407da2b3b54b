//! The cubic function (RFC 9438 4.2), in integers: `W_cubic(t) = C (t - K)^3 + W_max`.
//!
//! Time is counted in units of 1,024 microseconds, in which a cube of nine minutes has 57 bits; the
//! curve moves by less than a segment in such a unit up to 9,000 segments beyond `W_max`.

use crate::cc::Window;

/// The curve's position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    /// K: when the window is back at `plateau`, units of time.
    k: u32,
    /// W_max, bytes: where the curve is flat.
    plateau: u32,
}

impl Curve {
    /// The curve that begins with `cwnd` and has its plateau at `w_max`, in bytes of which `mss` are a
    /// segment.
    pub(super) fn new(cwnd: u32, w_max: u32, mss: u32) -> Self {
        if w_max <= cwnd {
            // RFC 9438 4.8 and 4.10: "_K_ is set to 0, and _W_max_ is set to the congestion window size at
            // the beginning of the current congestion avoidance stage."
            return Self { k: 0, plateau: cwnd };
        }
        // RFC 9438 4.2: K is the cube root of "(W_max - cwnd_epoch) / C".
        let cube = u64::from(w_max - cwnd) * CUBE_OF_A_SEGMENT / u64::from(mss.max(1));
        Self { k: cube_root(cube), plateau: w_max }
    }

    /// W_cubic after so many microseconds, bytes.
    #[inline]
    pub(super) fn at(&self, micros: u32, mss: u32) -> u32 {
        let (time, k) = (i64::from(micros >> UNIT_BITS), i64::from(self.k));
        let distance = (time - k).clamp(-FARTHEST, FARTHEST);
        // 2^57 / 2^10 * 2^16 at most.
        let cube = distance.pow(3).unsigned_abs() >> 10;
        let change = cube * u64::from(mss.min(65_535)) / (CUBE_OF_A_SEGMENT >> 10);
        let plateau = u64::from(self.plateau);
        let bytes = if distance < 0 { plateau.saturating_sub(change) } else { plateau + change };
        bytes.min(u64::from(Window::MOST)) as u32
    }
}

/// The largest number whose cube is `value` at most, of a value below 2^63.
fn cube_root(value: u64) -> u32 {
    let mut root = 0_u64;
    for bit in (0..21).rev() {
        let next = root | 1 << bit;
        if next * next * next <= value {
            root = next;
        }
    }
    root as u32
}

/// A unit of time is 2^10 microseconds.
const UNIT_BITS: u32 = 10;

/// In units of time: (10^6 / 1,024)^3 / C with C = 0.4 segments per second cubed (RFC 9438 5.1: "_C_
/// SHOULD be set to 0.4"), the cube of the time in which the curve rises by a segment from its plateau.
const CUBE_OF_A_SEGMENT: u64 = 2_328_306_436;

/// Nine minutes: the curve has left any window by then.
const FARTHEST: i64 = 1 << 19;

#[cfg(test)]
mod tests;
