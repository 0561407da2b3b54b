//! Ranges of ephemeral ports, and the order in which a search visits them.

/// A range of ports: at least one, and never port 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Creates the range from `first` to `last`, both included; `None` if it is empty or includes
    /// 0.
    pub const fn new(first: u16, last: u16) -> Option<Self> {
        if first == 0 || first > last { None } else { Some(Self { first, last }) }
    }

    /// The first port of the range.
    #[inline]
    pub const fn first(self) -> u16 {
        self.first
    }

    /// The last port of the range, which it includes.
    #[inline]
    pub const fn last(self) -> u16 {
        self.last
    }

    /// Returns the number of ports: 1 ..= 65,535.
    #[inline]
    pub const fn count(self) -> u32 {
        self.last as u32 - self.first as u32 + 1
    }

    /// True if `port` is one of them.
    #[inline]
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }

    /// Returns every port in a circle, starting `start` places after the first.
    pub const fn in_turn(self, start: u32) -> [Lane; 4] {
        let lane = self.first_in_turn(start);
        let rest = Lane { from: self.first as u32, to: lane.from, stride: 1 };
        [lane, rest, Lane::EMPTY, Lane::EMPTY]
    }

    /// The first lane of [`PortRange::in_turn`].
    #[inline]
    pub const fn first_in_turn(self, start: u32) -> Lane {
        let (first, end) = (self.first as u32, self.last as u32 + 1);
        Lane { from: first + start % self.count(), to: end, stride: 1 }
    }

    /// Returns every port, the first and every second one after it before the others.
    pub const fn even_first(self, start: u32) -> [Lane; 4] {
        let (first, end) = (self.first as u32, self.last as u32 + 1);
        let lane = self.first_even(start);
        let before = Lane { from: first, to: lane.from, stride: 2 };
        let lanes = [lane, before, Lane::EMPTY, Lane::EMPTY];
        if self.count() == 1 {
            return lanes;
        }
        let odd = first + 1 + start % (self.count() / 2) * 2;
        let (rest, before) = (Lane { from: odd, to: end, stride: 2 }, first + 1);
        [lanes[0], lanes[1], rest, Lane { from: before, to: odd, stride: 2 }]
    }

    /// The first lane of [`PortRange::even_first`].
    #[inline]
    pub const fn first_even(self, start: u32) -> Lane {
        let (first, end) = (self.first as u32, self.last as u32 + 1);
        Lane { from: first + start % self.count().div_ceil(2) * 2, to: end, stride: 2 }
    }

    /// Returns the number of steps from the start of the order to `port`.
    pub fn steps(lanes: &[Lane; 4], port: u16) -> u32 {
        let mut steps = 0;
        for lane in lanes {
            if lane.has(port) {
                return steps + lane.steps(port);
            }
            steps += lane.len();
        }
        steps
    }
}

/// Every `stride`-th port from `from` on, below `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lane {
    /// The first port.
    pub from: u32,
    /// The end, which the lane does not include.
    pub to: u32,
    /// Distance from one port to the next: 1, or 2 for every other port.
    pub stride: u32,
}

impl Lane {
    const EMPTY: Self = Self { from: 0, to: 0, stride: 1 };

    const fn len(&self) -> u32 {
        self.to.saturating_sub(self.from).div_ceil(self.stride)
    }

    fn has(&self, port: u16) -> bool {
        let port = u32::from(port);
        let within = self.from <= port && port < self.to;
        within && (port - self.from).is_multiple_of(self.stride)
    }

    /// Returns the number of steps from the start of the lane to `port`, which belongs to it.
    #[inline]
    pub fn steps(&self, port: u16) -> u32 {
        // The stride is 1 or 2: no division.
        u32::from(port).wrapping_sub(self.from) >> (self.stride - 1)
    }

    /// Returns the first port of the lane, at `at` or after it, that is not taken.
    #[inline]
    pub fn next_open(&self, at: u32, taken: &impl Words) -> Option<u16> {
        let last = self.to.checked_sub(1).filter(|last| at <= *last)?;
        let wanted = if self.stride == 2 { EVERY_SECOND << (self.from % 2) } else { u64::MAX };
        let open_in = |word: u32, from: u64| {
            let to = if word == last / 64 { u64::MAX >> (63 - last % 64) } else { u64::MAX };
            let open = wanted & from & to & !taken.word(word as usize);
            (open != 0).then(|| (word * 64 + open.trailing_zeros()) as u16)
        };
        // Nearly always the first word has one. By itself it takes 60 instructions; a loop over all
        // would process 32 words at a time, which takes 320 (`bench … -- counts`, connect).
        match open_in(at / 64, u64::MAX << (at % 64)) {
            None => first_open(at / 64, last / 64, taken, open_in),
            port => port,
        }
    }
}

/// The first port behind one word and up to another that is open.
// Out of line: what it keeps for the words of its loop would be made ready for each port that is drawn.
#[inline(never)]
fn first_open(
    behind: u32,
    last: u32,
    taken: &impl Words,
    open_in: impl Fn(u32, u64) -> Option<u16>,
) -> Option<u16> {
    let mut word = taken.next_with_gap(behind as usize + 1) as u32;
    while word <= last {
        if let Some(port) = open_in(word, u64::MAX) {
            return Some(port);
        }
        word = taken.next_with_gap(word as usize + 1) as u32;
    }
    None
}

/// Ports that cannot be drawn, in words of 64.
pub trait Words {
    /// Returns the bits of the 64 ports from `64 * index` on.
    fn word(&self, index: usize) -> u64;
    /// Returns the first word from `index` on that may lack one.
    fn next_with_gap(&self, index: usize) -> usize;
}

const EVERY_SECOND: u64 = 0x5555_5555_5555_5555;
