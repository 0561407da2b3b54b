//! The stack's own congestion controls, as help and errors name them.

use whimbrel_tcp::cc::Algorithm;

/// The help of `--congestion`, where connections are the stack's.
pub(crate) fn help() -> String {
    let names = names();
    format!(
        "The congestion control of connections: {names}; short for -S \
         net.ipv4.tcp_congestion_control=…"
    )
}

/// The help of `--congestion`, where they may be the kernel's.
pub(crate) fn help_with_kernel() -> String {
    let names = names();
    format!(
        "The congestion control: {names}, short for -S net.ipv4.tcp_congestion_control=…; with -w \
         kernel: any that the kernel has"
    )
}

/// Their names, as a choice.
pub(crate) fn names() -> String {
    let names = Algorithm::OURS.map(|(_, name)| name);
    let [first @ .., last] = names;
    format!("{} or {last}", first.join(", "))
}
