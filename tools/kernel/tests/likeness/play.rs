//! Plays cases in parallel on one host, in step: each has its own peer and ports. The account of
//! what the host sends and its calls return uses the same words for every host.

use std::collections::BTreeMap;
use std::time::Duration;

use whimbrel_posix::sockets::Ioctl;
use whimbrel_posix::state::NUMBERS;
use whimbrel_posix::{
    Domain, Errno, FileFlags, MsgFlags, OptionValue, PollEvents, Protocol, SocketFlags,
    SocketOption, SocketType,
};
use whimbrel_script::ast::{IcmpPacket, IpMarks, Quoted, Seq, TcpOption};
use whimbrel_script::call::{
    Call, Filled, Polled, ReadCall, Reading, Returned, TimeOut, Unconnected, WriteCall, Writing,
};
use whimbrel_script::host::{Network, Progress, ScriptHost};
use whimbrel_script::packet::{FlowState, Segment, icmp, notation};
use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Address, Endpoint, Flow, SeqNum, TrafficClass};

use crate::case::Case;
use crate::scenes::Step;
use crate::shape::{FIRST, IcmpShape, Shape, Stamp, Stimulus};

/// One moment of a case: the stimulus, and the host's actions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Moment {
    pub(crate) done: String,
    pub(crate) came: Vec<String>,
}

/// All moments of a case.
pub(crate) type Account = Vec<Moment>;

/// Plays `cases` on `host`, all at once.
pub(crate) fn play<H: ScriptHost>(host: &mut H, cases: &[Case]) -> Vec<Account> {
    let mut lines: Vec<_> =
        cases.iter().enumerate().map(|(number, case)| Line::new(case, number)).collect();
    let by_peer: BTreeMap<Address, usize> =
        lines.iter().enumerate().map(|(at, line)| (line.flow.remote.addr, at)).collect();
    let moments = lines.iter().map(|line| line.plan.len()).max().unwrap_or(0);
    for at in 0..moments {
        for line in &mut lines {
            line.act(host, at);
        }
        let until = host.now() + PAUSE;
        while host.now() < until {
            host.run_until(until);
            while let Some((_, packet)) = host.poll_packet() {
                let Ok(segment) = Segment::parse(&packet) else { continue };
                if let Some(line) = by_peer.get(&segment.dst.addr) {
                    lines[*line].hear(&segment);
                }
            }
        }
        for line in &mut lines {
            line.look(host, at);
        }
    }
    lines.into_iter().map(|line| line.account).collect()
}

/// Stimulus of one moment.
#[derive(Clone, Debug)]
enum Stimuli {
    Steps(&'static [Step]),
    Stimulus(Stimulus, i32),
    Calls,
    Close,
    Wait,
}

/// A case under way.
struct Line {
    plan: Vec<(String, Stimuli)>,
    flow: Flow,
    stamped: bool,
    next: (u32, u32),
    /// ISN of the host, once it was seen.
    isn: Option<SeqNum>,
    /// Last TSval of the host.
    stamp: u32,
    listener: Option<i32>,
    fd: Option<i32>,
    account: Account,
    /// One past the last number that the host sent.
    sent: Option<SeqNum>,
    /// True if time-outs are waited for.
    is_patient: bool,
}

impl Line {
    fn new(case: &Case, number: usize) -> Self {
        let number = number as u32;
        let [_, _, high, low] = number.to_be_bytes();
        let flow = Flow {
            local: Endpoint::new(Network::v4().local, 8080 + number as u16),
            remote: Endpoint::new(Address::from_v4_bytes([10, high, low, 1]), 40_000),
        };
        Self {
            plan: plan(case),
            flow,
            stamped: case.stamped,
            next: case.scene.next,
            isn: None,
            stamp: 0,
            listener: None,
            fd: None,
            account: Vec::new(),
            sent: None,
            is_patient: false,
        }
    }

    fn act<H: ScriptHost>(&mut self, host: &mut H, at: usize) {
        let Some((done, doing)) = self.plan.get(at).cloned() else { return };
        if !(self.is_patient && matches!(doing, Stimuli::Wait)) {
            self.account.push(Moment { done, came: Vec::new() });
        }
        self.is_patient = matches!(doing, Stimuli::Wait);
        match doing {
            Stimuli::Steps(steps) => steps.iter().for_each(|step| self.perform(host, *step)),
            Stimuli::Stimulus(Stimulus::Segment(shape), taken) => {
                let segment = self.segment(&shape, taken, at);
                host.inject(&segment.emit());
            }
            Stimuli::Stimulus(Stimulus::Icmp(shape), _) => host.inject(&self.error(shape)),
            Stimuli::Calls => self.call_all(host),
            Stimuli::Close => {
                if let Some(fd) = self.fd.take() {
                    self.note_call(host, "close", Call::Close { fd });
                }
            }
            Stimuli::Wait => {}
        }
    }

    /// Records the state of the descriptor.
    fn look<H: ScriptHost>(&mut self, host: &mut H, at: usize) {
        let (Some(fd), Some((_, doing))) = (self.fd, self.plan.get(at)) else { return };
        if matches!(doing, Stimuli::Wait) {
            // The result shows in what follows.
            return;
        }
        let state = host.tcp_info(fd).map(|info| info.tcpi_state);
        let named = |state: u64| NUMBERS.iter().find(|(_, number)| u64::from(*number) == state);
        let state = match state {
            Ok(state) => {
                named(state.into()).map_or("?", |(name, _)| name.trim_start_matches("TCP_"))
            }
            Err(error) => error.name(),
        };
        let events = PollEvents::POLLIN | PollEvents::POLLPRI | PollEvents::POLLOUT;
        let polled = Polled { fd, events, revents: PollEvents::NONE };
        let fds = vec![polled];
        let ready = call(host, Call::Poll { fds, time_out: TimeOut::After(Duration::ZERO) });
        let ready = match ready.out {
            Filled::Polled(polled) => polled.first().map_or(0, |it| it.revents.bits()),
            _ => 0,
        };
        self.note(format!("{state} {}", poll_names(ready)));
    }

    fn note(&mut self, what: String) {
        let Some(moment) = self.account.last_mut() else { return };
        // The number of a timer's repetitions depends on time.
        if !(self.is_patient && moment.came.contains(&what)) {
            moment.came.push(what);
        }
    }

    /// Records a segment of the host.
    fn hear(&mut self, segment: &Segment) {
        if segment.flags.contains(TcpFlags::SYN) {
            self.isn = Some(segment.seq);
            self.flow.local.port = segment.src.port;
        }
        let stamp = segment.options.iter().find_map(|option| match option {
            TcpOption::Timestamps { val, .. } => Some(*val),
            _ => None,
        });
        self.stamp = stamp.unwrap_or(self.stamp);
        // A retransmission is sooner or later, depending on the machine.
        let control = segment.flags.intersects(TcpFlags::SYN | TcpFlags::FIN);
        let end = segment.seq + segment.len() + u32::from(control);
        let is_old = self.sent.is_some_and(|sent| end.at_or_before(sent)) && end != segment.seq;
        self.sent = Some(self.sent.filter(|sent| end.before(*sent)).unwrap_or(end));
        if !is_old || self.is_patient || segment.flags.contains(TcpFlags::SYN) {
            let text = self.describe(segment);
            self.note(text);
        }
    }

    fn describe(&self, segment: &Segment) -> String {
        let flags = TcpFlags::from_bits(segment.flags.bits() & !TcpFlags::PSH.bits());
        // A reset that answers a segment without ACK has number 0.
        let base = if segment.seq.raw() == 0 { None } else { self.isn };
        let seq = segment.seq.offset_from(base.unwrap_or_default()).cast_signed();
        let mut text = format!("> {} {seq}({})", notation::flags(flags), segment.len());
        if flags.contains(TcpFlags::ACK) {
            text += &format!(" ack {}", segment.ack.raw().cast_signed());
        }
        if segment.win == 0 && !flags.contains(TcpFlags::RST) {
            text += " win 0";
        }
        if flags.contains(TcpFlags::RST) {
            // Options of a reset have no effect.
            return text;
        }
        let options: Vec<_> = segment.options.iter().filter_map(|it| self.option(it)).collect();
        if !options.is_empty() {
            text += &format!(" <{}>", options.join(","));
        }
        text
    }

    /// Returns the comparable part of an option: never a host's own clock or buffers.
    fn option(&self, option: &TcpOption) -> Option<String> {
        Some(match option {
            TcpOption::Nop => return None,
            TcpOption::WindowScale(_) => "wscale".into(),
            TcpOption::Timestamps { ecr, .. } => format!("TS ecr {ecr}"),
            other => notation::options(std::slice::from_ref(other)),
        })
    }

    fn perform<H: ScriptHost>(&mut self, host: &mut H, step: Step) {
        let fd = self.fd.unwrap_or(NO_FD);
        match step {
            Step::Listen => {
                let fd = open(host);
                call(host, Call::Bind { fd, to: self.flow.local });
                call(host, Call::Listen { fd, backlog: 8 });
                self.listener = Some(fd);
            }
            Step::CloseListener => {
                if let Some(fd) = self.listener.take() {
                    call(host, Call::Close { fd });
                }
            }
            Step::Accept => {
                let fd = self.listener.unwrap_or(NO_FD);
                let accepted = call(host, Call::Accept { fd, flags: SocketFlags::NONE });
                self.fd = accepted.value.ok().and_then(|fd| i32::try_from(fd).ok());
            }
            Step::Connect => {
                let fd = open(host);
                self.fd = Some(fd);
                self.note_call(host, "connect", Call::Connect { fd, to: self.flow.remote });
            }
            Step::Shutdown(how) => self.note_call(host, "shutdown", Call::Shutdown { fd, how }),
            Step::Close => {
                self.fd = None;
                self.note_call(host, "close", Call::Close { fd });
            }
            Step::Write(size) => self.note_call(host, "write", write(fd, size)),
            Step::Peer(flags, seq, len, ack, win) => {
                let from = (self.next.0, self.next.1);
                let shape = Shape {
                    flags,
                    seq: seq.wrapping_sub(from.0).cast_signed(),
                    len,
                    ack: flags
                        .contains(TcpFlags::ACK)
                        .then(|| ack.wrapping_sub(from.1).cast_signed()),
                    win,
                    urg: 0,
                    stamp: Stamp::Usual,
                    options: Vec::new(),
                };
                let segment = self.segment(&shape, 0, self.account.len());
                host.inject(&segment.emit());
            }
        }
    }

    fn segment(&self, shape: &Shape, taken: i32, at: usize) -> Segment {
        let Shape { flags, seq, len, ack, win, urg, stamp, options } = shape.clone();
        let seq = match seq {
            FIRST => 0,
            seq => self.next.0.wrapping_add_signed(seq).wrapping_add_signed(taken),
        };
        let isn = self.isn.unwrap_or_default();
        let ack = ack.map_or(SeqNum::default(), |ack| isn + self.next.1.wrapping_add_signed(ack));
        let mut list = options;
        let syn = flags.contains(TcpFlags::SYN);
        if syn {
            list.push(TcpOption::Mss(1000));
        }
        if self.stamped {
            if syn {
                list.extend([TcpOption::SackPermitted, TcpOption::Nop, TcpOption::WindowScale(1)]);
            }
            list.extend(self.stamps(stamp, flags, at));
        }
        Segment {
            src: self.flow.remote,
            dst: self.flow.local,
            traffic_class: TrafficClass(0),
            hop_limit: 64,
            flags,
            seq: SeqNum::new(seq),
            ack,
            win,
            urg,
            options: list,
            text: vec![0; len as usize],
        }
    }

    fn stamps(&self, stamp: Stamp, flags: TcpFlags, at: usize) -> Option<TcpOption> {
        // Clock of a peer for whom each moment takes 100 ticks.
        let val = 1_000 * 1_000 + 100 * at as u32;
        let later = match stamp {
            Stamp::Missing => return None,
            Stamp::Later(later) => later,
            _ => 0,
        };
        let off = if let Stamp::Echo(off) = stamp { off } else { 0 };
        let ecr = self.stamp.wrapping_add_signed(off);
        let ecr = if flags.contains(TcpFlags::ACK) { ecr } else { 0 };
        Some(TcpOption::Timestamps { val: val.wrapping_add_signed(later), ecr })
    }

    fn error(&self, shape: IcmpShape) -> Vec<u8> {
        let IcmpShape { kind, code, mtu, seq } = shape;
        let names = [(3, "unreachable"), (4, "source_quench"), (11, "time_exceeded")];
        let name = names.iter().find(|(number, _)| *number == kind);
        let seq = self.isn.unwrap_or_default() + self.next.1.wrapping_add_signed(seq);
        let packet = IcmpPacket {
            kind: name.map_or("parameter_problem", |(_, name)| name).into(),
            code: Some(code.to_string()),
            id: None,
            mtu: Some(mtu.into()).filter(|_| (kind, code) == (3, 4)),
            quoted: Some(Box::new(Quoted {
                flags: None,
                seq: Seq::Absolute(seq.raw()),
                len: 0,
                ends: None,
                first: None,
            })),
        };
        let flow = FlowState::new(self.flow);
        icmp::error(&packet, IpMarks::default(), &flow, self.flow)
            .expect("an error that can be sent")
    }

    /// Makes every call that an application may make at the end.
    fn call_all<H: ScriptHost>(&mut self, host: &mut H) {
        let Some(fd) = self.fd else { return };
        let error = Call::GetSockOpt { fd, option: SocketOption::Error };
        self.note_call(host, "SO_ERROR", error.clone());
        self.note_call(host, "FIONREAD", Call::Ioctl { fd, request: Ioctl::Fionread });
        self.note_call(host, "read", read(fd, 4));
        self.note_call(host, "read", read(fd, 100));
        self.note_call(host, "read", read(fd, 100));
        self.note_call(host, "write", write(fd, 10));
        self.note_call(host, "write", write(fd, 10));
        self.note_call(host, "SO_ERROR", error);
    }

    fn note_call<H: ScriptHost>(&mut self, host: &mut H, name: &str, what: Call) {
        let Returned { value, out } = call(host, what);
        let text = match (value, out) {
            (Err(error), _) => error.name().to_owned(),
            (Ok(_), Filled::Option(OptionValue::Int(number))) => match Errno::by_number(number) {
                Some(error) if number != 0 => error.name().to_owned(),
                _ => number.to_string(),
            },
            (Ok(_), Filled::Number(number)) => number.to_string(),
            (Ok(value), _) => value.to_string(),
        };
        self.note(format!("{name} {text}"));
    }
}

fn plan(case: &Case) -> Vec<(String, Stimuli)> {
    let mut plan: Vec<_> = (case.scene.moments.iter())
        .map(|steps| (case.scene.name.to_owned(), Stimuli::Steps(steps)))
        .collect();
    let mut taken = 0;
    for named in &case.stimuli {
        plan.push((named.name.into(), Stimuli::Stimulus(named.stimulus.clone(), taken)));
        taken += named.takes as i32;
    }
    if case.waits {
        plan.extend((0..WAITS).map(|_| ("later".to_owned(), Stimuli::Wait)));
    }
    plan.push(("calls".into(), Stimuli::Calls));
    plan.push(("close".into(), Stimuli::Close));
    plan
}

fn open<H: ScriptHost>(host: &mut H) -> i32 {
    let socket = Call::Socket {
        domain: Domain::Inet,
        kind: SocketType::Stream,
        flags: SocketFlags::NONE,
        protocol: Protocol::Tcp,
    };
    let fd = call(host, socket).value.expect("a socket") as i32;
    call(host, Call::FcntlSetFl { fd, flags: FileFlags::O_NONBLOCK });
    let value = OptionValue::Int(1);
    call(host, Call::SetSockOpt { fd, option: SocketOption::ReuseAddr, value });
    fd
}

fn call<H: ScriptHost>(host: &mut H, call: Call) -> Returned {
    match host.call(call.clone()) {
        Progress::Done(returned) => returned,
        Progress::Blocked(_) => panic!("{call:?} blocks"),
    }
}

fn read(fd: i32, size: usize) -> Call {
    let with = Reading { call: ReadCall::Recv, sizes: vec![size] };
    Call::Receive { fd, with, flags: MsgFlags::MSG_DONTWAIT }
}

fn write(fd: i32, size: usize) -> Call {
    let with = Writing {
        call: WriteCall::Send,
        pieces: vec![vec![7; size]],
        to: None,
        unconnected: Unconnected::Fails,
    };
    Call::Send { fd, with, flags: MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL }
}

fn poll_names(bits: u32) -> String {
    let named = POLL_NAMES.iter().filter(|(flag, _)| bits & flag.bits() != 0);
    named.map(|(_, name)| *name).collect::<Vec<_>>().join("+")
}

const POLL_NAMES: [(PollEvents, &str); 5] = [
    (PollEvents::POLLIN, "IN"),
    (PollEvents::POLLPRI, "PRI"),
    (PollEvents::POLLOUT, "OUT"),
    (PollEvents::POLLERR, "ERR"),
    (PollEvents::POLLHUP, "HUP"),
];

/// Length of a moment: longer than the delay of an acknowledgment, and much shorter than a
/// time-out.
const PAUSE: Duration = Duration::from_millis(60);
/// Number of pauses that exceed a time-out, but not that of a SYN.
const WAITS: usize = 6;
/// A number that is no descriptor of any host.
const NO_FD: i32 = i32::MAX;
