//! Numbers in the byte order of a file.

/// Byte order of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// The least significant byte comes first.
    Little,
    /// The most significant byte comes first.
    Big,
}

/// Bytes with numbers in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteReader<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> ByteReader<'a> {
    pub(super) const fn new(bytes: &'a [u8], order: Order) -> Self {
        Self { bytes, order }
    }

    pub(super) const fn len(self) -> usize {
        self.bytes.len()
    }

    /// `len` bytes from `at` on, if there are as many.
    pub(super) fn slice(self, at: usize, len: usize) -> Option<&'a [u8]> {
        self.bytes.get(at..at.checked_add(len)?)
    }

    /// The `len` bytes from `at` on, with the same byte order.
    pub(super) fn within(self, at: usize, len: usize) -> Option<Self> {
        self.slice(at, len).map(|bytes| Self { bytes, ..self })
    }

    /// The bytes from `at` on.
    pub(super) fn from(self, at: usize) -> Self {
        Self { bytes: self.bytes.get(at..).unwrap_or_default(), ..self }
    }

    pub(super) fn u16_at(self, at: usize) -> Option<u16> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(match self.order {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        })
    }

    pub(super) fn u32_at(self, at: usize) -> Option<u32> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(match self.order {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        })
    }

    pub(super) fn i64_at(self, at: usize) -> Option<i64> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(match self.order {
            Order::Little => i64::from_le_bytes(bytes),
            Order::Big => i64::from_be_bytes(bytes),
        })
    }
}
