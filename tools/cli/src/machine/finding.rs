//! Checks of the machine against the needs of commands, with fixes.

use std::io::ErrorKind;

use whimbrel_io::netlink::veth::Checksums;
use whimbrel_io::text;

use super::{Capability, Machine, PROGRAMS};
use crate::need::Need;
use crate::proc::first_line;
use crate::quantity::thousands;
use crate::size;

/// One line of `doctor`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    /// Description of what was found.
    pub(crate) found: String,
    /// The fix, unless none is needed.
    pub(crate) fix: Option<String>,
}

/// Severity of what was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// As it should be.
    Ok,
    /// Something is slower, or compares badly.
    Warn,
    /// A command exits with 4 for want of it.
    Fail,
}

impl Verdict {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Need {
    /// Checks `machine` for it.
    pub(crate) fn judge(self, machine: &Machine) -> Finding {
        match self {
            Self::Tun => tun(machine),
            Self::NetAdmin => capability(machine, Capability::NetAdmin, Verdict::Fail),
            Self::Namespaces => namespaces(machine),
            Self::UserNamespaces => user_namespaces(machine),
            Self::LowPorts => low_ports(machine),
            Self::NetRaw => capability(machine, Capability::NetRaw, Verdict::Fail),
            Self::Packet => family("AF_PACKET", "af_packet", machine.packet, Verdict::Fail),
            Self::Fanout => fanout(machine),
            Self::KernelAddresses => kernel_addresses(machine),
            Self::VethChecksums => veth_checksums(machine),
            Self::Xdp => family("AF_XDP", "xdp_diag", machine.xdp, Verdict::Warn),
            Self::LockedMemory => locked_memory(machine),
            Self::UnixSockets => unix_sockets(machine),
            Self::OpenFiles => open_files(machine),
            Self::KernelPorts => kernel_ports(machine),
            Self::KernelCongestion => kernel_congestion(machine),
            Self::Programs => programs(machine),
        }
    }
}

fn ok(found: impl Into<String>) -> Finding {
    Finding { verdict: Verdict::Ok, found: found.into(), fix: None }
}

fn warn(found: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { verdict: Verdict::Warn, found: found.into(), fix: Some(fix.into()) }
}

fn fail(found: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { verdict: Verdict::Fail, found: found.into(), fix: Some(fix.into()) }
}

fn tun(machine: &Machine) -> Finding {
    match machine.tun {
        Ok(()) => ok("/dev/net/tun can be opened"),
        Err(ErrorKind::PermissionDenied) => fail(
            "this user may not open /dev/net/tun",
            "sudo chmod 666 /dev/net/tun, or run as \
                                                         root",
        ),
        Err(ErrorKind::NotFound) => fail(
            "no /dev/net/tun",
            "sudo modprobe tun; in a container, start it with --device /dev/net/tun",
        ),
        Err(kind) => fail(format!("/dev/net/tun: {kind}"), "sudo modprobe tun"),
    }
}

fn capability(machine: &Machine, capability: Capability, without: Verdict) -> Finding {
    let name = match capability {
        Capability::DacOverride => "CAP_DAC_OVERRIDE",
        Capability::NetBindService => "CAP_NET_BIND_SERVICE",
        Capability::NetAdmin => "CAP_NET_ADMIN",
        Capability::NetRaw => "CAP_NET_RAW",
        Capability::IpcLock => "CAP_IPC_LOCK",
        Capability::SysAdmin => "CAP_SYS_ADMIN",
    };
    if machine.may(capability) {
        return ok(name);
    }
    Finding { verdict: without, found: format!("no {name}"), fix: Some(grant(machine, name)) }
}

fn grant(machine: &Machine, name: &str) -> String {
    let (small, program) = (name.to_ascii_lowercase(), text::path(&machine.program));
    let container = name.trim_start_matches("CAP_");
    format!(
        "run as root, or sudo setcap {small}+ep {program}; in a container, start it with --cap-add \
         {container}"
    )
}

fn namespaces(machine: &Machine) -> Finding {
    match (machine.may(Capability::SysAdmin), machine.namespaces) {
        (true, 1..) => ok(format!("{} may be created", thousands(machine.namespaces))),
        (true, 0) => fail("none may be created", "sudo sysctl -w user.max_net_namespaces=1024"),
        (false, _) => capability(machine, Capability::SysAdmin, Verdict::Fail),
    }
}

fn user_namespaces(machine: &Machine) -> Finding {
    let errno = match machine.user_namespaces {
        None => return warn("not tried: this process has several threads", "run whimbrel doctor"),
        Some(Ok(())) => {
            return ok(match machine.tun {
                Ok(()) => "with TUN inside",
                Err(_) => "with a veth pair and a packet socket inside, because there is no TUN",
            });
        }
        Some(Err(errno)) => errno,
    };
    let error = std::io::Error::from_raw_os_error(errno);
    let restricted = first_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1";
    let fix = match errno {
        ENOSPC => "sudo sysctl -w user.max_user_namespaces=10000",
        _ if restricted => "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        _ if first_line("/proc/sys/kernel/unprivileged_userns_clone") == "0" => {
            "sudo sysctl -w kernel.unprivileged_userns_clone=1"
        }
        _ => "in a container, start it with a seccomp profile that allows unshare(2)",
    };
    fail(format!("none may be made: {error}"), fix)
}

fn programs(machine: &Machine) -> Finding {
    match machine.programs.as_slice() {
        [] => ok(PROGRAMS.map(|(program, _)| program).join(", ")),
        missing => {
            let packages = PROGRAMS.iter().filter(|(program, _)| missing.contains(program));
            let packages: Vec<_> = packages.map(|(_, package)| *package).collect();
            let fix = format!("sudo apt-get install {}", packages.join(" "));
            warn(format!("no {}", missing.join(", ")), fix)
        }
    }
}

fn low_ports(machine: &Machine) -> Finding {
    let first = machine.first_free_port;
    if machine.may(Capability::NetBindService) {
        return ok("CAP_NET_BIND_SERVICE");
    }
    if first <= 1 {
        return ok("all ports are free to use");
    }
    let fix =
        "choose a port from there on, or sudo sysctl -w net.ipv4.ip_unprivileged_port_start=0";
    fail(format!("ports below {first} need CAP_NET_BIND_SERVICE"), fix)
}

fn family(name: &str, module: &str, had: Result<(), ErrorKind>, without: Verdict) -> Finding {
    let (found, fix) = match had {
        Ok(()) => return ok(format!("{name} sockets are available")),
        Err(ErrorKind::PermissionDenied) => {
            (format!("this user may not open {name} sockets"), "run as root".into())
        }
        Err(_) => {
            let fix = format!("sudo modprobe {module}, or a kernel that has {name}");
            (format!("the kernel has no {name} sockets"), fix)
        }
    };
    Finding { verdict: without, found, fix: Some(fix) }
}

fn fanout(machine: &Machine) -> Finding {
    match machine.fanout {
        Ok(()) => ok("sockets can share the frames of an interface"),
        Err(ErrorKind::PermissionDenied) => {
            fail("this user may not open AF_PACKET sockets", grant(machine, "CAP_NET_RAW"))
        }
        Err(kind) => warn(
            format!("sockets cannot share frames ({kind})"),
            "--shards 1 without fanout=, or a kernel from 4.20 on",
        ),
    }
}

/// A veth computes no checksums, and the kernel that gets a frame trusts the sender's mark. `packet:`
/// reads that mark in the offload header; a capture file has no mark.
fn veth_checksums(machine: &Machine) -> Finding {
    let here = machine.veths.iter().filter_map(|veth| veth.peer.as_ref());
    let leave = here.filter(|peer| peer.checksums == Checksums::Device);
    let leave: Vec<_> = leave.map(|peer| peer.name.as_str()).collect();
    if !leave.is_empty() {
        let fixes: Vec<_> =
            leave.iter().map(|name| format!("sudo ethtool -K {name} tx off")).collect();
        return warn(
            format!(
                "packets of {} have no checksum yet, and a replay drops them as TCP_CSUM",
                leave.join(" and ")
            ),
            fixes.join("; "),
        );
    }
    let elsewhere = machine.veths.iter().filter(|veth| veth.peer.is_none());
    let elsewhere: Vec<_> = elsewhere.map(|veth| veth.name.as_str()).collect();
    match elsewhere.as_slice() {
        [] if machine.veths.is_empty() => ok("no veth"),
        [] => ok("the sender computes them"),
        names => ok(format!(
            "the other end of {} is in another network namespace: use ethtool -k there",
            names.join(", ")
        )),
    }
}

/// For these the kernel answers ARP, and segments with RST. If forwarding is on, it also forwards
/// packets that reach its own station for others: the stack's, if both had one station.
fn kernel_addresses(machine: &Machine) -> Finding {
    let found = match machine.addresses.as_slice() {
        [] => "the kernel has no addresses".into(),
        addresses => format!("the kernel answers for {}", addresses.join(", ")),
    };
    if machine.forwards {
        let found = found + "; it forwards, so mac= must not be the interface's own";
        return warn(found, "leave mac= out, or sudo sysctl -w net.ipv4.ip_forward=0");
    }
    ok(found)
}

/// A folder for a wire's path, which the error names.
fn unix_sockets(machine: &Machine) -> Finding {
    match machine.folders.as_slice() {
        [] => {
            let text = "this user may write in no folder for sockets";
            fail(text, "mkdir -m 700 ~/.whimbrel, and use a path there with -w unix:")
        }
        folders => ok(format!("this user may create them in {}", folders.join(", "))),
    }
}

fn locked_memory(machine: &Machine) -> Finding {
    match machine.locked {
        _ if machine.may(Capability::IpcLock) => ok("CAP_IPC_LOCK: no limit"),
        None => ok("RLIMIT_MEMLOCK: no limit"),
        Some(bytes) if bytes >= ENOUGH_LOCKED => {
            ok(format!("RLIMIT_MEMLOCK {}", size::display(bytes)))
        }
        Some(bytes) => {
            warn(format!("RLIMIT_MEMLOCK {}", size::display(bytes)), "ulimit -l unlimited, as root")
        }
    }
}

fn open_files(machine: &Machine) -> Finding {
    match machine.files {
        None => ok("RLIMIT_NOFILE: no limit"),
        Some(files) if files >= ENOUGH_FILES => ok(format!("RLIMIT_NOFILE {}", thousands(files))),
        Some(files) => {
            warn(format!("RLIMIT_NOFILE {}", thousands(files)), format!("ulimit -n {ENOUGH_FILES}"))
        }
    }
}

fn kernel_ports(machine: &Machine) -> Finding {
    let fix = "sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999', or more";
    let Some((first, last)) = machine.ports else {
        return warn("ip_local_port_range cannot be read", "mount /proc");
    };
    let count = u64::from(last.saturating_sub(first)) + 1;
    let found = format!("ip_local_port_range {first} to {last}: {} ports", thousands(count));
    if count < USUAL_PORTS {
        return warn(found, fix);
    }
    if machine.is_port_reuse_off {
        let found = format!("{found}, each kept for 60 s by TIME-WAIT (tcp_tw_reuse 0)");
        return warn(found, "sudo sysctl -w net.ipv4.tcp_tw_reuse=1");
    }
    ok(found)
}

fn kernel_congestion(machine: &Machine) -> Finding {
    let name = &machine.congestion_control;
    if name == OURS {
        return ok(format!("tcp_congestion_control {name}, as this stack"));
    }
    warn(
        format!("tcp_congestion_control {name}; this stack has {OURS}"),
        format!("sudo sysctl -w net.ipv4.tcp_congestion_control={OURS} while you compare"),
    )
}

/// Usual number of connections of loads, bytes of a queue of frames, Linux' default range of ports, and
/// this stack's congestion control.
const ENOUGH_FILES: u64 = 16_384;
const ENOUGH_LOCKED: u64 = 64 << 20;
const USUAL_PORTS: u64 = 28_232;
const OURS: &str = "cubic";

/// Linux' number of the error at a limit of namespaces.
const ENOSPC: i32 = 28;

#[cfg(test)]
mod tests;
