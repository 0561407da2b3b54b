//! Every signal that can be sent, to what serves and to what measures; but SIGSEGV and SIGBUS, which
//! Rust's runtime has.

use crate::running::Signal;

use super::case::{Case, End, Ready, Within};

const SERVE: &str = "serve -w unix:x,addr=10.9.1.2/24";
const LOAD: &str = "load -z 60s -i 20ms --json-stream";

/// A server that gets this signal continues.
const fn unmoved(signal: Signal) -> Case {
    Case::ends(SERVE, End::GoesOn, &[]).sent(Ready::Telling, signal)
}

/// This signal ends a server by the system's default. Its socket's path stays, and the next server
/// there takes it over. So does the path of its control socket.
const fn fatal(signal: Signal) -> Case {
    Case::ends(SERVE, End::BySignal, &[])
        .framed("ulimit -c 0; exec @")
        .sent(Ready::Telling, signal)
        .leaving(&["whimbrel", "x"])
}

/// A command that this signal ends, with its result so far.
const fn ends(line: &'static str, signal: Signal) -> Case {
    Case::works(line).sent(Ready::Telling, signal)
}

const fn on_a_device(line: &'static str, signal: Signal) -> Case {
    ends(line, signal).within(Within::Net)
}

pub(super) const CASES: &[Case] = &[
    ends(SERVE, Signal::INT),
    ends(SERVE, Signal::TERM),
    ends(SERVE, Signal::HUP),
    Case::ends(SERVE, End::GoesOn, &[])
        .framed("trap '' HUP; exec @")
        .sent(Ready::Telling, Signal::HUP),
    unmoved(Signal::USR1),
    fatal(Signal::QUIT),
    fatal(Signal::ILL),
    fatal(Signal::TRAP),
    fatal(Signal::ABORT),
    fatal(Signal::FPE),
    fatal(Signal::KILL),
    fatal(Signal::USR2),
    fatal(Signal::ALARM),
    fatal(Signal::STKFLT),
    fatal(Signal::XCPU),
    fatal(Signal::VTALARM),
    fatal(Signal::PROF),
    fatal(Signal::IO),
    fatal(Signal::POWER),
    fatal(Signal::SYS),
    unmoved(Signal::PIPE),
    unmoved(Signal::CHILD),
    unmoved(Signal::CONT),
    unmoved(Signal::STOP),
    unmoved(Signal::TSTP),
    unmoved(Signal::TTIN),
    unmoved(Signal::TTOU),
    unmoved(Signal::URG),
    unmoved(Signal::WINCH),
    ends(LOAD, Signal::INT),
    ends(LOAD, Signal::TERM),
    ends(LOAD, Signal::HUP),
    ends("load -z 60s -i 20ms --json-stream -w kernel:", Signal::INT),
    ends("crr -l 60s --interval 20ms --json-stream", Signal::INT),
    ends("crr -l 60s --interval 20ms --json-stream -w kernel:", Signal::TERM),
    ends("bulk send -t 60 -i 20ms --json-stream", Signal::INT),
    ends("bulk recv -t 60 -i 20ms --json-stream -w kernel:", Signal::TERM),
    ends("load -z 9999s -q 500 -i 1s --json-stream -w mem:delay=20ms --clock virtual", Signal::INT),
    ends("load -z 60s -i 20ms --json-stream --pcap y,snap=64", Signal::INT).leaving(&["y"]),
    // It prints nothing before its end.
    // Below the ephemeral ports, of which another test's client may have any.
    Case::works("serve -w kernel: -l 127.0.0.1:18080 --json").sent(Ready::Handling, Signal::INT),
    Case::fails("sim run --seeds 0..100000", &["interrupted", "the result needs all"])
        .sent(Ready::Handling, Signal::INT),
    Case::fails("sim run --seeds 0..99999 --json", &["interrupted"])
        .sent(Ready::Handling, Signal::TERM),
    on_a_device("serve", Signal::INT),
    on_a_device("serve -w tap:whim1,addr=10.9.1.2/24,dad=off", Signal::TERM),
    on_a_device("serve -w packet:vstack,addr=10.9.0.2/24,dad=off", Signal::INT),
    on_a_device("forward -l 80 --to unix:nothing", Signal::TERM),
    on_a_device("crr --server -w tun:whim1,addr=10.9.1.2/24", Signal::TERM),
    Case::ends("serve", End::BySignal, &[])
        .sent(Ready::Telling, Signal::KILL)
        .leaving(&["whimbrel"])
        .within(Within::Net),
    Case::works("pcap -w tun:whim1,addr=10.9.1.2/24 -o y")
        .sent(Ready::Handling, Signal::INT)
        .leaving(&["y"])
        .within(Within::Net),
];
