//! Macros for counters: a table in source becomes a struct of plain numbers, and a list of their
//! names and texts.

use core::ops::AddAssign;

/// Declares a struct of counters, each under its published name:
///
/// ```text
/// /// What they are together.
/// pub struct Counters, with drops by DropReason;
///
/// /// What it counts.
/// field = "Name",
/// ```
///
/// The struct also counts drops by a reason that [`drop_reasons!`](crate::drop_reasons!) declared,
/// unless the line ends after the struct's name.
#[macro_export]
macro_rules! counters {
    ($(#[doc = $about:literal])+ pub struct $counters:ident;
    $($(#[doc = $doc:literal])* $field:ident = $name:literal,)*) => {
        $(#[doc = $about])+
        #[derive(Clone, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct $counters {
            $($(#[doc = $doc])* pub $field: u64,)*
        }

        impl $counters {
            /// Iterates over the counters: name, documentation, value.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$(($name, concat!($($doc),*).trim_ascii(), self.$field),)*].into_iter()
            }
        }

        /// Adds up the counts of several shards.
        impl core::ops::AddAssign<&Self> for $counters {
            fn add_assign(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
    ($(#[doc = $about:literal])+ pub struct $counters:ident, with drops by $reason:ident;
    $($(#[doc = $doc:literal])* $field:ident = $name:literal,)*) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default)]
        #[non_exhaustive]
        pub struct $counters {
            $($(#[doc = $doc])* pub $field: u64,)*
            dropped: $crate::counters::DropCounts<{ $reason::ALL.len() }>,
        }

        impl $counters {
            /// Iterates over the counters without the drops: name, documentation, value.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$(($name, concat!($($doc),*).trim_ascii(), self.$field),)*].into_iter()
            }

            /// Returns how many were dropped for `reason`.
            pub fn dropped(&self, reason: $reason) -> u64 {
                self.dropped.count(reason as usize)
            }

            /// Iterates over the reasons with their counts.
            pub fn drops(&self) -> impl Iterator<Item = ($reason, u64)> {
                $reason::ALL.iter().map(|reason| (*reason, self.dropped(*reason)))
            }
        }

        /// Adds up the counts of several shards.
        impl core::ops::AddAssign<&Self> for $counters {
            fn add_assign(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
                self.dropped += &other.dropped;
            }
        }
    };
}

/// Makes a struct of sums addable: `AddAssign` adds up each of its fields, which must all be named.
#[macro_export]
macro_rules! sums {
    ($(#[doc = $about:literal])* $sums:ident { $($field:ident),* $(,)? }) => {
        $(#[doc = $about])*
        impl core::ops::AddAssign for $sums {
            fn add_assign(&mut self, other: Self) {
                let Self { $($field),* } = other;
                $(self.$field += $field;)*
            }
        }
    };
}

/// Declares an enum of reasons for drops, whose values have a name, its origin, and a text.
/// [`DropCounts`] counts them.
#[macro_export]
macro_rules! drop_reasons {
    ($(#[doc = $about:literal])+ pub enum $reasons:ident;
    $($(#[doc = $doc:literal])* $variant:ident = $origin:ident $name:literal,)*) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $reasons { $($(#[doc = $doc])* $variant,)* }

        impl $reasons {
            /// Every reason, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name under which its counter is published.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the origin of the name.
            pub const fn origin(self) -> $crate::counters::Origin {
                match self { $(Self::$variant => $crate::counters::Origin::$origin,)* }
            }

            /// Returns one line about what it counts.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),*).trim_ascii(),)* }
            }
        }
    };
}

/// Origin of a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// Linux, for the same thing.
    Linux,
    /// This stack, because Linux has none.
    Own,
}

/// Number of drops for each of `N` reasons, by the reason's number.
#[derive(Clone, Debug)]
pub struct DropCounts<const N: usize>([u64; N]);

impl<const N: usize> DropCounts<N> {
    /// Counts `more` for `reason`.
    #[inline]
    pub fn add(&mut self, reason: usize, more: u64) {
        if let Some(count) = self.0.get_mut(reason) {
            *count += more;
        }
    }

    /// Returns how many were dropped for `reason`.
    #[inline]
    pub fn count(&self, reason: usize) -> u64 {
        self.0.get(reason).copied().unwrap_or(0)
    }
}

impl<const N: usize> Default for DropCounts<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> AddAssign<&Self> for DropCounts<N> {
    fn add_assign(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }
}
