//! Hints for the compiler.

/// Marks the branch in which it is called as rarely taken. The branch's code is placed after the
/// rest, which then fills fewer lines of the instruction cache.
///
/// It is for branches that are rare under any load, not for those that one kind of load never
/// takes.
#[cold]
#[inline(always)]
pub const fn cold_path() {}
