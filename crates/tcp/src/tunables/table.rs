//! Every tunable, by what it rules: a file for each part, with rows as [`whimbrel_base::tunables!`] reads
//! them.
//!
//! A struct cannot be declared in several files. So the rows of a part are a macro that adds them to those
//! before, and hands all of them on.

#[macro_use]
mod buffers;
#[macro_use]
mod negotiation;
#[macro_use]
mod retransmission;
#[macro_use]
mod congestion;
#[macro_use]
mod retries;
#[macro_use]
mod acknowledgments;
#[macro_use]
mod idle;
#[macro_use]
mod closing;
#[macro_use]
mod opening;
#[macro_use]
mod path;
#[macro_use]
mod identity;
#[macro_use]
mod limits;

/// Declares the struct of all parts' rows, in the order of the reference.
macro_rules! table {
    (@join { $($head:tt)* } { $($rows:tt)* }) => {
        tunables! { $($head)* $($rows)* }
    };
    (@join $head:tt $rows:tt $part:ident $($parts:ident)*) => {
        $part! { $head $rows $($parts)* }
    };
    ($($head:tt)*) => {
        table! {
            @join { $($head)* } {}
            buffers negotiation retransmission congestion retries acknowledgments
            idle closing opening path identity limits
        }
    };
}
