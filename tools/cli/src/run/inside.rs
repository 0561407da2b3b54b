//! The process that makes the namespaces and the wire into them, and then waits for the program's end.
//!
//! It is a copy of `run` without threads. All is set up by it alone: a program that it executed would
//! have lost the capabilities that it has there.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{
    Pid, Signal, WaitOptions, getgid, getuid, set_parent_process_death_signal, waitpid,
};
use whimbrel_io::TunError;
use whimbrel_io::netlink::{Netlink, interface_index};
use whimbrel_io::process::{ProcessIds, fork, isolate};
use whimbrel_io::signals::KeptSignals;
use whimbrel_io::tun::{Tun, TunConfig};
use whimbrel_stack::InterfaceAddress;
use whimbrel_wire::{Address, Family};

use super::channel::{Channel, DeviceKind, Tag};
use super::plan::{InsidePlan, User};
use super::stopped::{PRIVILEGE, Stopped};
use super::{SIGNALS, init};

/// Sets all up, and waits for the program's end. Returns the exit code of this process, which has no
/// reader.
pub(super) fn run(plan: &InsidePlan, channel: &Arc<Channel>, ids: ProcessIds) -> u8 {
    // A signal of the terminal is for the program: this process ends when that has.
    let _kept = KeptSignals::install(&SIGNALS);
    match set_up(plan, channel, ids) {
        Ok(first) => {
            let _ended = waitpid(Some(first), WaitOptions::empty());
            0
        }
        Err(Stopped { text, code }) => {
            channel.send_with(Tag::Failed(code), &text, &[]);
            code
        }
    }
}

/// Makes the namespaces, and starts the first process in them.
fn set_up(plan: &InsidePlan, channel: &Arc<Channel>, ids: ProcessIds) -> Result<Pid, Stopped> {
    separate(plan.user, ids)?;
    // Later than that: the kernel forgets it where capabilities are gained.
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Stopped::at("be ended with run")(error.into()))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| Stopped::at("keep mounts apart")(error.into()))?;
    let mut netlink = Netlink::open().map_err(Stopped::at("open a routing socket"))?;
    let loopback = interface_index(c"lo").map_err(Stopped::at("find the loopback interface"))?;
    netlink
        .bring_up(loopback, LOOPBACK_MTU, LOOPBACK_QUEUE)
        .map_err(Stopped::at("set the loopback interface up"))?;
    let (kind, device) = open_device(plan, &mut netlink)?;
    match plan.resolver.install(plan.network) {
        Ok(true) => {}
        Ok(false) => {
            let text = "this machine has no /etc/resolv.conf, so the program may find no names";
            channel.send_with(Tag::Warning, text, &[]);
        }
        Err(error) => {
            let text = format!("cannot replace /etc/resolv.conf for the program: {error}");
            channel.send_with(Tag::Warning, &text, &[]);
        }
    }
    // While it is open, what the program's sockets hold is sent on after its end.
    let namespace =
        fs::File::open("/proc/self/ns/net").map_err(Stopped::at("open the network namespace"))?;
    channel.send_with(Tag::Device(kind), "", &[device.as_fd(), namespace.as_fd()]);
    drop((device, namespace));
    let first = fork(|| init::run(plan, channel, ids)).map_err(Stopped::at("start a process"))?;
    Pid::from_raw(first.cast_signed())
        .ok_or_else(|| Stopped { text: "the system started no process".into(), code: 1 })
}

/// Moves this process into its namespaces, as the same user or as root.
fn separate(user: User, ids: ProcessIds) -> Result<(), Stopped> {
    // Inside, both are unknown until they are mapped.
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    isolate(ids).map_err(|error| Stopped {
        text: format!("a namespace of the program's own was refused: {error}"),
        code: PRIVILEGE,
    })?;
    let (own_uid, own_gid) = match user {
        User::Same => (uid, gid),
        User::Root => (0, 0),
    };
    // user_namespaces(7): without this a group that keeps a user out could be left.
    let written = fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("{own_uid} {uid} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("{own_gid} {gid} 1")));
    written.map_err(Stopped::at("map the user into its namespace"))
}

/// Opens the wire to the gateway: a TUN interface or, without its device, a veth pair.
fn open_device(plan: &InsidePlan, netlink: &mut Netlink) -> Result<(DeviceKind, OwnedFd), Stopped> {
    let tun = || -> Result<OwnedFd, TunError> {
        let hosts: Vec<_> = plan.network.program().iter().map(|host| host.addr).collect();
        let config = TunConfig::new(INTERFACE, plan.network.gateway())?.with_hosts(&hosts)?;
        Ok(Tun::open(&config.with_mtu(plan.mtu)?)?.into_fd())
    };
    let (kind, device) = match tun() {
        Ok(device) => (DeviceKind::Tun, device),
        Err(TunError::NoDevice(_) | TunError::Privilege { .. }) => {
            (DeviceKind::Packet, open_pair(plan, netlink).map_err(Stopped::at("make a veth pair"))?)
        }
        Err(error) => return Err(Stopped { text: error.to_string(), code: 1 }),
    };
    add_default_routes(plan, netlink).map_err(Stopped::at("route to the gateway"))?;
    Ok((kind, device))
}

/// Makes a veth pair. One end is the program's; frames of the other pass by a packet socket.
fn open_pair(plan: &InsidePlan, netlink: &mut Netlink) -> io::Result<OwnedFd> {
    netlink.add_veth([INTERFACE_C, GATEWAY_END_C])?;
    for name in [GATEWAY_END_C, INTERFACE_C] {
        let index = interface_index(name)?;
        // This fails if IPv6 is switched off, and then it is not needed.
        let _ = netlink.no_generated_addresses(index);
        netlink.bring_up(index, plan.mtu, VETH_QUEUE)?;
        if plan.is_cut {
            netlink.set_most_segments(index, 1)?;
        }
    }
    let index = interface_index(INTERFACE_C)?;
    for host in plan.network.program() {
        netlink.add_address(index, host)?;
    }
    // Bound to its interface by the gateway.
    let flags = SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?)
}

fn add_default_routes(plan: &InsidePlan, netlink: &mut Netlink) -> io::Result<()> {
    let index = interface_index(INTERFACE_C)?;
    for host in plan.network.program() {
        let addr = match host.addr.family() {
            Family::V4 => Address::from_v4_bytes([0; 4]),
            Family::V6 => Address::from_bytes([0; 16]),
        };
        let gateway = plan.network.gateway_of_family(host.addr);
        netlink.add_route_by(index, InterfaceAddress { addr, prefix_len: 0 }, gateway)?;
    }
    Ok(())
}

/// The program's interface.
const INTERFACE: &str = "whim0";
const INTERFACE_C: &std::ffi::CStr = c"whim0";
/// The gateway's end of a veth pair.
pub(super) const GATEWAY_END: &str = "gateway0";
const GATEWAY_END_C: &std::ffi::CStr = c"gateway0";
/// As the kernel has them; an MTU of 65,536 has no place in sixteen bits.
const LOOPBACK_MTU: u16 = u16::MAX;
const LOOPBACK_QUEUE: u32 = 1000;
const VETH_QUEUE: u32 = 1000;
