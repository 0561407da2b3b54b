//! What commands say of the kinds of wire: all that this crate knows of them.

use std::net::{IpAddr, Ipv4Addr};

use whimbrel_wire::Address;

/// Whether the client can have this address: it is in the network of the two, and is not the
/// server's.
pub(crate) fn may_be_clients(ip: IpAddr) -> bool {
    let host = |ip: Ipv4Addr| matches!(ip.octets(), [10, 0, 0, host] if host != SERVER && (1..255).contains(&host));
    matches!(ip, IpAddr::V4(ip) if host(ip))
}

/// The address of a host on a mem: wire.
pub(crate) fn address(host: u8) -> Address {
    Address::from_v4_octets([10, 0, 0, host])
}

/// The last byte of the client's, and of the server's.
pub(crate) const CLIENT: u8 = 1;
pub(crate) const SERVER: u8 = 2;
/// The help of `--wire`, of commands that have both hosts in this process if no other is given. Lines are ended
/// here: what an option may be is one word, and as such wider than a page.
pub(crate) const FOR_LOADS: &str = "\
Where frames go:
mem:[rate=45M][,delay=35ms][,host-delay=][,jitter=][,loss=0.1%]
[,burst-loss=][,drop=N[/K]+…][,reorder=][,dup=][,corrupt=][,ecn=BYTES]
[,queue=100p|1bdp][,mtu=][,police=RATE:BURST][,ack-batch=]
[,ack-filter][,ecn-bleach][,accecn-strip][,at=TIME:CHANGE][,back.KEY=]
(both hosts in this process; `whimbrel link --help` explains
the keys),
tun:NAME,addr=ADDRESS/PREFIX[,host=ADDRESS][,queues=N],
tap:NAME,…,
packet:IF,addr=ADDRESS/PREFIX[,gw=ADDRESS][,mac=MAC][,fanout=N],
unix:PATH,addr=ADDRESS/PREFIX,
or kernel: (the kernel's sockets, instead of this stack) [default: mem:, or kernel: to a target]";
/// The help of `--wire`, of servers.
pub(crate) const FOR_SERVERS: &str = "\
Where frames go:
tun:NAME,addr=ADDRESS/PREFIX[,host=ADDRESS][,mtu=N][,queues=N]
[,offload=on|off] (IP packets),
tap:NAME,…[,mac=MAC][,dad=on|off] (Ethernet frames),
packet:IF,addr=ADDRESS/PREFIX[,gw=ADDRESS][,mac=MAC][,fanout=N]
[,offload=on|off][,dad=on|off] (a station of its own on this machine's interface IF),
unix:PATH,addr=ADDRESS/PREFIX[,mtu=N] (a socket to another process),
pcap:FILE,addr=ADDRESS/PREFIX[,mac=MAC][,speed=max] (a capture, replayed to the stack; it ends with it),
or kernel: (the kernel's sockets, to compare). addr, host and gw may repeat";
/// The help of `--wire`, of captures.
pub(crate) const FOR_CAPTURES: &str = "Where frames come from: a host with the addresses given is put there, \
                         which answers pings and refuses connections: tun:NAME,addr=ADDRESS/PREFIX, \
                         tap:NAME,…, packet:IF,addr=ADDRESS/PREFIX, unix:PATH,addr=ADDRESS/PREFIX, \
                         or a capture for it to judge: pcap:FILE,addr=ADDRESS/PREFIX[,speed=max]";
/// Why a wire is none to be captured at.
pub(crate) const NOTHING_TO_CAPTURE: &str = "nothing can be captured there: give tun:, tap:, packet:, unix: or pcap:; what \
                       serve, load, crr and bulk do is captured by their --pcap FILE";
