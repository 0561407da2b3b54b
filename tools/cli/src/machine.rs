//! State of this machine, as far as it can be read without a change.

use std::fs::{self, File};
use std::io;
use std::net::Ipv6Addr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::process::{Pid, WaitOptions, waitpid};
use whimbrel_io::netlink::veth::{self, Veth};
use whimbrel_io::packet::fanout;
use whimbrel_io::process::{FrameSocket, ProcessIds, attempt_socket, fork, isolate};

use crate::need::Need;
use crate::proc::{self, first_line};
pub(crate) use finding::{Finding, Verdict};

mod finding;

/// The first of `needs` that this machine lacks, and what to do about it.
pub(crate) fn lacks(needs: &'static [Need]) -> Option<(&'static [Need], String)> {
    let machine = Machine::look();
    needs.chunks(1).find_map(|one| {
        let finding = one.first()?.judge(&machine);
        let fix = finding.fix.as_ref().map_or_else(String::new, |fix| format!(": {fix}"));
        (finding.verdict != Verdict::Ok).then(|| (one, format!("{}{fix}", finding.found)))
    })
}

/// True if a program of this name can be started.
pub(crate) fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// State of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The path of this program.
    pub(crate) program: PathBuf,
    /// Why `/dev/net/tun` cannot be opened, if it cannot.
    pub(crate) tun: Result<(), io::ErrorKind>,
    /// The effective capabilities of this process, a bit each.
    pub(crate) capabilities: u64,
    /// The most network namespaces that its user may have.
    pub(crate) namespaces: u64,
    /// Why this user may not make namespaces, if so: the system's number of the error. `None`: not tried.
    pub(crate) user_namespaces: Option<Result<(), i32>>,
    /// The first port that needs no privilege.
    pub(crate) first_free_port: u16,
    /// The kernel's ephemeral ports, the last one included.
    pub(crate) ports: Option<(u16, u16)>,
    /// True if the kernel never uses a port in TIME-WAIT again early.
    pub(crate) is_port_reuse_off: bool,
    /// The kernel's congestion control.
    pub(crate) congestion_control: String,
    /// The most open files; `None`: no limit.
    pub(crate) files: Option<u64>,
    /// The most locked memory, bytes; `None`: no limit.
    pub(crate) locked: Option<u64>,
    /// Folders for sockets that this user may write.
    pub(crate) folders: Vec<String>,
    /// The kernel's own addresses.
    pub(crate) addresses: Vec<String>,
    /// True if it forwards packets.
    pub(crate) forwards: bool,
    /// Why no packet socket can be had, if none can.
    pub(crate) packet: Result<(), io::ErrorKind>,
    /// Why no packet sockets can share frames, if none can.
    pub(crate) fanout: Result<(), io::ErrorKind>,
    /// The ends of veth pairs.
    pub(crate) veths: Vec<Veth>,
    /// Why no XDP socket can be had, if none can.
    pub(crate) xdp: Result<(), io::ErrorKind>,
    /// Programs of others that are not installed.
    pub(crate) programs: Vec<&'static str>,
}

impl Machine {
    /// The machine that this program runs on, as far as it may look.
    pub(crate) fn look() -> Self {
        let kernel = |name: &str| first_line(&format!("/proc/sys/{name}"));
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let has = |kind| attempt_socket(kind).map_err(|error| error.kind());
        let tun = File::options().read(true).write(true).open("/dev/net/tun");
        Self {
            program: std::env::current_exe().unwrap_or_else(|_| "whimbrel".into()),
            tun: tun.map(drop).map_err(|error| error.kind()),
            capabilities: capabilities(&status),
            namespaces: kernel("user/max_net_namespaces").parse().unwrap_or(0),
            user_namespaces: try_user_namespaces(),
            first_free_port: kernel("net/ipv4/ip_unprivileged_port_start").parse().unwrap_or(1024),
            ports: proc::ports(),
            is_port_reuse_off: proc::is_port_reuse_off(true),
            congestion_control: kernel("net/ipv4/tcp_congestion_control"),
            files: limit(&limits, "Max open files"),
            locked: limit(&limits, "Max locked memory"),
            folders: folders(&status),
            addresses: addresses(
                &fs::read_to_string("/proc/net/fib_trie").unwrap_or_default(),
                &fs::read_to_string("/proc/net/if_inet6").unwrap_or_default(),
            ),
            forwards: kernel("net/ipv4/ip_forward") == "1",
            packet: has(FrameSocket::Packet),
            fanout: fanout::attempt().map_err(|error| error.kind()),
            veths: veth::ends().unwrap_or_default(),
            xdp: has(FrameSocket::Xdp),
            programs: missing_programs(),
        }
    }

    /// True if the process has the capability of this number.
    pub(crate) const fn may(&self, capability: Capability) -> bool {
        self.capabilities >> capability as u64 & 1 == 1
    }
}

/// Makes namespaces in a copy of this process, if it has no other thread.
fn try_user_namespaces() -> Option<Result<(), i32>> {
    let attempt = || match isolate(ProcessIds::Own) {
        Ok(()) => 0,
        Err(error) => {
            error.raw_os_error().and_then(|errno| u8::try_from(errno).ok()).unwrap_or(u8::MAX)
        }
    };
    let pid = Pid::from_raw(fork(attempt).ok()?.cast_signed());
    let (_, status) = waitpid(pid, WaitOptions::empty()).ok()??;
    Some(match status.exit_status()? {
        0 => Ok(()),
        errno => Err(errno),
    })
}

/// capabilities(7): the numbers of those that matter here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capability {
    DacOverride = 1,
    NetBindService = 10,
    NetAdmin = 12,
    NetRaw = 13,
    IpcLock = 14,
    SysAdmin = 21,
}

fn capabilities(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
}

/// The machine's own addresses, from the kernel's table of IPv4 routes and its list of IPv6.
fn addresses(routes: &str, v6: &str) -> Vec<String> {
    let mut addresses = Vec::new();
    let mut last = "";
    for line in routes.lines().map(str::trim) {
        if let Some(addr) = line.strip_prefix("|-- ") {
            last = addr;
        } else if line == "/32 host LOCAL" && !addresses.iter().any(|known| known == last) {
            addresses.push(last.to_owned());
        }
    }
    let digits = v6.lines().filter_map(|line| line.split_whitespace().next());
    let v6 = digits.filter_map(|digits| u128::from_str_radix(digits, 16).ok());
    addresses.extend(v6.map(|bits| Ipv6Addr::from_bits(bits).to_string()));
    addresses
}

/// Folders for sockets that a process with this status may write.
fn folders(status: &str) -> Vec<String> {
    let own = std::env::var("XDG_RUNTIME_DIR").ok();
    let all = own.into_iter().chain(["/run", "/tmp"].map(str::to_owned));
    all.filter(|folder| {
        let metadata = fs::metadata(folder).ok().filter(fs::Metadata::is_dir);
        metadata.is_some_and(|it| may_write(status, it.uid(), it.gid(), it.mode()))
    })
    .collect()
}

/// True if a process with this status may write a file of this owner, group and mode
/// (path_resolution(7)).
fn may_write(status: &str, uid: u32, gid: u32, mode: u32) -> bool {
    let numbers = |name: &str| -> Vec<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let words = line.unwrap_or_default().split_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    };
    // The effective one is the second of four.
    let effective = |name| numbers(name).get(1).copied();
    let in_group = effective("Gid:") == Some(gid) || numbers("Groups:").contains(&gid);
    let bit = match () {
        () if capabilities(status) >> Capability::DacOverride as u64 & 1 == 1 => return true,
        () if effective("Uid:") == Some(uid) => 0o200,
        () if in_group => 0o020,
        () => 0o002,
    };
    mode & bit != 0
}

/// The soft limit of this name; `None` if there is no such limit.
fn limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests;

/// Programs of others that are not installed.
fn missing_programs() -> Vec<&'static str> {
    let names = PROGRAMS.iter().map(|(program, _)| *program);
    names.filter(|program| !is_installed(program)).collect()
}

/// Programs that measure cases, and their Debian packages.
pub(crate) const PROGRAMS: [(&str, &str); 3] =
    [("ip", "iproute2"), ("wrk", "wrk"), ("nginx", "nginx")];
