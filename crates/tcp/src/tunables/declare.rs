//! How the table of tunables becomes the struct, its documentation and [`TUNABLES`](super::TUNABLES).

/// One entry of the table:
///
/// ```text
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
/// `also`, `range`, `rfc`, `low` and `high` may be missing, in this order.
macro_rules! tunables {
    ($(
        $(#[doc = $help:literal])+
        $field:ident: $type:ty = $default:expr, $name:literal $(($reading:expr))?, $unit:expr => {
            $(also: $($alias:literal $(($alias_reading:expr))?),+;)?
            $(range: $range:expr;)?
            $(rfc: $rfc:literal;)?
            $(low: $low:literal;)?
            $(high: $high:literal;)?
        }
    )+) => {
        /// The rules in force. Plain values, which hot paths read as they are.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Tunables {
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

        impl Default for Tunables {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        /// Every tunable, in the order of the struct's fields.
        pub static TUNABLES: &[TunableInfo] = &[$(TunableInfo {
            name: Name {
                text: $name,
                reading: optional!(Reading::Same $(, $reading)?),
            },
            field: stringify!($field),
            aliases: &[$($(Name {
                text: $alias,
                reading: optional!(Reading::Same $(, $alias_reading)?),
            },)+)?],
            unit: $unit,
            help: concat!($($help),+).trim_ascii(),
            rfc: optional!("" $(, $rfc)?),
            too_low: optional!("" $(, $low)?),
            too_high: optional!("" $(, $high)?),
            read: |tunables| tunables.$field.print($unit),
            write: |tunables, text, reading| {
                tunables.$field = Value::parse(text, $unit, reading)?;
                Some(())
            },
            limits: optional!(None $(, Some(Limits {
                place: |tunables| place(&tunables.$field, &($range)),
                least: || <$type as Value>::print(($range).start(), $unit),
                most: || <$type as Value>::print(($range).end(), $unit),
            }))?),
        },)+];
    };
}

/// The second of two, or the first if there is no second.
macro_rules! optional {
    ($default:expr) => {
        $default
    };
    ($default:expr, $given:expr) => {
        $given
    };
}

pub(super) use {optional, tunables};
