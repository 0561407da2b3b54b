//! The time of one direction of a flow, by what it waited for.

/// Reason of a wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wait {
    /// The handshake.
    Handshake,
    /// The sending application: all it has written is acknowledged, or under way and short.
    Application,
    /// Room in the receiver's window.
    ReceiveWindow,
    /// Room in the sender's buffer, or a clamp.
    SendBuffer,
    /// The congestion window, and so the round trip.
    CongestionWindow,
    /// Repairs of losses.
    Recovery,
}

impl Wait {
    /// All, in the order of [`TimeShares::nanos`].
    pub const ALL: [Self; 6] = [
        Self::Handshake,
        Self::Application,
        Self::ReceiveWindow,
        Self::SendBuffer,
        Self::CongestionWindow,
        Self::Recovery,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Application => "application",
            Self::ReceiveWindow => "receive window",
            Self::SendBuffer => "send buffer",
            Self::CongestionWindow => "congestion window",
            Self::Recovery => "recovery",
        }
    }
}

/// Time of one direction by what it waited for, nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TimeShares {
    nanos: [u64; 6],
    /// Nanoseconds of the application with short text under way.
    under_way: u64,
}

impl TimeShares {
    /// Nanoseconds of each of [`Wait::ALL`].
    pub const fn nanos(&self) -> [u64; 6] {
        self.nanos
    }

    /// Nanoseconds spent waiting for `wait`.
    pub fn of(&self, wait: Wait) -> u64 {
        self.nanos.get(wait as usize).copied().unwrap_or(0)
    }

    /// Nanoseconds as a sender counts them that knows three limits: the application and its buffer, with the
    /// handshake; the receiver's window; and the network, while anything else is under way.
    pub fn by_limit(&self) -> [u64; 3] {
        let idle = self.of(Wait::Application).saturating_sub(self.under_way);
        let sum = |nanos: [u64; 3]| nanos.into_iter().fold(0, u64::saturating_add);
        [
            sum([self.of(Wait::Handshake), idle, self.of(Wait::SendBuffer)]),
            self.of(Wait::ReceiveWindow),
            sum([self.of(Wait::CongestionWindow), self.of(Wait::Recovery), self.under_way]),
        ]
    }

    /// The sum of all.
    pub fn total(&self) -> u64 {
        self.nanos.iter().fold(0, |sum, nanos| sum.saturating_add(*nanos))
    }

    /// Percentages that add up to 100, unless all are 0: the largest takes what rounding leaves.
    pub fn percent(&self) -> [u64; 6] {
        let total = u128::from(self.total());
        if total == 0 {
            return [0; 6];
        }
        let mut percent = self.nanos.map(|nanos| (u128::from(nanos) * 100 / total) as u64);
        let rest = 100u64.saturating_sub(percent.iter().sum());
        if let Some(largest) = percent.iter_mut().max() {
            *largest += rest;
        }
        percent
    }

    pub(crate) fn add(&mut self, wait: Wait, nanos: u64) {
        if let Some(place) = self.nanos.get_mut(wait as usize) {
            *place = place.saturating_add(nanos);
        }
    }

    /// Notes that the application's last `nanos` had short text under way.
    pub(crate) fn note_under_way(&mut self, nanos: u64) {
        self.under_way = self.under_way.saturating_add(nanos);
    }

    /// Moves up to `nanos` from one to another.
    pub(crate) fn shift(&mut self, from: Wait, to: Wait, nanos: u64) {
        let moved = nanos.min(self.of(from));
        if let Some(place) = self.nanos.get_mut(from as usize) {
            *place -= moved;
        }
        if from == Wait::Application {
            self.under_way = self.under_way.saturating_sub(moved);
        }
        self.add(to, moved);
    }
}
