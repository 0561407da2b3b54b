//! The stacks that are compared, and how each is called.

pub(crate) mod frames;
mod host;
mod linux;
mod smoltcp;
mod whimbrel;

pub(crate) use smoltcp::SmoltcpEcho;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::case::{Answer, Case, Kind, Limits};
use crate::churn::Options;
use crate::datagrams;

/// A stack.
pub(crate) struct Peer {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Heading of its column.
    pub(crate) title: &'static str,
    /// Difference of its work from the others'.
    pub(crate) note: &'static str,
    built: Built,
}

/// Source of a peer's program.
enum Built {
    /// This one.
    Here,
    /// This one, in a network namespace of its own.
    InNamespace,
    /// A folder of `peers/` with a script that fetches and builds it.
    Elsewhere,
}

/// A peer that can be called.
pub(crate) struct Ready {
    /// The peer as the table of all has it.
    pub(crate) peer: &'static Peer,
    /// Of the stack.
    pub(crate) version: String,
    program: PathBuf,
}

impl Peer {
    /// Fetches and builds what it needs; the error says why it must be skipped.
    pub(crate) fn prepare(&'static self) -> Result<Ready, Failure> {
        let (program, version) = match self.built {
            Built::Here | Built::InNamespace => {
                (std::env::current_exe()?, version_here(self.name)?)
            }
            Built::Elsewhere => self.build()?,
        };
        Ok(Ready { peer: self, version, program })
    }

    fn build(&self) -> Result<(PathBuf, String), Failure> {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        let target = bench.join("target/peers").join(self.name);
        let script = bench.join("peers").join(self.name).join("build.sh");
        let output = Command::new("sh").arg(script).arg(&target).output()?;
        if output.status.success() {
            return Ok((target.join("bench"), last_line(&output.stdout)));
        }
        Err(last_line(&output.stderr).into())
    }
}

impl Ready {
    /// Why it cannot do a case, if that is known beforehand.
    pub(crate) fn unable(&self, case: Case) -> Option<String> {
        let other = matches!(self.peer.built, Built::Elsewhere) && case.kind == Kind::Few;
        other.then(|| SIXTY_FOUR.to_owned())
    }

    /// The call that does a case.
    pub(crate) fn command(&self, case: Case, limits: &Limits) -> Command {
        let mut command = Command::new(&self.program);
        match self.peer.built {
            Built::Here => command.args(["peer", self.peer.name]),
            Built::InNamespace => {
                command = Command::new("unshare");
                command.arg("--net").arg(&self.program).args(["peer", self.peer.name])
            }
            Built::Elsewhere => &mut command,
        };
        command.args(case.arguments(limits));
        command
    }
}

/// Last line of a program's output.
pub(crate) fn last_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.trim_end().lines().last().unwrap_or("it said nothing").to_owned()
}

/// The version of a stack that is linked into this program, or runs under it.
fn version_here(name: &str) -> Result<String, Failure> {
    if name == "linux" {
        return linux::ready();
    }
    let lock = include_str!("../Cargo.lock");
    let package = if name == "smoltcp" { "smoltcp" } else { "whimbrel-stack" };
    let entry = lock.split("[[package]]").find(|it| it.contains(&format!("name = \"{package}\"")));
    let version = entry.and_then(|it| it.split("version = \"").nth(1)?.split('"').next());
    Ok(version.ok_or("Cargo.lock does not name it")?.to_owned())
}

/// Does a case as one of the peers that live in this program.
pub(crate) fn answer(name: &str, case: Case, limits: &Limits) -> Result<Answer, Failure> {
    if case.kind == Kind::Datagrams {
        return datagrams::answer(name, case, limits);
    }
    let answer = match name {
        "whimbrel" => whimbrel::Whimbrel::new(case, Options::Default)
            .and_then(|mut hosts| host::answer(&mut hosts, case, limits)),
        "whimbrel-plain" => whimbrel::Whimbrel::new(case, Options::Off)
            .and_then(|mut hosts| host::answer(&mut hosts, case, limits)),
        "smoltcp" => {
            smoltcp::Smoltcp::new(case).and_then(|mut hosts| host::answer(&mut hosts, case, limits))
        }
        "linux" => {
            linux::Linux::new(case).and_then(|mut hosts| host::answer(&mut hosts, case, limits))
        }
        _ => Err(format!("{name}: no peer of this program").into()),
    };
    answer.or_else(|failure| match failure.downcast::<Unable>() {
        Ok(unable) => Ok(Answer::Skipped(unable.0.into_owned())),
        Err(other) => Err(other),
    })
}

/// Why a peer cannot do few at a time.
const SIXTY_FOUR: &str = "its program has 64 connections at a time";

/// A peer cannot do a case, for this reason.
#[derive(Debug)]
struct Unable(Cow<'static, str>);

impl From<&'static str> for Unable {
    fn from(reason: &'static str) -> Self {
        Self(reason.into())
    }
}

impl std::fmt::Display for Unable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unable {}

/// All of them; the first is what the others are compared with.
pub(crate) const PEERS: [Peer; 6] = [
    Peer {
        name: "whimbrel",
        title: "Whimbrel",
        note: "its defaults: timestamps, SACK, window scaling, keyed ISNs; two shards",
        built: Built::Here,
    },
    Peer {
        name: "whimbrel-plain",
        title: "Whimbrel, plain",
        note: "without timestamps and SACK",
        built: Built::Here,
    },
    Peer {
        name: "smoltcp",
        title: "smoltcp",
        note: "no timestamps, no SACK blocks, random ISNs without a key or clock; no choice of \
               ports; no SYN entries: a listening socket for each; buffers of 256 bytes, which its \
               memory includes; with none in TIME-WAIT its server aborts the sockets that come there",
        built: Built::Here,
    },
    Peer {
        name: "lwip",
        title: "lwIP",
        note: "`NO_SYS=1`, raw API, memory from malloc; no timestamps, no SACK, no window scaling, \
               ISNs that are counted; one stack is both hosts, so each list holds both ends; no \
               bursts: it takes a packet at a time; with none in TIME-WAIT those that come there are \
               aborted",
        built: Built::Elsewhere,
    },
    Peer {
        name: "gvisor",
        title: "gVisor",
        note: "two stacks in one process on one processor, time is real; timestamps and SACK on, \
               ISNs keyed; memory after collecting garbage",
        built: Built::Elsewhere,
    },
    Peer {
        name: "linux",
        title: "Linux",
        note: "veth between two network namespaces, one process, epoll; time is real; timestamps, \
               SACK, ISNs keyed; system calls included; CPU time of the process, to which the kernel \
               counts softirq in its context, and of ksoftirqd; memory is the growth of the kernel's, \
               files and sockets included; with none in TIME-WAIT `tcp_max_tw_buckets` is 0; idle connections and ports as many as \
               `RLIMIT_NOFILE` allows",
        built: Built::InNamespace,
    },
];
