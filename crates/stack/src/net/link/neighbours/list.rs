//! A list of neighbours in the order of their use, its links within their records.

use super::Slots;

/// The place of a neighbour in its list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    previous: u32,
    next: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self { previous: NONE, next: NONE }
    }
}

/// A list. Who stands in it is known to its owner.
#[derive(Debug)]
pub(super) struct List {
    front: u32,
    back: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { front: NONE, back: NONE, len: 0 }
    }
}

impl List {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The neighbour that stands last in the list.
    pub(super) fn back(&self) -> Option<u32> {
        (self.back != NONE).then_some(self.back)
    }

    /// Puts in front a neighbour that stands in no list.
    pub(super) fn push_front(&mut self, slots: &mut Slots, index: u32) {
        let next = self.front;
        set(slots, index, |links| *links = Links { previous: NONE, next });
        set(slots, next, |links| links.previous = index);
        self.front = index;
        if next == NONE {
            self.back = index;
        }
        self.len += 1;
    }

    /// Takes a neighbour of this list out.
    pub(super) fn remove(&mut self, slots: &mut Slots, index: u32) {
        let Some(neighbour) = slots.0.get(index) else { return };
        let Links { previous, next } = neighbour.links;
        set(slots, previous, |links| links.next = next);
        set(slots, next, |links| links.previous = previous);
        if self.front == index {
            self.front = next;
        }
        if self.back == index {
            self.back = previous;
        }
        self.len -= 1;
    }

    /// Moves a neighbour of this list to its front, where the one in use nearly always is.
    pub(super) fn move_to_front(&mut self, slots: &mut Slots, index: u32) {
        if self.front != index {
            self.remove(slots, index);
            self.push_front(slots, index);
        }
    }
}

fn set(slots: &mut Slots, index: u32, change: impl FnOnce(&mut Links)) {
    if let Some(neighbour) = slots.0.get_mut(index) {
        change(&mut neighbour.links);
    }
}

/// No neighbour: no index of a slab reaches it.
const NONE: u32 = u32::MAX;
