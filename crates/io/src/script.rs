//! Packet scripts against this machine's kernel.
//!
//! Each [`KernelHost`] is a network namespace with a TUN device, and goes with it: nothing of the
//! machine's own network is touched, and any number of them work side by side. Scripts take as
//! long as they say, because a kernel's clock cannot be turned.
//!
//! A call runs on a thread of its own, so that it may block. Packets are stamped by a thread that
//! does nothing else; what a script sees of time is late by that thread's wake-up, 0.05 to 0.2 ms
//! on an idle machine.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use whimbrel_posix::{Errno, TcpInfo};
use whimbrel_sim::script::call::{Call, Returned};
use whimbrel_sim::script::host::{
    Administration, CallId, Network, Progress, ScriptHost, SetError, SocketFilter,
};

use crate::Stop;
use crate::sys::namespace::Namespace;

mod administration;
mod calls;
mod descriptors;
mod error;
mod options;
mod perform;
mod settings;
mod wire;

use calls::{CallThread, Event};
use descriptors::Descriptors;
pub use error::KernelHostError;
use wire::Wire;

/// This machine's kernel, as a host under test.
#[derive(Debug)]
pub struct KernelHost {
    machine: Arc<Machine>,
    wire: Wire,
    reader: Option<JoinHandle<()>>,
    sender: Sender<Event>,
    events: Receiver<Event>,
    packets: VecDeque<(Instant, Vec<u8>)>,
    ended: BTreeMap<CallId, (Instant, Returned)>,
    /// A packet left, or a blocked call ended, since time last passed.
    news: bool,
    /// When something happened first: the script's zero. Set-up takes no time.
    origin: Option<Instant>,
    calls: u32,
}

/// What the threads of one host share.
#[derive(Debug)]
struct Machine {
    namespace: Namespace,
    descriptors: Descriptors,
    stop: Stop,
}

impl KernelHost {
    /// A fresh namespace with the addresses and routes of `network`, and the settings that Linux
    /// comes with. Needs root and `/dev/net/tun`.
    pub fn new(network: &Network) -> Result<Self, KernelHostError> {
        let refused = |doing| move |error| KernelHostError::system(doing, error);
        let stop = Stop::new().map_err(refused("make a pipe"))?;
        let (namespace, wire) = apart(|| {
            let namespace = Namespace::unshare().map_err(refused("make a network namespace"))?;
            settings::set_defaults();
            Ok::<_, KernelHostError>((namespace, Wire::open(network)?))
        })
        .map_err(refused("start a thread"))??;
        let machine = Arc::new(Machine { namespace, descriptors: Descriptors::default(), stop });
        let (sender, events) = mpsc::channel();
        let reader = read(&wire, &machine, sender.clone()).map_err(refused("start a thread"))?;
        Ok(Self {
            machine,
            wire,
            reader: Some(reader),
            sender,
            events,
            packets: VecDeque::new(),
            ended: BTreeMap::new(),
            news: false,
            origin: None,
            calls: 0,
        })
    }

    fn start_clock(&mut self) -> Instant {
        *self.origin.get_or_insert_with(Instant::now)
    }

    fn on_script_clock(&self, at: Instant) -> Duration {
        self.origin.map_or(Duration::ZERO, |origin| at.duration_since(origin))
    }

    /// Waits for one event until `deadline`, then takes all that are there. Whether there was one.
    fn take_events(&mut self, deadline: Instant) -> bool {
        let patience = deadline.duration_since(Instant::now());
        let mut next = self.events.recv_timeout(patience).ok();
        let any = next.is_some();
        self.news |= any;
        while let Some(event) = next {
            match event {
                Event::Packet(at, packet) => self.packets.push_back((at, packet)),
                Event::Ended(call, at, returned) => {
                    self.ended.insert(call, (at, returned));
                }
            }
            next = self.events.try_recv().ok();
        }
        any
    }

    /// What came of a call, if it ended or ends soon.
    fn outcome(&mut self, number: CallId, thread: &CallThread) -> Option<Returned> {
        let begun = Instant::now();
        loop {
            let asleep = thread.is_asleep();
            while self.take_events(Instant::now() + SOON) {
                if let Some((_, returned)) = self.ended.remove(&number) {
                    self.news = !self.packets.is_empty() || !self.ended.is_empty();
                    return Some(returned);
                }
            }
            // Asleep before and nothing since.
            if asleep && thread.is_asleep() || begun.elapsed() > STUCK {
                return None;
            }
        }
    }
}

impl ScriptHost for KernelHost {
    fn now(&self) -> Duration {
        self.on_script_clock(Instant::now())
    }

    fn run_until(&mut self, until: Duration) {
        let deadline = self.start_clock() + until;
        // What came while a call was made is news, too.
        if !self.news {
            self.take_events(deadline);
        }
        self.news = false;
    }

    fn poll_packet(&mut self) -> Option<(Duration, Vec<u8>)> {
        self.take_events(Instant::now());
        let (at, packet) = self.packets.pop_front()?;
        Some((self.on_script_clock(at), packet))
    }

    fn inject(&mut self, packet: &[u8]) {
        self.start_clock();
        // What the kernel refuses is lost, as on any wire.
        let _ = self.wire.send(packet);
    }

    fn call(&mut self, call: Call) -> Progress {
        self.start_clock();
        let number = CallId(self.calls);
        self.calls = self.calls.wrapping_add(1);
        match CallThread::begin(&self.machine, (number, call), self.sender.clone()) {
            Ok(thread) => {
                self.outcome(number, &thread).map_or(Progress::Blocked(number), Progress::Done)
            }
            Err(error) => Progress::Done(perform::failed(&error)),
        }
    }

    fn poll_call(&mut self, call: CallId) -> Option<(Duration, Returned)> {
        self.take_events(Instant::now());
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
            Administration::PurgeCaches if self.origin.is_none() => Ok(()), // nothing was learned
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
    /// Does `work` on a thread within the namespace.
    fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, SetError> + Send,
    ) -> Result<T, SetError> {
        let refused = |error: io::Error| SetError::Refused(error.to_string());
        let namespace = &self.machine.namespace;
        apart(|| {
            namespace.enter().map_err(refused)?;
            work()
        })
        .map_err(refused)?
    }
}

impl Drop for KernelHost {
    fn drop(&mut self) {
        self.machine.stop.set();
        self.machine.descriptors.abandon();
        // A connection that was closed and not finished would keep the namespace for minutes.
        let _ = self.inside(|| administration::end(&SocketFilter::default()));
        if let Some(reader) = self.reader.take() {
            // It does not panic, and there would be nothing to do about it.
            let _ = reader.join();
        }
    }
}

/// Reads packets on a thread until the host is dropped.
fn read(wire: &Wire, machine: &Arc<Machine>, sender: Sender<Event>) -> io::Result<JoinHandle<()>> {
    let (wire, stop) = (wire.clone(), machine.stop.clone());
    thread::Builder::new().name("script wire".into()).spawn(move || {
        // An error is the end of the device, after which nothing comes.
        let _ = wire.read(&stop, |at, packet| {
            let _ = sender.send(Event::Packet(at, packet.to_vec()));
        });
    })
}

/// Does `work` on a thread of its own, whose namespace may be changed.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().map_err(|_panic| io::Error::other("a thread of the kernel's host panicked"))
    })
}

/// A call that does not block has returned by then, or is late because the processor is busy.
const SOON: Duration = Duration::from_micros(300);
/// A call that neither ends nor sleeps so long counts as one that blocks.
const STUCK: Duration = Duration::from_millis(500);
