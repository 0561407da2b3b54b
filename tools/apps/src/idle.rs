//! Connections by idle time, in one list linked through their places, so that each operation takes
//! constant time.

use alloc::vec::Vec;

use whimbrel_base::Instant;

/// Places in use, the longest idle first.
#[derive(Debug)]
pub struct IdleList {
    nodes: Vec<Node>,
    oldest: u32,
    newest: u32,
    len: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    before: u32,
    after: u32,
    since: Instant,
    linked: bool,
}

/// An empty list.
impl Default for IdleList {
    fn default() -> Self {
        Self { nodes: Vec::new(), oldest: NONE, newest: NONE, len: 0 }
    }
}

impl IdleList {
    /// The place that was idle longest, and the time since.
    pub fn oldest(&self) -> Option<(u32, Instant)> {
        self.node(self.oldest).map(|node| (self.oldest, node.since))
    }

    /// Notes activity at this place, and adds it to the list if necessary.
    pub fn touch(&mut self, place: u32, now: Instant) {
        self.remove(place);
        let needed = place as usize + 1;
        if self.nodes.len() < needed {
            self.nodes.resize(needed, UNLINKED);
        }
        let before = self.newest;
        if let Some(node) = self.nodes.get_mut(place as usize) {
            *node = Node { before, after: NONE, since: now, linked: true };
        }
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.after = place,
            None => self.oldest = place,
        }
        self.newest = place;
        self.len += 1;
    }

    /// Removes a place.
    pub fn remove(&mut self, place: u32) {
        let Some(Node { before, after, .. }) = self.node(place).filter(|node| node.linked) else {
            return;
        };
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.after = after,
            None => self.oldest = after,
        }
        match self.nodes.get_mut(after as usize) {
            Some(node) => node.before = before,
            None => self.newest = before,
        }
        if let Some(node) = self.nodes.get_mut(place as usize) {
            *node = UNLINKED;
        }
        self.len -= 1;
    }

    /// Number of places in use.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// True if no place is in the list.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if this place is in use.
    pub fn holds(&self, place: u32) -> bool {
        self.node(place).is_some_and(|node| node.linked)
    }

    fn node(&self, place: u32) -> Option<Node> {
        self.nodes.get(place as usize).copied()
    }
}

/// No place: there are never so many.
const NONE: u32 = u32::MAX;
const UNLINKED: Node = Node { before: NONE, after: NONE, since: Instant::ZERO, linked: false };

#[cfg(test)]
mod tests;
