//! Devices, interfaces and rights that are missing, in network namespaces of the test's own.

use super::case::{Case, Within};

const fn n(line: &'static str, says: &'static [&'static str]) -> Case {
    Case::fails(line, says).within(Within::Net)
}

/// Without rights.
const fn o(line: &'static str, says: &'static [&'static str]) -> Case {
    Case::lacks(line, says).within(Within::Ordinary)
}

pub(super) const CASES: &[Case] = &[
    // Rights.
    o("serve", &["CAP_NET_ADMIN", "doctor"]),
    o("serve -w tap:whim1,addr=10.9.0.2/24", &["CAP_NET_ADMIN", "doctor"]),
    o("serve -w packet:lo,addr=10.9.0.2/24", &["CAP_NET_RAW", "doctor"]),
    o("crr --server", &["CAP_NET_ADMIN", "doctor"]),
    o("load http://10.9.0.1/ -w tun:whim1,addr=10.9.0.2/24", &["CAP_NET_ADMIN", "doctor"]),
    o("crr 10.9.0.1:7 -w packet:lo,addr=10.9.0.2/24", &["CAP_NET_RAW", "doctor"]),
    o("bulk send 10.9.0.1:7 -w tap:whim1,addr=10.9.0.2/24", &["CAP_NET_ADMIN", "doctor"]),
    o("pcap -w tun:whim1,addr=10.9.0.2/24 -o x", &["CAP_NET_ADMIN", "doctor"]),
    o("link tun:whim1 tun:whim2 rate=10M", &["CAP_NET_ADMIN", "doctor"]),
    o("script run --against kernel x.pkt", &["doctor"])
        .framed("echo > x.pkt; @; c=$?; rm x.pkt; exit $c"),
    o("serve -w kernel: -l 127.0.0.1:80", &["CAP_NET_BIND_SERVICE"]),
    o("serve -w unix:/etc/x,addr=10.9.0.2/24", &["doctor"]),
    // Devices.
    Case::lacks("serve", &["no TUN device", "modprobe tun"])
        .within(Within::Net)
        .framed("mount -t tmpfs none /dev/net && exec @"),
    n("serve -w tun:vkernel,addr=10.9.1.2/24", &["vkernel"]),
    n("serve -w packet:eth7,addr=10.9.0.2/24", &["no interface eth7", "ip link"]),
    n("serve -w packet:lo,addr=10.9.0.2/24", &["lo carries no Ethernet"]),
    n("serve -w packet:vstack,addr=10.9.0.1/24", &["10.9.0.1", "kernel-addresses"]),
    n("serve -w packet:vstack,addr=10.9.0.2/24", &["ip link set vstack up"])
        .framed("ip link set vstack down; @; c=$?; ip link set vstack up; exit $c"),
    n("serve -w tun:whim1,addr=10.9.1.2/24 -l 10.9.1.2:80 -l 10.9.1.2:80", &["address in use"]),
    Case::usage("crr 10.9.1.2:7 -w tun:whim1,addr=10.9.1.2/24", &["other side"])
        .within(Within::Net),
    // No host answers behind them.
    n("load http://10.9.1.9/ -c 2 -n 2 --connect-timeout 300ms -w tun:whim1,addr=10.9.1.2/24", &[
        "connect timeout",
        "--connect-timeout",
    ]),
    n("crr 10.9.1.9:7 -n 2 --timeout 300ms -w tun:whim1,addr=10.9.1.2/24", &["connect timeout"]),
    n("bulk send 10.9.1.9:7 --timeout 300ms -w tun:whim1,addr=10.9.1.2/24", &["timeout"]),
    n("load http://10.9.1.1/ -c 2 -n 2 -w tun:whim1,addr=10.9.1.2/24,host=10.9.1.1", &[
        "connection refused",
    ]),
    n("load http://10.9.0.9/ -c 1 -n 1 --connect-timeout 300ms -w packet:vstack,addr=10.9.0.2/24", &["connect timeout"]),
    n("load http://192.0.2.1/ -c 2 -n 2 -w packet:vstack,addr=10.9.0.2/24", &["unreachable"]),
    n("load http://192.0.2.1/ -c 2 -n 2 -w kernel:", &["unreachable", "ip route"]),
    n("load http://10.9.1.9/ -c 2 -n 2 --connect-timeout 300ms -w unix:x,addr=10.9.1.2/24", &["connect timeout"]),
    // Disks.
    n("load -n 20000 --pcap full/x.pcapng", &["--pcap", "No space left", "disk full"])
        .framed("mkdir full; mount -t tmpfs -o size=64k none full; @; c=$?; umount full; rmdir full; exit $c"),
    n("load -n 20 --json -o full/x", &["--output full/x", "No space left"])
        .framed("mkdir full; mount -t tmpfs -o size=4k none full; echo > full/y; @; c=$?; umount full; rmdir full; exit $c"),
    n("man --dir full", &["--dir full", "No space left"])
        .framed("mkdir full; mount -t tmpfs -o size=16k none full; @; c=$?; umount full; rmdir full; exit $c"),
    n("serve --file-root full --upload -w kernel: -l 127.0.0.1:80 -o full/x", &["--output"])
        .framed("mkdir full; mount -t tmpfs -o ro none full; @; c=$?; umount full; rmdir full; exit $c"),
    n("load -w unix:x,addr=10.9.1.2/24 http://10.9.1.1/ -c 1 -n 1", &["x"])
        .framed("mount -t tmpfs -o ro none .; cd .; @; c=$?; cd /; exit $c"),
];
