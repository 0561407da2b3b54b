//! The macro that turns a table of tunables into a struct, its documentation and its descriptions.

/// Declares a struct of tunables, and the list of their descriptions:
///
/// ```text
/// /// What they are together.
/// pub struct Tunables in TUNABLES, with TUNABLE_GROUPS;
///
/// /// What it rules.
/// field: Type = default, "name" (reading of a bare number), Unit => {
///     also: "alias of another system" (reading), …;
///     range: least ..= most;
///     rfc: "where it comes from";
///     low: "what goes wrong if it is too low, or off";
///     high: "what goes wrong if it is too high, or on";
/// }
/// ```
///
/// `also`, `range`, `rfc`, `low` and `high` are optional, in this order.
#[macro_export]
macro_rules! tunables {
    // The second of two, or the first if there is no second.
    (@or $default:expr) => {
        $default
    };
    (@or $default:expr, $given:expr) => {
        $given
    };
    (
        $(#[doc = $doc:literal])+
        pub struct $table:ident in $list:ident, with $groups:ident;
    $(
        $(#[doc = $help:literal])+
        $field:ident: $type:ty = $default:expr, $name:literal $(($reading:expr))?, $unit:expr => {
            $(also: $($alias:literal $(($alias_reading:expr))?),+;)?
            $(range: $range:expr;)?
            $(rfc: $rfc:literal;)?
            $(low: $low:literal;)?
            $(high: $high:literal;)?
        }
    )+) => {
        $(#[doc = $doc])+
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $table {
            $(
                $(#[doc = $help])+
                #[doc = concat!("\n\n`", $name, "`, in `", stringify!($unit), "`.")]
                #[doc = concat!("Default `", stringify!($default), "`.")]
                $(#[doc = concat!("Range `", stringify!($range), "`.")])?
                $(#[doc = concat!("(", $rfc, ".)")])?
                $(#[doc = concat!("Too low, or off: ", $low)])?
                $(#[doc = concat!("Too high, or on: ", $high)])?
                pub $field: $type,
            )+
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $crate::tunables::Table for $table {
            fn tunables() -> &'static [$crate::tunables::TunableInfo<Self>] {
                $list
            }

            fn groups() -> &'static [$crate::tunables::TunableGroup] {
                $groups
            }
        }

        /// Every tunable, in the order of the struct's fields.
        pub static $list: &[$crate::tunables::TunableInfo<$table>] = &[$($crate::tunables::TunableInfo {
            name: $crate::tunables::Name {
                text: $name,
                reading: $crate::tunables!(@or $crate::tunables::Reading::Same $(, $reading)?),
            },
            field: stringify!($field),
            aliases: &[$($($crate::tunables::Name {
                text: $alias,
                reading: $crate::tunables!(@or $crate::tunables::Reading::Same $(, $alias_reading)?),
            },)+)?],
            unit: $unit,
            help: concat!($($help),+).trim_ascii(),
            rfc: $crate::tunables!(@or "" $(, $rfc)?),
            too_low: $crate::tunables!(@or "" $(, $low)?),
            too_high: $crate::tunables!(@or "" $(, $high)?),
            read: |tunables| $crate::tunables::Value::print(&tunables.$field, $unit),
            write: |tunables, text, reading| {
                tunables.$field = $crate::tunables::Value::parse(text, $unit, reading)?;
                Some(())
            },
            limits: $crate::tunables!(@or None $(, Some($crate::tunables::Limits {
                place: |tunables| $crate::tunables::place(&tunables.$field, &($range)),
                least: || <$type as $crate::tunables::Value>::print(($range).start(), $unit),
                most: || <$type as $crate::tunables::Value>::print(($range).end(), $unit),
            }))?),
        },)+];
    };
}
