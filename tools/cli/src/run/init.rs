//! Process 1 of the program's process ids: it starts the program, reaps orphans, and ends when the program
//! does. Then the kernel ends all others.
//!
//! Where `/proc` cannot be mounted there are no such ids, and it is a subreaper (prctl(2)) instead.

use std::fs;
use std::io;
use std::process::{Command, id};
use std::sync::Arc;
use std::thread;

use rustix::mount::{MountFlags, mount};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, set_child_subreaper,
    set_parent_process_death_signal, wait,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};
use whimbrel_io::process::{ProcessIds, end_with_starter};
use whimbrel_io::text;

use super::channel::{Channel, Tag};
use super::plan::{InsidePlan, User};
use super::stopped::Stopped;

/// Runs the program. Returns the exit code of this process, which has no reader.
pub(super) fn run(plan: &InsidePlan, channel: &Arc<Channel>, ids: ProcessIds) -> u8 {
    match run_program(plan, channel, ids) {
        Ok(()) => 0,
        Err(Stopped { text, code }) => {
            channel.send_with(Tag::Failed(code), &text, &[]);
            code
        }
    }
}

fn run_program(plan: &InsidePlan, channel: &Arc<Channel>, ids: ProcessIds) -> Result<(), Stopped> {
    if prepare(plan, channel, ids)? == Prepared::WithoutProc {
        channel.send(Tag::NoProc);
        return Ok(());
    }
    channel.send(Tag::Ready);
    if channel.receive().is_none_or(|message| message.tag != Tag::Go) {
        // The gateway could not be opened, which it reports, or is gone.
        return Ok(());
    }
    let mut command = Command::new(&plan.program);
    command.args(&plan.arguments);
    if ids == ProcessIds::Shared {
        end_with_starter(&mut command);
    }
    let child = command.spawn().map_err(|error| {
        let name = text::path(plan.program.as_ref());
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
        Stopped { text: format!("cannot run {name}: {error}"), code }
    })?;
    let program = Pid::from_child(&child);
    let passing = Arc::clone(channel);
    // It ends with this process: there may be no further message.
    let _passes = thread::spawn(move || pass_signals(&passing, program));
    let status = reap_until(program).map_err(Stopped::at("wait for the program"))?;
    channel.send(Tag::Ended(status.as_raw()));
    if ids == ProcessIds::Shared {
        end_descendants();
    }
    Ok(())
}

/// Result of the preparation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Prepared {
    Whole,
    /// `/proc` of these process ids cannot be mounted.
    WithoutProc,
}

/// Does what needs capabilities, and drops them.
fn prepare(plan: &InsidePlan, channel: &Channel, ids: ProcessIds) -> Result<Prepared, Stopped> {
    let ended_with = |error: rustix::io::Errno| Stopped::at("be ended with run")(error.into());
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(ended_with)?;
    match ids {
        ProcessIds::Own => {
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            if mount("proc", "/proc", "proc", flags, None).is_err() {
                return Ok(Prepared::WithoutProc);
            }
        }
        ProcessIds::Shared => {
            set_child_subreaper(Pid::from_raw(id().cast_signed())).map_err(ended_with)?;
        }
    }
    set(channel, "net/ipv4/ip_unprivileged_port_start", "0");
    let gid = rustix::process::getgid().as_raw();
    set(channel, "net/ipv4/ping_group_range", &format!("{gid} {gid}"));
    if let Some(name) = &plan.congestion {
        set_congestion(name)?;
    }
    drop_capabilities(plan.user).map_err(|error| Stopped::at("drop capabilities")(error.into()))?;
    Ok(Prepared::Whole)
}

/// Sets what the program's kernel does without.
fn set(channel: &Channel, name: &str, value: &str) {
    if let Err(error) = fs::write(format!("/proc/sys/{name}"), value) {
        let text = format!("cannot set {} for the program: {error}", name.replace('/', "."));
        channel.send_with(Tag::Warning, &text, &[]);
    }
}

fn set_congestion(name: &str) -> Result<(), Stopped> {
    fs::write("/proc/sys/net/ipv4/tcp_congestion_control", name).map_err(|error| {
        let path = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
        let allowed = fs::read_to_string(path).unwrap_or_default();
        let text = format!(
            "--inside-cc {name:?}: {error}; the machine allows users {} \
             (net.ipv4.tcp_allowed_congestion_control)",
            allowed.trim()
        );
        Stopped { text, code: 2 }
    })
}

/// The program, and what it starts, get none again, unless it is to be root.
fn drop_capabilities(user: User) -> rustix::io::Result<()> {
    clear_ambient_capability_set()?;
    if user == User::Root {
        return Ok(());
    }
    // Not by an empty bounding set: the kernel then refuses to start programs whose file has capabilities, as
    // ping's often has.
    set_no_new_privs(true)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

/// Sends the program the signals that `run` passes on.
fn pass_signals(channel: &Channel, program: Pid) {
    while let Some(message) = channel.receive() {
        if let Tag::Signal(number) = message.tag
            && let Some(signal) = Signal::from_named_raw(number)
        {
            // It fails if the program has ended, which is about to be reported.
            let _ = kill_process(program, signal);
        }
    }
}

/// Reaps whatever ends, until the program does.
fn reap_until(program: Pid) -> io::Result<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == program => return Ok(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Ends what the program left, as far as it can be found: children of this process, to which orphans come.
fn end_descendants() {
    let path = format!("/proc/self/task/{}/children", id());
    for _ in 0..ROUNDS {
        let children = fs::read_to_string(&path).unwrap_or_default();
        let pids = children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        let ended = pids.filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count();
        if ended == 0 {
            return;
        }
        for _ in 0..ended {
            let _ = wait(WaitOptions::empty());
        }
    }
}

/// Generations of descendants that are ended: each may leave its children as orphans.
const ROUNDS: usize = 1000;
/// Exit codes of shells for programs that are not there, or cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
