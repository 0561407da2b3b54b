//! Packet scripts against this machine's kernel.
//!
//! Each [`KernelHost`] is a network namespace with a TUN device, and ends with it: nothing of the
//! machine's own network changes, and any number of hosts run at the same time. Scripts take as
//! long as they state, because a kernel's clock cannot be changed.
//!
//! The thread that runs the script makes its calls, sends its packets and timestamps those that
//! arrive, so that nothing waits for another thread to be scheduled. Only a call that blocks gets
//! its own thread.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::process::{Namespace, run_in_real_time};
use whimbrel_io::{Stop, Tun};
use whimbrel_posix::{Errno, TcpInfo};
use whimbrel_script::call::{Call, Returned};
use whimbrel_script::host::{
    Administration, CallId, Network, Progress, ScriptHost, SetError, SocketFilter,
};

mod administration;
mod attempt;
mod calls;
mod descriptors;
mod error;
mod options;
mod perform;
mod settings;
mod wire;

use attempt::{Attempt, BlockedCall};
use calls::{CallThread, Ended};
use descriptors::Descriptors;
pub use error::KernelHostError;

/// This machine's kernel, as a host under test.
#[derive(Debug)]
pub struct KernelHost {
    machine: Arc<Machine>,
    tun: Tun,
    sender: Sender<Ended>,
    ends: Receiver<Ended>,
    packets: VecDeque<(Instant, Vec<u8>)>,
    under_way: BTreeMap<CallId, CallThread>,
    ended: BTreeMap<CallId, (Instant, Returned)>,
    /// True if a packet left, or a blocked call ended, since time last passed.
    news: bool,
    /// Time of the first event, which is the script's zero. Set-up takes no time.
    origin: Option<Instant>,
    calls: u32,
}

/// State that the threads of one host share.
#[derive(Debug)]
struct Machine {
    namespace: Namespace,
    descriptors: Descriptors,
    /// An eventfd that becomes readable when a call has ended.
    alarm: File,
    /// Ends threads that poll when their results are no longer needed.
    stop: Stop,
}

impl KernelHost {
    /// Creates a namespace with the addresses and routes of `network`, and the settings that
    /// scripts rely on. Needs root and `/dev/net/tun`.
    pub fn new(network: &Network) -> Result<Self, KernelHostError> {
        let refused = |doing| move |error| KernelHostError::system(doing, error);
        let namespace = Namespace::fresh().map_err(refused("make a network namespace"))?;
        let set_up = || {
            settings::set_defaults();
            wire::open(network)
        };
        let tun = namespace.within(set_up).map_err(refused("enter a network namespace"))??;
        let machine = Machine {
            namespace,
            descriptors: Descriptors::default(),
            alarm: alarm().map_err(refused("make an event"))?,
            stop: Stop::new().map_err(refused("make a pipe"))?,
        };
        let (sender, ends) = mpsc::channel();
        Ok(Self {
            machine: Arc::new(machine),
            tun,
            sender,
            ends,
            packets: VecDeque::new(),
            under_way: BTreeMap::new(),
            ended: BTreeMap::new(),
            news: false,
            origin: None,
            calls: 0,
        })
    }

    /// Gives the calling thread real-time priority, so that a script is not late on a busy machine.
    /// Returns whether the system allows it.
    pub fn take_precedence() -> bool {
        run_in_real_time().is_ok()
    }

    fn start_clock(&mut self) -> Instant {
        *self.origin.get_or_insert_with(Instant::now)
    }

    fn on_script_clock(&self, at: Instant) -> Duration {
        self.origin.map_or(Duration::ZERO, |origin| at.duration_since(origin))
    }

    /// Takes waiting packets and the results of finished calls.
    fn collect(&mut self) {
        let (before, packets, tun) = (self.packets.len(), &mut self.packets, &mut self.tun);
        let now = Instant::now();
        let mut stamp = |packet: &[u8]| packets.push_back((now, packet.to_vec()));
        // An error is the end of the device, after which no packet arrives.
        while wire::receive(tun, &mut stamp).unwrap_or(false) {}
        self.news |= self.packets.len() > before;
        // This fails if no call has ended since.
        let _ = (&self.machine.alarm).read(&mut [0; 8]);
        while let Ok((call, at, returned)) = self.ends.try_recv() {
            self.under_way.remove(&call);
            self.ended.insert(call, (at, returned));
            self.news = true;
        }
    }

    /// Lets time pass until `deadline` at most, or until an event.
    fn sleep(&self, deadline: Instant) {
        let patience = deadline.saturating_duration_since(Instant::now());
        let interest = Interest::Read;
        let mut fds =
            [PollFd::new(&self.tun, interest), PollFd::new(&self.machine.alarm, interest)];
        // An error, which is not expected, ends the wait early.
        let _ = ppoll(&mut fds, Some(patience));
    }

    /// Moves a call to its own thread, and waits until it ends or sleeps.
    fn move_to_thread(&mut self, rest: BlockedCall) -> Progress {
        let number = CallId(self.calls);
        self.calls = self.calls.wrapping_add(1);
        let thread = match CallThread::begin(&self.machine, number, rest, self.sender.clone()) {
            Ok(thread) => thread,
            Err(error) => return Progress::Done(perform::failed(&error)),
        };
        self.under_way.insert(number, thread);
        self.wait_until_asleep();
        match self.ended.remove(&number) {
            Some((_, returned)) => Progress::Done(returned),
            None => Progress::Blocked(number),
        }
    }

    /// Takes waiting events until every call under way has ended or sleeps: then all their work is
    /// done, as in a host without threads.
    fn wait_until_asleep(&mut self) {
        let begun = Instant::now();
        self.collect();
        let mut asleep = self.all_sleep();
        while !(self.under_way.is_empty() || begun.elapsed() > STUCK) {
            self.sleep(Instant::now() + SOON);
            self.collect();
            // Asleep before and asleep now, and none has ended between.
            let before = std::mem::replace(&mut asleep, self.all_sleep());
            if before && asleep {
                return;
            }
        }
    }

    fn all_sleep(&self) -> bool {
        self.under_way.values().all(CallThread::is_asleep)
    }
}

impl ScriptHost for KernelHost {
    fn now(&self) -> Duration {
        self.on_script_clock(Instant::now())
    }

    fn run_until(&mut self, until: Duration) {
        let deadline = self.start_clock() + until;
        loop {
            self.collect();
            if std::mem::take(&mut self.news) || Instant::now() >= deadline {
                return;
            }
            self.sleep(deadline);
        }
    }

    fn poll_packet(&mut self) -> Option<(Duration, Vec<u8>)> {
        let (at, packet) = self.packets.pop_front()?;
        Some((self.on_script_clock(at), packet))
    }

    fn inject(&mut self, packet: &[u8]) {
        self.start_clock();
        // A packet that the kernel refuses is lost, as on any wire.
        let _ = wire::send(&mut self.tun, packet);
        self.wait_until_asleep();
    }

    fn call(&mut self, call: Call) -> Progress {
        self.start_clock();
        match attempt::attempt(call, &self.machine) {
            Attempt::Blocks(rest) => self.move_to_thread(rest),
            Attempt::Done(returned) => {
                self.wait_until_asleep();
                Progress::Done(returned)
            }
        }
    }

    fn poll_call(&mut self, call: CallId) -> Option<(Duration, Returned)> {
        let (at, returned) = self.ended.remove(&call)?;
        Some((self.on_script_clock(at), returned))
    }

    fn tcp_info(&mut self, fd: i32) -> Result<TcpInfo, Errno> {
        let descriptor = self.machine.descriptors.find(fd);
        let info = descriptor.and_then(|descriptor| options::tcp_info(&descriptor));
        info.map_err(|error| perform::errno(&error))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SetError> {
        self.inside(|| settings::set(name, value))
    }

    fn administer(&mut self, what: &Administration) -> Result<(), SetError> {
        match what {
            Administration::Drop(which) => self.inside(|| administration::end(which)),
            Administration::PurgeCaches | Administration::PurgeHostCache
                if self.origin.is_none() =>
            {
                Ok(()) // nothing was learned
            }
            Administration::PurgeHostCache => Err(SetError::Elsewhere("FreeBSD")),
            Administration::PurgeCaches => Err(SetError::Refused(
                "a kernel's caches are emptied by a new namespace only".into(),
            )),
        }
    }

    fn count_sockets(&mut self, which: &SocketFilter) -> Result<usize, SetError> {
        self.inside(|| administration::count(which))
    }
}

impl KernelHost {
    /// Runs `work` within the namespace.
    fn inside<T>(&self, work: impl FnOnce() -> Result<T, SetError>) -> Result<T, SetError> {
        let refused = |error| SetError::Refused(format!("cannot enter the namespace: {error}"));
        self.machine.namespace.within(work).map_err(refused)?
    }
}

impl Drop for KernelHost {
    fn drop(&mut self) {
        self.machine.stop.set();
        self.machine.descriptors.abandon();
        // A connection that was closed and not finished would keep the namespace for minutes.
        let _ = self.inside(administration::end_all);
    }
}

fn alarm() -> io::Result<File> {
    Ok(File::from(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
}

/// Wait for a call that may be about to end.
const SOON: Duration = Duration::from_micros(300);
/// Time after which a call that neither ends nor sleeps counts as blocking.
const STUCK: Duration = Duration::from_millis(500);
