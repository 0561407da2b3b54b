//! Sets of facts, one bit each.

/// Declares a set of facts about `$name`'s owner: each has a number, which is its bit's.
macro_rules! flags {
    ($(#[$set:meta])* $name:ident { $($(#[$fact:meta])* $flag:ident = $bit:literal,)* }) => {
        $(#[$set])*
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        struct $name(u16);

        #[allow(dead_code, reason = "each set uses what it needs")]
        impl $name {
            $($(#[$fact])* const $flag: Self = Self(1 << $bit);)*

            #[inline]
            const fn has(self, flags: Self) -> bool {
                self.0 & flags.0 != 0
            }

            #[inline]
            const fn set(&mut self, flag: Self) {
                self.0 |= flag.0;
            }

            #[inline]
            const fn clear(&mut self, flags: Self) {
                self.0 &= !flags.0;
            }

            #[inline]
            const fn take(&mut self, flag: Self) -> bool {
                let had = self.has(flag);
                self.clear(flag);
                had
            }

            #[inline]
            const fn set_if(&mut self, flag: Self, holds: bool) {
                if holds { self.set(flag) } else { self.clear(flag) }
            }
        }
    };
}

pub(crate) use flags;
