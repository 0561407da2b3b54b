//! Policies: choices where stacks differ, each an enum whose values have names.

use alloc::borrow::ToOwned;
use alloc::string::String;

use whimbrel_wire::OptionOrder;

use super::info::{Choice, Reading, Unit};
use super::value::Value;

/// Declares enums of policies, each value with its name and description.
#[macro_export]
macro_rules! policies {
    ($(
        $(#[doc = $doc:literal])+
        $policy:ident {
            $($(#[doc = $help:literal])+ $value:ident = $name:literal,)+
        }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $policy {
            $($(#[doc = $help])+ $value,)+
        }

        impl $policy {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$value,)+];
            /// The unit of its values, for setting it by name.
            pub const UNIT: $crate::tunables::Unit = $crate::tunables::Unit::Choice(&[
                $($crate::tunables::Choice { name: $name, help: concat!($($help),+).trim_ascii() },)+]);
        }

        impl $crate::tunables::Value for $policy {
            fn parse(
                text: &str,
                _: $crate::tunables::Unit,
                reading: $crate::tunables::Reading,
            ) -> Option<Self> {
                match reading.plain(text) {
                    $($name => Some(Self::$value),)+
                    _ => None,
                }
            }

            fn print(&self, _: $crate::tunables::Unit) -> $crate::tunables::String {
                match self { $(Self::$value => $name,)+ }.into()
            }
        }
    )+};
}

/// The option order belongs to the wire; its names are here, with those of all policies.
pub const OPTION_ORDER: Unit = Unit::Choice(&[
    Choice { name: "linux", help: "MSS, SACK-permitted, timestamps, NOP, window scale; NOPs pad." },
    Choice {
        name: "freebsd",
        help: "MSS, NOP, window scale, SACK-permitted, timestamps; end-of-list and zeros pad.",
    },
    Choice {
        name: "lwip",
        help: "MSS, timestamps, window scale, SACK-permitted, each behind the NOPs that align it.",
    },
    Choice {
        name: "illumos",
        help: "as linux on a SYN; in its answer timestamps come before MSS, if there are any.",
    },
]);

impl Value for OptionOrder {
    fn parse(text: &str, _: Unit, reading: Reading) -> Option<Self> {
        match reading.plain(text) {
            "linux" => Some(Self::Linux),
            "freebsd" => Some(Self::FreeBsd),
            "lwip" => Some(Self::LwIp),
            "illumos" => Some(Self::Illumos),
            _ => None,
        }
    }

    fn print(&self, _: Unit) -> String {
        match self {
            Self::Linux => "linux",
            Self::FreeBsd => "freebsd",
            Self::LwIp => "lwip",
            Self::Illumos => "illumos",
        }
        .to_owned()
    }
}
