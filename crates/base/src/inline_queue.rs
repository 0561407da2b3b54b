//! A queue whose first element stands in place.

use alloc::collections::VecDeque;

/// A queue whose first element stands in the record that has the queue, so that a queue of one, as nearly each queue of
/// a short connection is, allocates nothing and touches no memory of its own.
#[derive(Debug)]
pub struct InlineQueue<T> {
    /// `None`: the queue is empty, and so is `rest`.
    first: Option<T>,
    rest: VecDeque<T>,
}

impl<T> InlineQueue<T> {
    /// Creates an empty queue.
    #[inline]
    pub const fn new() -> Self {
        Self { first: None, rest: VecDeque::new() }
    }

    /// Returns the number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// True if there is no element.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The element that has waited longest, if it is the only one.
    #[inline]
    pub fn only(&self) -> Option<&T> {
        self.first.as_ref().filter(|_| self.rest.is_empty())
    }

    /// The element that has waited longest.
    #[inline]
    pub const fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// The element that has waited longest, to be changed.
    #[inline]
    pub const fn front_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    /// The element that was appended last.
    #[inline]
    pub fn back(&self) -> Option<&T> {
        self.rest.back().or(self.first.as_ref())
    }

    /// The element that was appended last, to be changed.
    #[inline]
    pub fn back_mut(&mut self) -> Option<&mut T> {
        self.rest.back_mut().or(self.first.as_mut())
    }

    /// Returns the element behind `place` others.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        match place.checked_sub(1) {
            None => self.first.as_ref(),
            Some(place) => self.rest.get(place),
        }
    }

    /// Appends an element.
    #[inline]
    pub fn push_back(&mut self, element: T) {
        if self.first.is_none() {
            // A vacant place holds nothing: dropping it would take a call.
            core::mem::forget(self.first.replace(element));
        } else {
            self.rest.push_back(element);
        }
    }

    /// Removes the element that has waited longest, and returns it.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.first.take();
        if !self.rest.is_empty() {
            core::mem::forget(core::mem::replace(&mut self.first, self.rest.pop_front()));
        }
        first
    }

    /// Keeps the first `len` elements.
    pub fn truncate(&mut self, len: usize) {
        match len.checked_sub(1) {
            None => self.clear(),
            Some(len) => self.rest.truncate(len),
        }
    }

    /// Removes all elements, and keeps the room for them.
    #[inline]
    pub fn clear(&mut self) {
        self.first = None;
        if !self.rest.is_empty() {
            self.rest.clear();
        }
    }

    /// Returns the elements in their order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }

    /// Returns the elements from the one behind `place` others on. Takes no longer for a later one.
    pub fn iter_from(&self, place: usize) -> impl Iterator<Item = &T> {
        let first = self.first.as_ref().filter(|_| place == 0);
        first.into_iter().chain(self.rest.range(place.saturating_sub(1).min(self.rest.len())..))
    }

    /// Returns the number of elements of which `is_before` is true, where they precede all others. Takes the logarithm
    /// of their number.
    #[inline]
    pub fn partition_point(&self, mut is_before: impl FnMut(&T) -> bool) -> usize {
        match &self.first {
            Some(first) if is_before(first) => 1 + self.rest.partition_point(is_before),
            _ => 0,
        }
    }

    /// Returns the number of elements for which memory is allocated.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.rest.capacity()
    }

    /// Releases memory beyond that of `places` elements and of those that are there.
    pub fn shrink_to(&mut self, places: usize) {
        self.rest.shrink_to(places);
    }
}

impl<T> Default for InlineQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
