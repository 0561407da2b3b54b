//! The flows of a capture by their ends, with the one that is silent for longest at hand.

use std::collections::BTreeMap;

use whimbrel_wire::Endpoint;

use crate::flow::Flow;

/// Flows in numbered places, linked in the order of their latest segments.
#[derive(Default, Debug)]
pub(crate) struct Table {
    by_ends: BTreeMap<[Endpoint; 2], usize>,
    places: Vec<Place>,
    free: Vec<usize>,
    /// The place silent for longest, and the latest.
    oldest: Option<usize>,
    latest: Option<usize>,
    /// The ends looked up last: text comes in trains.
    last: Option<([Endpoint; 2], usize)>,
}

#[derive(Debug)]
struct Place {
    flow: Option<Box<Flow>>,
    ends: [Endpoint; 2],
    before: Option<usize>,
    after: Option<usize>,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.by_ends.len()
    }

    /// The flow of these ends, in either order, which becomes the latest.
    pub(crate) fn touch(&mut self, ends: [Endpoint; 2]) -> Option<&mut Flow> {
        let key = key(ends);
        let place = match self.last.filter(|(last, _)| *last == key) {
            Some((_, place)) => place,
            None => *self.by_ends.get(&key)?,
        };
        self.last = Some((key, place));
        if self.latest != Some(place) {
            self.unlink(place);
            self.link(place);
        }
        self.places.get_mut(place)?.flow.as_deref_mut()
    }

    pub(crate) fn insert(&mut self, flow: Flow) {
        let ends = key(flow.ends);
        let entry = Place { flow: Some(Box::new(flow)), ends, before: None, after: None };
        let place = match self.free.pop() {
            Some(place) => place,
            None => self.places.len(),
        };
        match self.places.get_mut(place) {
            Some(free) => *free = entry,
            None => self.places.push(entry),
        }
        self.by_ends.insert(ends, place);
        self.link(place);
        self.last = Some((ends, place));
    }

    pub(crate) fn remove(&mut self, ends: [Endpoint; 2]) -> Option<Flow> {
        let place = self.by_ends.remove(&key(ends))?;
        self.unlink(place);
        self.last = None;
        self.free.push(place);
        self.places.get_mut(place)?.flow.take().map(|flow| *flow)
    }

    /// All flows, in no order.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.places.iter().filter_map(|place| place.flow.as_deref())
    }

    /// Takes out the flow that is silent for longest.
    pub(crate) fn pop_oldest(&mut self) -> Option<Flow> {
        let ends = self.places.get(self.oldest?)?.ends;
        self.remove(ends)
    }

    fn link(&mut self, place: usize) {
        let before = self.latest.replace(place);
        if let Some(entry) = self.places.get_mut(place) {
            (entry.before, entry.after) = (before, None);
        }
        match before.and_then(|before| self.places.get_mut(before)) {
            Some(before) => before.after = Some(place),
            None => self.oldest = Some(place),
        }
    }

    fn unlink(&mut self, place: usize) {
        let Some(entry) = self.places.get_mut(place) else { return };
        let (before, after) = (entry.before.take(), entry.after.take());
        match before.and_then(|before| self.places.get_mut(before)) {
            Some(before) => before.after = after,
            None => self.oldest = after,
        }
        match after.and_then(|after| self.places.get_mut(after)) {
            Some(after) => after.before = before,
            None => self.latest = before,
        }
    }
}

/// The ends in an order of their own.
fn key([first, second]: [Endpoint; 2]) -> [Endpoint; 2] {
    if first <= second { [first, second] } else { [second, first] }
}
