//! Ports that sockets are bound to.

use alloc::collections::BTreeSet;

use crate::Fd;

#[derive(Debug)]
pub(crate) struct Ports {
    bound: BTreeSet<(u16, Fd)>,
    /// Ports left by sockets without `SO_REUSEADDR`: lingering connections there may forbid a bind.
    pub(crate) strict: BTreeSet<u16>,
}

impl Ports {
    pub(crate) const fn new() -> Self {
        Self { bound: BTreeSet::new(), strict: BTreeSet::new() }
    }

    pub(crate) fn bind(&mut self, port: u16, fd: Fd) {
        self.bound.insert((port, fd));
    }

    pub(crate) fn release(&mut self, port: u16, fd: Fd) {
        self.bound.remove(&(port, fd));
    }

    /// Sockets bound to `port`.
    pub(crate) fn holders(&self, port: u16) -> impl Iterator<Item = Fd> {
        self.bound.range((port, Fd::LEAST)..=(port, Fd::GREATEST)).map(|(_, fd)| *fd)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.bound.len()
    }
}
