//! The two network namespaces, and what the kernel tells of them.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::Failure;
use crate::case::{CHOICE, Case, Kind, PORTS};
use crate::peers::last_line;

/// The client's namespace, which is this process', and the server's.
pub(super) struct Namespaces {
    client: File,
    server: File,
    /// Holds the server's.
    holder: Child,
    /// The kernel's threads for softirqs that no process' context takes.
    softirq_threads: Vec<u32>,
    /// That this process may have.
    pub(super) most_sockets: u32,
}

impl Namespaces {
    /// Makes and connects them, for this case.
    pub(super) fn new(case: Case) -> Result<Self, Failure> {
        let most_sockets = most_sockets()?;
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        // Its namespace is there as soon as it says something.
        let said = holder.stdout.as_mut().ok_or("the holder has no output")?;
        std::io::Read::read_exact(said, &mut [0])?;
        let pid = holder.id();
        // Each port that is taken wants a socket.
        let (first, last) = match case.kind {
            Kind::Ports => {
                let last = u32::from(*CHOICE.start()) + most_sockets - 1;
                (*CHOICE.start(), last.min((*CHOICE.end()).into()))
            }
            _ => (*PORTS.start(), (*PORTS.end()).into()),
        };
        let most_waiting = if case.kind == Kind::Churn && case.scale == 0 { 0 } else { 1 << 30 };
        let common = "ip link set lo up; cd /proc/sys/net/ipv4; echo reno >tcp_congestion_control";
        shell(&format!(
            "{common}; echo {first} {last} >ip_local_port_range; echo 60 >tcp_syn_retries; \
             ip link add veth0 type veth peer name veth1 address {MAC} netns {pid}; \
             ip address add 10.1.0.2/24 dev veth0; ip link set veth0 up; \
             ip route add 10.0.0.0/16 via 10.1.0.1; \
             nsenter --net --target {pid} sh -euc '{common}; \
             echo {most_waiting} >tcp_max_tw_buckets; echo 65535 >../core/somaxconn; \
             echo 65535 >tcp_max_syn_backlog; ip address add 10.1.0.1/24 dev veth1; \
             ip link set veth1 up; ip route add local 10.0.0.0/16 dev lo'; \
             ip neighbour add {SILENT} lladdr {MAC} dev veth0",
        ))?;
        Ok(Self {
            client: File::open("/proc/self/ns/net")?,
            server: File::open(format!("/proc/{pid}/ns/net"))?,
            holder,
            softirq_threads: softirq_threads()?,
            most_sockets,
        })
    }

    /// Does something in the server's namespace.
    pub(super) fn at_server<T>(
        &self,
        act: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let network = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(self.server.as_fd(), network)?;
        let done = act();
        move_into_link_name_space(self.client.as_fd(), network)?;
        done
    }

    /// Records in TIME-WAIT at the server.
    pub(super) fn waiting(&self) -> Result<u64, Failure> {
        let text = std::fs::read_to_string(format!("/proc/{}/net/sockstat", self.holder.id()))?;
        let words: Vec<_> = text.split_whitespace().collect();
        let count = words.windows(2).find(|pair| pair[0] == "tw").map(|pair| pair[1].parse());
        Ok(count.ok_or("sockstat names no tw")??)
    }

    /// CPU time of ksoftirqd so far.
    pub(super) fn softirq_time(&self) -> Result<Duration, Failure> {
        let mut spent = Duration::ZERO;
        for pid in &self.softirq_threads {
            let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
            let nanos = text.split(' ').next().ok_or("an empty schedstat")?;
            spent += Duration::from_nanos(nanos.parse()?);
        }
        Ok(spent)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        // It ends with its input; if it could not be waited for, nothing is lost.
        let _ = self.holder.wait();
    }
}

/// The kernel's version; the error says why there can be no namespaces.
pub(in crate::peers) fn ready() -> Result<String, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Err("network namespaces want root".into());
    }
    let config = shell("zcat /proc/config.gz || cat /boot/config-$(uname -r)").unwrap_or_default();
    if config.contains("CONFIG_IRQ_TIME_ACCOUNTING=y") {
        return Err("this kernel does not count softirq to the process that causes it".into());
    }
    shell("unshare --net ip link add veth0 type veth peer name veth1; command -v nsenter")?;
    Ok(std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim_end().to_owned())
}

/// Bytes of the kernel's objects, all of the machine.
pub(super) fn kernel_memory() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find(|line| line.starts_with("Slab:")).ok_or("no Slab in meminfo")?;
    let kibibytes = line.split_whitespace().nth(1).ok_or("Slab has no value")?;
    Ok(kibibytes.parse::<u64>()? << 10)
}

/// As many sockets as this process may have, a few for other files taken off.
fn most_sockets() -> Result<u32, Failure> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Linux's maximum for a process that may raise its limit.
    let most = Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) };
    if setrlimit(Resource::Nofile, most).is_err() {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    Ok(u32::try_from(limit)?.saturating_sub(64))
}

fn softirq_threads() -> Result<Vec<u32>, Failure> {
    let mut threads = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let path = entry?.path();
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        let pid = path.file_name().and_then(|pid| pid.to_str()?.parse::<u32>().ok());
        threads.extend(pid.filter(|_| name.starts_with("ksoftirqd/")));
    }
    Ok(threads)
}

fn shell(script: &str) -> Result<String, Failure> {
    let output = Command::new("sh").args(["-euc", script]).output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(last_line(&output.stderr).into())
}

/// The server's first address; 10.0.0.0/16 is all its own.
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// A host that never answers.
pub(super) const SILENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 3);
/// The server's station.
const MAC: &str = "02:00:00:00:00:01";
