//! Bytes read as a script: every byte means something, and where there are no more, zeroes do.
//!
//! So any file is a siege, a fuzzer that changes a byte changes one decision, and a file cut short
//! is the same siege that ends earlier.

/// What is left of a script.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// True if nothing is left.
    pub(super) const fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn u8(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_be_bytes([self.u8(), self.u8()])
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    /// A number below `count`, which is 1 at least and 65,536 at most.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let drawn = if count <= 256 { usize::from(self.u8()) } else { usize::from(self.u16()) };
        drawn % count
    }

    /// The choice that the script makes among these.
    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Once in `often`, at a value that zeroes do not have.
    pub(super) fn rarely(&mut self, often: usize) -> bool {
        self.below(often) == often - 1
    }

    /// Up to `most` bytes.
    pub(super) fn bytes(&mut self, most: usize) -> &'a [u8] {
        let len = self.below(most + 1).min(self.0.len());
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }
}
