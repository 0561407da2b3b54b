//! Reads bytes as a script: every byte has a meaning, and after the end all are zero.
//!
//! So any file is a siege, a change of a byte changes one decision, and a truncated file is the
//! same siege with an earlier end.

/// The rest of a script.
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

    /// A number below `count`, which is 1 to 65,536.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let drawn = if count <= 256 { usize::from(self.u8()) } else { usize::from(self.u16()) };
        drawn % count
    }

    /// The script's choice of these.
    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// True once in `often`, at a value other than zero.
    pub(super) fn rarely(&mut self, often: usize) -> bool {
        self.below(often) == often - 1
    }

    /// At most `most` bytes.
    pub(super) fn bytes(&mut self, most: usize) -> &'a [u8] {
        let len = self.below(most + 1).min(self.0.len());
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }
}
