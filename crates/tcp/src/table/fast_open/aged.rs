//! A bounded memory: at the bound what was noted longest ago is forgotten.

use alloc::collections::BTreeMap;

/// At most `MOST` values by key.
#[derive(Debug)]
pub(super) struct Aged<K, V, const MOST: usize> {
    values: BTreeMap<K, (u64, V)>,
    /// Keys in the order in which they were last noted.
    by_age: BTreeMap<u64, K>,
    next_serial: u64,
}

impl<K: Ord + Copy, V: Copy, const MOST: usize> Aged<K, V, MOST> {
    pub(super) const fn new() -> Self {
        Self { values: BTreeMap::new(), by_age: BTreeMap::new(), next_serial: 0 }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.values.get(key).map(|(_, value)| *value)
    }

    pub(super) fn note(&mut self, key: K, value: V) {
        self.forget(&key);
        if self.values.len() >= MOST
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.values.remove(&oldest);
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        self.values.insert(key, (serial, value));
        self.by_age.insert(serial, key);
    }

    pub(super) fn forget(&mut self, key: &K) {
        if let Some((serial, _)) = self.values.remove(key) {
            self.by_age.remove(&serial);
        }
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.by_age.clear();
    }
}

#[cfg(test)]
mod tests;
