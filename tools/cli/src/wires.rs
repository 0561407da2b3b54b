//! Texts on the kinds of wire: all that this crate knows of them.

use std::net::{IpAddr, Ipv4Addr};

use whimbrel_wire::Address;

/// True if the client can have this address: in the network of both, and not the server's.
pub(crate) fn may_be_clients(ip: IpAddr) -> bool {
    let host = |ip: Ipv4Addr| matches!(ip.octets(), [10, 0, 0, host] if host != SERVER && (1..255).contains(&host));
    matches!(ip, IpAddr::V4(ip) if host(ip))
}

/// The address of a host on a mem: wire.
pub(crate) fn address(host: u8) -> Address {
    Address::from_v4_bytes([10, 0, 0, host])
}

/// The last byte of the client's, and of the server's.
pub(crate) const CLIENT: u8 = 1;
pub(crate) const SERVER: u8 = 2;
/// Wires with a device. Lines end here, because an option's value is one word, wider than a page.
macro_rules! devices {
    () => {
        "tun:NAME,addr=ADDRESS/PREFIX[,host=ADDRESS][,mtu=N][,queues=N]
[,offload=on|off] (IP packets),
tap:NAME,…[,mac=MAC][,dad=on|off] (Ethernet frames),
packet:IF,addr=ADDRESS/PREFIX[,gw=ADDRESS][,mac=MAC][,fanout=N]
[,offload=on|off][,dad=on|off] (a separate host on this machine's interface IF),
"
    };
}
/// The wire to another process.
macro_rules! unix {
    () => {
        "unix:PATH,addr=ADDRESS/PREFIX[,mtu=N] (a socket to another process)"
    };
}
/// The help of `--wire`, of commands with both hosts in this process by default.
pub(crate) const FOR_LOADS: &str = concat!(
    "Where frames go:
mem:[rate=45M][,delay=35ms][,host-delay=][,jitter=][,loss=0.1%]
[,burst-loss=][,drop=N[/K]+…][,reorder=][,dup=][,corrupt=][,ecn=BYTES]
[,queue=100p|1bdp][,mtu=][,police=RATE:BURST][,ack-batch=]
[,ack-filter][,ecn-bleach][,accecn-strip][,strip=][,forget=][,inject=]
[,at=TIME:CHANGE][,back.KEY=]
(both hosts in this process; `whimbrel link --help` explains
the keys),
",
    devices!(),
    unix!(),
    ",
or kernel: (the kernel's sockets, instead of this stack). addr, host and gw may repeat [default: mem:, or kernel: to a \
     target]"
);
/// The help of `--wire`, of servers.
pub(crate) const FOR_SERVERS: &str = concat!(
    "Where frames go:\n",
    devices!(),
    unix!(),
    ",
pcap:FILE,addr=ADDRESS/PREFIX[,mac=MAC][,speed=max] (a capture to replay; the command ends with it),
or kernel: (the kernel's sockets, for comparison). addr, host and gw may repeat"
);
/// The help of `--wire`, of commands between clients on the stack and the kernel's sockets.
pub(crate) const FOR_GATEWAYS: &str =
    concat!("Where frames go:\n", devices!(), "or ", unix!(), ". addr, host and gw may repeat");
/// The help of `--wire`, of programs.
pub(crate) const FOR_PROGRAMS: &str = concat!(
    "Carry the program's flows on by this stack on a wire (as a rule with root), instead of by the machine's \
     sockets. The rules below are then those of its TCP there, and --pcap records that wire:\n",
    devices!(),
    "or ",
    unix!(),
    ". addr, host and gw may repeat"
);
/// The help of `--wire`, of captures.
pub(crate) const FOR_CAPTURES: &str = "The source of frames: a host with the given addresses, \
                         which answers pings and refuses connections: \
                         tun:NAME,addr=ADDRESS/PREFIX, \
                         tap:NAME,…, packet:IF,addr=ADDRESS/PREFIX, unix:PATH,addr=ADDRESS/PREFIX, \
                         or a capture for it to process: pcap:FILE,addr=ADDRESS/PREFIX[,speed=max]";
/// Why a wire is none to be captured at.
pub(crate) const NOTHING_TO_CAPTURE: &str = "this wire cannot be captured: use tun:, tap:, \
                                             packet:, unix: or pcap:; serve, load, crr and bulk \
                                             write captures by --pcap FILE";
