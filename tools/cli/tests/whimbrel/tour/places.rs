//! Files, disks, pipes, ports and limits that are not to be had.

use super::case::{Case, End, Stdout, Within};
use super::peers::Peer;

const fn f(line: &'static str, says: &'static [&'static str]) -> Case {
    Case::fails(line, says)
}

/// A case of a user who may not read root's files.
const fn o(line: &'static str, says: &'static [&'static str]) -> Case {
    f(line, says).within(Within::Ordinary)
}

pub(super) const CASES: &[Case] = &[
    // Files that are not there, or something else.
    f("serve --config /nowhere.toml", &["--config /nowhere.toml", "that can be read"]),
    f("serve --config .", &["Is a directory", "that can be read"]),
    Case::usage("load --config x", &["x:1"]).framed("echo 'no toml' > x; @; c=$?; rm x; exit $c"),
    Case::usage("load --config x", &["x:2", "nosuch"])
        .framed("printf '[tunables]\\nnosuch = \"1\"\\n' > x; @; c=$?; rm x; exit $c"),
    f("serve --file-root /nowhere", &["--file-root /nowhere", "use a directory"]),
    f("serve --file-root /etc/passwd", &["Not a directory", "use a directory"]),
    f("serve -w unix:/nowhere/x,addr=10.9.0.2/24", &["no folder", "mkdir"]),
    f("serve -w unix:x,addr=10.9.0.2/24", &["no socket", "another path"])
        .framed("echo > x; @; c=$?; rm x; exit $c"),
    f("serve -w pcap:/nowhere,addr=10.9.0.2/24", &["/nowhere", "that can be read"]),
    f("serve -w pcap:/etc/passwd,addr=10.9.0.2/24", &["neither pcap nor pcapng"]),
    Case::usage("serve --cookie-group file:/nowhere", &["/nowhere", "32 hexadecimal"]),
    f("load -D /nowhere", &["--data-file /nowhere", "that can be read"]),
    f("load -D /tmp", &["Is a directory", "that can be read"]),
    f("load -D /dev/zero", &["limit of 256M", "shorter"]),
    f("load -n 1 -o /nowhere/x", &["--output /nowhere/x", "that can be written"]),
    f("load -n 1 -o /tmp", &["Is a directory", "that can be written"]),
    f("load -n 1 --pcap /nowhere/x", &["--pcap /nowhere/x", "that can be written"]),
    f("load http://no.invalid/ -w kernel:", &["no.invalid", "give an address"]),
    f("pcap -w pcap:/dev/null,addr=10.0.0.2/24 -o x", &["neither pcap nor pcapng"]),
    f("script run /nowhere.pkt", &["/nowhere.pkt", "use a script"]),
    f("script run .", &["has no .pkt file"]),
    f("script run x.pkt --pcap-dir /proc/x", &["--pcap-dir", "/proc/x"]).framed(
        "echo '0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3' > x.pkt; @; c=$?; rm x.pkt; exit $c",
    ),
    f("man --dir /proc/nowhere", &["/proc/nowhere", "use a directory"]),
    f("man --dir /dev/null", &["/dev/null", "use a directory"]),
    // Files that are closed to an ordinary user.
    o("load --config /etc/shadow", &["Permission denied", "that can be read"]),
    o("load -D /etc/shadow", &["Permission denied", "that can be read"]),
    o("load -n 1 -o /etc/x", &["Permission denied", "that can be written"]),
    o("load -n 1 --pcap /etc/x", &["Permission denied", "that can be written"]),
    o("script run /root", &["Permission denied"]),
    o("serve -w kernel: -l 127.0.0.1:8 --file-root /root", &["Permission denied", "directory"]),
    o("man --dir /etc/x", &["Permission denied", "use a directory"]),
    o("pcap -w pcap:/etc/shadow,addr=10.0.0.2/24 -o x", &["Permission denied"]),
    // Ports that are taken.
    f("serve -w kernel: -l AT", &["address in use", "--listen"]).with(Peer::Mute),
    f("crr --server AT -w kernel:", &["address in use"]).with(Peer::Mute),
    f("serve -w kernel: -l 192.0.2.1:8080", &["not an address of this machine"]),
    Case::usage("load -w kernel: --local-addr 192.0.2.1", &["192.0.2.1", "ip address"]),
    // Disks that are full.
    f("load -n 20", &["standard output", "No space left", "redirect it"]).into(Stdout::Full),
    f("load -n 20 --json", &["standard output", "No space left"]).into(Stdout::Full),
    f("load -n 20 --csv", &["standard output", "No space left"]).into(Stdout::Full),
    f("load -n 20 --json-stream", &["standard output", "No space left"]).into(Stdout::Full),
    f("crr -n 20", &["standard output", "No space left"]).into(Stdout::Full),
    f("bulk send -n 1M", &["standard output", "No space left"]).into(Stdout::Full),
    f("doctor", &["standard output", "No space left"]).into(Stdout::Full),
    f("man", &["standard output", "No space left"]).into(Stdout::Full),
    f("completions zsh", &["standard output", "No space left"]).into(Stdout::Full),
    f("sim run --seeds 0..2", &["standard output", "No space left"]).into(Stdout::Full),
    f("load --print-config", &["standard output", "No space left"]).into(Stdout::Full),
    f("serve -w kernel: -l AT", &["address in use"]).with(Peer::Mute).into(Stdout::Full),
    f("load -n 20 -o /dev/full", &["--output /dev/full", "No space left"]),
    f("load -n 20 --pcap /dev/full", &["--pcap", "disk full"]),
    f("load -n 20 --trace /dev/full", &["--trace", "disk full"]),
    f("bulk send -n 1M --trace /nowhere/x", &["--trace /nowhere/x", "can be written"]),
    f("bulk send -n 1M -o /dev/full --json", &["--output /dev/full", "No space left"]),
    // Without a reader of the output.
    Case::works("load -n 20").into(Stdout::Closed),
    Case::works("load -n 20 --json-stream").into(Stdout::Closed),
    Case::works("load -z 100ms -i 20ms --csv").into(Stdout::Closed),
    Case::works("bulk send -n 1M").into(Stdout::Closed),
    Case::works("sim run --seeds 0..2").into(Stdout::Closed),
    Case::works("man").into(Stdout::Closed),
    Case::works("load -n 20 --quiet").framed("exec @ <&- >&- 2>&-"),
    Case::ends("load -w foo", End::Code(2), &[]).framed("exec @ 2> /dev/full"),
    Case::ends("load -n 5 --quiet --fail-if 'p99>0s'", End::Code(3), &[])
        .framed("exec @ 2> /dev/full"),
    // Limits of the process.
    f(
        "load http://AT/ -w kernel: -c 200 -n 400 --timeout 300ms",
        &["no descriptor left", "of the 9 that this process may have", "ulimit -n"],
    )
    .with(Peer::Mute)
    .framed("ulimit -n 9; exec @"),
    f("load -n 20000 --pcap x.pcapng", &["--pcap", "File too large"])
        .framed("ulimit -f 64; exec @")
        .leaving(&["x.pcapng"]),
    f("load -n 20 --json -o x", &["--output", "File too large"])
        .framed("ulimit -f 1; exec @")
        .leaving(&["x"]),
    // What ran, and is not as it was to be.
    Case::ends("load -n 20 --quiet --fail-if 'requests<21'", End::Code(3), &["limit 21"]),
    Case::ends("crr -n 20 --quiet --fail-if 'rps<1T || errors>=0%'", End::Code(2), &["1T"]),
    Case::ends("bulk send -n 1M --quiet --fail-if 'bitrate>0'", End::Code(3), &["bitrate"]),
    Case::ends("script run /etc/passwd --quiet", End::Code(3), &[]),
];
