use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};

use whimbrel_stack::{Capabilities, InterfaceAddress, Medium, RxFrame, ShardConfig};
use whimbrel_tcp::Tunables;
use whimbrel_wire::Address;

use super::*;
use crate::DeviceCounters;

/// A device without frames, until its other end is closed.
#[derive(Debug)]
struct Quiet {
    socket: UnixStream,
    counters: DeviceCounters,
    /// Sender of a command between a read and its burst, and the order of what was done.
    late: Option<(mpsc::Sender<Command>, Order)>,
}

type Order = Arc<Mutex<Vec<&'static str>>>;

impl Device for Quiet {
    fn name(&self) -> String {
        "quiet".into()
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        match self.socket.read(&mut [0; 8]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                if let Some((commands, order)) = &self.late {
                    let of_command = Arc::clone(order);
                    let command = move || of_command.lock().unwrap().push("command");
                    commands.send(Box::new(command)).unwrap();
                    deliver(&[]);
                    order.lock().unwrap().push("burst");
                }
                Ok(1)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        batch.consume(batch.pending().len());
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }
}

impl AsFd for Quiet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A port that runs commands, and counts its calls.
struct Commands {
    queue: Receiver<Command>,
    drained: Arc<AtomicUsize>,
    deadline: Option<Instant>,
}

impl Port for Commands {
    fn drain(&mut self, now: Instant, _shard: &mut Shard) -> Activity {
        self.drained.fetch_add(1, Ordering::Relaxed);
        self.deadline = self.deadline.filter(|deadline| *deadline > now);
        let mut activity = Activity::Idle;
        for command in self.queue.try_iter().take(16) {
            command();
            activity = Activity::Busy;
        }
        activity
    }

    fn flush(&mut self, _now: Instant, _shard: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

type Command = Box<dyn FnOnce() + Send>;

/// A running worker, and the test's handles.
struct Running {
    thread: JoinHandle<Ended<Quiet, Commands>>,
    other_end: UnixStream,
    commands: mpsc::Sender<Command>,
    waker: Waker,
    stop: Stop,
    drained: Arc<AtomicUsize>,
}

fn run(deadline: Option<Instant>) -> Running {
    let (socket, other_end) = UnixStream::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    let (commands, queue) = mpsc::channel();
    let drained = Arc::new(AtomicUsize::new(0));
    let (waker, stop) = (Waker::new().unwrap(), Stop::new().unwrap());
    let device = Quiet { socket, counters: DeviceCounters::default(), late: None };
    let port = Commands { queue, drained: Arc::clone(&drained), deadline };
    let worker = Worker::new(device, shard(), port, Clock::start(), waker.clone());
    let thread = worker.spawn("test-shard", stop.clone()).unwrap();
    Running { thread, other_end, commands, waker, stop, drained }
}

fn shard() -> Shard {
    Shard::new(ShardConfig {
        tunables: Tunables::default(),
        secrets: crate::entropy::secrets().unwrap(),
        capabilities: CAPABILITIES,
        addresses: vec![InterfaceAddress {
            addr: Address::from_v4_bytes([10, 9, 0, 2]),
            prefix_len: 24,
        }],
        routes: Vec::new(),
    })
    .unwrap()
}

const CAPABILITIES: Capabilities = Capabilities::plain(Medium::Ip, 1_500).with_segmentation(65_535);

#[test]
fn an_idle_worker_sleeps_until_it_is_stopped() {
    let running = run(None);
    thread::sleep(Duration::from_millis(200));
    let turns = running.drained.load(Ordering::Relaxed);
    assert!((1..10).contains(&turns), "{turns} turns with nothing to do");
    running.stop.set();
    let (worker, result) = running.thread.join().unwrap();
    result.unwrap();
    assert_eq!(worker.shard().census(), whimbrel_stack::shard::Census::default());
}

/// A port that waits for a socket, and counts what it read there.
struct Listening {
    socket: UnixStream,
    read: Arc<AtomicUsize>,
}

impl Port for Listening {
    fn flush(&mut self, _now: Instant, _shard: &mut Shard) -> Activity {
        let count = self.socket.read(&mut [0; 8]).unwrap_or(0);
        self.read.fetch_add(count, Ordering::Relaxed);
        Activity::busy_if(count > 0)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

#[test]
fn descriptor_of_port_wakes_sleeping_worker() {
    let [(device, _device_end), (socket, mut other_end)] =
        [(); 2].map(|()| UnixStream::pair().unwrap());
    device.set_nonblocking(true).unwrap();
    socket.set_nonblocking(true).unwrap();
    let read = Arc::new(AtomicUsize::new(0));
    let device = Quiet { socket: device, counters: DeviceCounters::default(), late: None };
    let port = Listening { socket, read: Arc::clone(&read) };
    let (waker, stop) = (Waker::new().unwrap(), Stop::new().unwrap());
    let worker = Worker::new(device, shard(), port, Clock::start(), waker);
    let thread = worker.spawn("test-shard", stop.clone()).unwrap();
    for number in 1..=100 {
        other_end.write_all(b"x").unwrap();
        // No one else wakes the worker.
        while read.load(Ordering::Relaxed) < number {
            assert!(!thread.is_finished());
            thread::yield_now();
        }
    }
    stop.set();
    thread.join().unwrap().1.unwrap();
}

#[test]
fn every_command_wakes_a_sleeping_worker() {
    let running = run(None);
    for _ in 0..1_000 {
        let (answer, answered) = mpsc::channel();
        running.commands.send(Box::new(move || answer.send(()).unwrap())).unwrap();
        running.waker.wake();
        answered.recv_timeout(Duration::from_secs(5)).unwrap();
    }
    running.stop.set();
    running.thread.join().unwrap().1.unwrap();
}

#[test]
fn commands_from_before_a_burst_are_run_before_it() {
    let (socket, mut other_end) = UnixStream::pair().unwrap();
    other_end.write_all(b"frame").unwrap();
    let ((commands, queue), order) = (mpsc::channel(), Order::default());
    let late = Some((commands, Arc::clone(&order)));
    let device = Quiet { socket, counters: DeviceCounters::default(), late };
    let port = Commands { queue, drained: Arc::default(), deadline: None };
    let mut worker = Worker::new(device, shard(), port, Clock::start(), Waker::new().unwrap());
    assert_eq!(worker.turn().unwrap(), Activity::Busy);
    assert_eq!(*order.lock().unwrap(), ["command", "burst"]);
}

#[test]
fn a_port_is_asked_at_its_deadline() {
    let running = run(Some(Instant::from_millis(100)));
    thread::sleep(Duration::from_millis(50));
    let before = running.drained.load(Ordering::Relaxed);
    thread::sleep(Duration::from_millis(150));
    let after = running.drained.load(Ordering::Relaxed);
    assert!(after > before && after < before + 10, "{before} turns before, {after} after");
    running.stop.set();
    running.thread.join().unwrap().1.unwrap();
}

#[test]
fn a_lost_device_ends_the_worker_and_stops_its_siblings() {
    let running = run(None);
    drop(running.other_end);
    let error = running.thread.join().unwrap().1.unwrap_err();
    assert!(matches!(error, WorkerError::Device { .. }), "{error}");
    assert!(error.to_string().starts_with("quiet: the device is lost: "), "{error}");
    assert!(running.stop.is_set());
}

#[test]
fn a_panic_stops_the_siblings_and_shows_at_the_join() {
    let running = run(None);
    running.commands.send(Box::new(|| panic!("as the test wants"))).unwrap();
    running.waker.wake();
    assert!(running.thread.join().is_err());
    assert!(running.stop.is_set());
    running.waker.wake();
}
