//! Tables of C names for scripts and libraries.

/// A set of bits, each with its C name and Linux' number.
macro_rules! flag_set {
    ($(#[$doc:meta])* $type:ident { $($(#[$flag_doc:meta])* $flag:ident = $bits:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $type(u32);

        impl $type {
            $($(#[$flag_doc])* pub const $flag: Self = Self($bits);)*
            /// No flags.
            pub const NONE: Self = Self(0);
            /// Every flag with its name.
            pub const NAMES: &'static [(&'static str, Self)] =
                &[$((stringify!($flag), Self::$flag),)*];

            /// Flags of these bits, also unknown ones.
            pub const fn from_bits(bits: u32) -> Self {
                Self(bits)
            }

            /// Number in C.
            pub const fn bits(self) -> u32 {
                self.0
            }

            /// True if any of `flags` is set.
            pub const fn has(self, flags: Self) -> bool {
                self.0 & flags.0 != 0
            }

            /// Flags that are also in `flags`.
            pub const fn only(self, flags: Self) -> Self {
                Self(self.0 & flags.0)
            }

            /// These flags, without those in `flags`.
            pub const fn without(self, flags: Self) -> Self {
                Self(self.0 & !flags.0)
            }

            /// True if no flag is set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Flag of this C name.
            pub fn by_name(name: &str) -> Option<Self> {
                Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, flag)| *flag)
            }
        }

        impl core::ops::BitOr for $type {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl core::ops::BitOrAssign for $type {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut rest = self.0;
                let mut separator = "";
                for (name, flag) in Self::NAMES {
                    if flag.0 != 0 && rest & flag.0 == flag.0 {
                        write!(f, "{separator}{name}")?;
                        rest &= !flag.0;
                        separator = "|";
                    }
                }
                if rest != 0 || separator.is_empty() { write!(f, "{separator}{rest:#x}") } else { Ok(()) }
            }
        }
    };
}

/// An enum with C names and Linux' numbers.
macro_rules! c_enum {
    ($(#[$doc:meta])* $type:ident { $($(#[$one_doc:meta])* $one:ident = $number:literal, $name:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $type { $($(#[$one_doc])* $one,)* }

        impl $type {
            /// All values, in the order above.
            pub const ALL: &'static [Self] = &[$(Self::$one,)*];

            /// Number in C.
            pub const fn number(self) -> i32 {
                match self { $(Self::$one => $number,)* }
            }

            /// The C name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$one => $name,)* }
            }

            /// Value of this C name.
            pub fn by_name(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|one| one.name() == name).copied()
            }

            /// Value of this number.
            pub fn by_number(number: i32) -> Option<Self> {
                Self::ALL.iter().find(|one| one.number() == number).copied()
            }
        }
    };
}
