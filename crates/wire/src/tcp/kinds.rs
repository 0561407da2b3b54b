//! The kinds of TCP options that are read or written (IANA's numbers).

pub(super) const END_OF_LIST: u8 = 0;
pub(super) const NOP: u8 = 1;
pub(super) const MSS: u8 = 2;
pub(super) const WINDOW_SCALE: u8 = 3;
pub(super) const SACK_PERMITTED: u8 = 4;
pub(super) const SACK: u8 = 5;
pub(super) const TIMESTAMPS: u8 = 8;
pub(super) const MD5: u8 = 19;
pub(super) const USER_TIMEOUT: u8 = 28;
pub(super) const AO: u8 = 29;
pub(super) const FAST_OPEN: u8 = 34;
pub(super) const ACCURATE_ECN_0: u8 = 172;
pub(super) const ACCURATE_ECN_1: u8 = 174;
pub(super) const EXPERIMENT: u8 = 254;
