//! What the compiler is told about how a program runs.

/// Says that the branch in which it is called is rarely taken, and does nothing else: the branch's code
/// lies behind that of the rest, which so fills fewer lines of the instruction cache.
///
/// For what a peer, a path or a program does rarely at any load: not for what one kind of load never does.
#[cold]
#[inline(always)]
pub const fn cold_path() {}
