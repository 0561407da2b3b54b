//! Makes a script's call on the calling thread, which blocks as long as the call does.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{readv, writev};
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown,
};
use whimbrel_io::Stop;
use whimbrel_io::socket_option::{SocketRequest, request_number};
use whimbrel_posix::sockets::{EpollOp, Ioctl, Shut};
use whimbrel_posix::{Domain, EpollEvents, Errno, MsgFlags, PollEvents, SocketFlags};
use whimbrel_script::call::{
    Call, Filled, Polled, ReadCall, Reading, Returned, TimeOut, WriteCall, Writing,
};
use whimbrel_wire::{Address, Endpoint, Family};

use super::Machine;
use super::descriptors::{Descriptor, Descriptors};
use super::options;

type Outcome = io::Result<(i64, Filled)>;

/// Makes the call; the calling thread blocks as long as it does.
pub(super) fn perform(call: &Call, machine: &Machine) -> Returned {
    returned(attempt(call, machine))
}

fn returned(outcome: Outcome) -> Returned {
    match outcome {
        Ok((value, out)) => Returned { value: Ok(value), out },
        Err(error) => failed(&error),
    }
}

/// Returns the result of a failed call.
pub(super) fn failed(error: &io::Error) -> Returned {
    Returned { value: Err(errno(error)), out: Filled::Nothing }
}

/// Returns the errno in `error`; EIO if it has no name here.
pub(super) fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().and_then(Errno::by_number).unwrap_or(Errno::EIO)
}

fn attempt(call: &Call, machine: &Machine) -> Outcome {
    let descriptors = &machine.descriptors;
    match *call {
        Call::Socket { domain, kind, flags, protocol } => {
            let family = AddressFamily::from_raw(domain.number() as u16);
            let kind = net::SocketType::from_raw(kind.number().cast_unsigned());
            let protocol = NonZeroU32::new(protocol.number().cast_unsigned());
            let protocol = protocol.map(net::Protocol::from_raw);
            let flags = socket_flags(flags);
            let make = || net::socket_with(family, kind, flags, protocol);
            let fd = machine.namespace.within(make)??;
            number(descriptors.add(fd, Some(domain)))
        }
        Call::Bind { fd, to } => with_address(descriptors, fd, to, |fd, to| net::bind(fd, to)),
        Call::Connect { fd, to } => {
            with_address(descriptors, fd, to, |fd, to| net::connect(fd, to))
        }
        Call::Listen { fd, backlog } => done(net::listen(&*descriptors.find(fd)?, backlog)),
        Call::Accept { fd, flags } => {
            let listener = descriptors.find(fd)?;
            let (accepted, from) = net::acceptfrom_with(&*listener, socket_flags(flags))?;
            let from = from.and_then(|from| SocketAddr::try_from(from).ok());
            let peer = from.map_or(Filled::Nothing, |from| Filled::Peer(endpoint(from)));
            Ok((descriptors.add(accepted, listener.domain).into(), peer))
        }
        Call::Close { fd } => descriptors.close(fd).map(|()| NOTHING),
        Call::Shutdown { fd, how } => {
            let how = match how {
                Shut::Read => Shutdown::Read,
                Shut::Write => Shutdown::Write,
                Shut::Both => Shutdown::Both,
            };
            done(net::shutdown(&*descriptors.find(fd)?, how))
        }
        Call::Receive { fd, ref with, flags } => receive(&*descriptors.find(fd)?, with, flags),
        Call::Send { fd, ref with, flags } => send(&*descriptors.find(fd)?, with, flags),
        _ => attempt_control(call, machine),
    }
}

fn attempt_control(call: &Call, machine: &Machine) -> Outcome {
    let descriptors = &machine.descriptors;
    match *call {
        Call::Poll { ref fds, time_out } => poll(machine, fds, time_out),
        Call::EpollCreate => number(descriptors.add(epoll::create(CreateFlags::CLOEXEC)?, None)),
        Call::EpollCtl { epoll, op, fd, events, data } => {
            let (epoll, fd) = (descriptors.find(epoll)?, descriptors.find(fd)?);
            let (events, data) =
                (EventFlags::from_bits_retain(events.bits()), EventData::new_u64(data));
            done(match op {
                EpollOp::Add => epoll::add(&*epoll, &*fd, data, events),
                EpollOp::Mod => epoll::modify(&*epoll, &*fd, data, events),
                EpollOp::Del => epoll::delete(&*epoll, &*fd),
            })
        }
        Call::EpollWait { epoll, most, time_out } => epoll_wait(machine, epoll, most, time_out),
        Call::FcntlGetFl { fd } => {
            number(fcntl_getfl(&*descriptors.find(fd)?)?.bits().cast_signed())
        }
        Call::FcntlSetFl { fd, flags } => {
            let flags = OFlags::from_bits_retain(flags.bits());
            done(fcntl_setfl(&*descriptors.find(fd)?, flags))
        }
        Call::Ioctl { fd, request } => {
            let question = match request {
                Ioctl::Fionread | Ioctl::Inq => SocketRequest::Unread,
                Ioctl::Outq => SocketRequest::Unacknowledged,
                Ioctl::OutqUnsent => SocketRequest::Unsent,
                Ioctl::AtMark => SocketRequest::AtMark,
            };
            let answer = request_number(descriptors.find(fd)?.as_fd(), question)?;
            Ok((0, Filled::Number(answer)))
        }
        Call::GetSockOpt { fd, option } => {
            Ok((0, Filled::Option(options::read(&*descriptors.find(fd)?, option)?)))
        }
        Call::SetSockOpt { fd, option, ref value } => {
            options::write(&*descriptors.find(fd)?, option, value).map(|()| NOTHING)
        }
        // `attempt` has made the others.
        _ => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
    }
}

fn done(result: rustix::io::Result<()>) -> Outcome {
    Ok(result.map(|()| NOTHING)?)
}

fn number(value: i32) -> Outcome {
    Ok((value.into(), Filled::Nothing))
}

fn with_address(
    descriptors: &Descriptors,
    fd: i32,
    to: Endpoint,
    call: impl FnOnce(&Descriptor, &SocketAddr) -> rustix::io::Result<()>,
) -> Outcome {
    let descriptor = descriptors.find(fd)?;
    done(call(&descriptor, &address(to, descriptor.domain)))
}

/// Returns the socket address of `to`; an IPv4 address is mapped for an IPv6 socket.
fn address(to: Endpoint, domain: Option<Domain>) -> SocketAddr {
    let ip = match (to.addr.family(), domain) {
        (Family::V4, Some(Domain::Inet6)) => IpAddr::V6(Ipv6Addr::from(*to.addr.as_bytes())),
        _ => to.addr.to_ip(),
    };
    SocketAddr::new(ip, to.port)
}

fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::new(Address::from(address.ip()), address.port())
}

fn socket_flags(flags: SocketFlags) -> net::SocketFlags {
    net::SocketFlags::from_bits_retain(flags.bits()) | net::SocketFlags::CLOEXEC
}

fn receive(descriptor: &Descriptor, with: &Reading, flags: MsgFlags) -> Outcome {
    let mut buffers: Vec<_> = with.sizes.iter().map(|size| vec![0; *size]).collect();
    let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
    let (len, said) = match with.call {
        ReadCall::Read | ReadCall::Readv => (readv(descriptor, &mut slices)?, 0),
        ReadCall::Recv | ReadCall::RecvFrom | ReadCall::RecvMsg => {
            let flags = RecvFlags::from_bits_retain(flags.bits());
            let mut control = RecvAncillaryBuffer::default();
            let message = net::recvmsg(descriptor, &mut slices, &mut control, flags)?;
            (message.bytes, message.flags.bits())
        }
    };
    // With MSG_TRUNC the bytes are discarded and only counted.
    let kept = if flags.has(MsgFlags::MSG_TRUNC) { 0 } else { len };
    let mut bytes = buffers.concat();
    bytes.truncate(kept);
    Ok((len as i64, Filled::Bytes(bytes, MsgFlags::from_bits(said))))
}

fn send(descriptor: &Descriptor, with: &Writing, flags: MsgFlags) -> Outcome {
    let slices: Vec<_> = with.pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let sent = match with.call {
        WriteCall::Write | WriteCall::Writev => writev(descriptor, &slices)?,
        WriteCall::Send | WriteCall::SendTo | WriteCall::SendMsg => {
            let flags = SendFlags::from_bits_retain(flags.bits());
            let mut control = SendAncillaryBuffer::default();
            match with.to.map(|to| address(to, descriptor.domain)) {
                None => net::sendmsg(descriptor, &slices, &mut control, flags)?,
                Some(to) => net::sendmsg_addr(descriptor, &to, &slices, &mut control, flags)?,
            }
        }
    };
    Ok((sent as i64, Filled::Nothing))
}

fn poll(machine: &Machine, fds: &[Polled], time_out: TimeOut) -> Outcome {
    // This holds the descriptors, so that their numbers are not reused meanwhile.
    let held: Vec<_> = fds.iter().map(|polled| machine.descriptors.find(polled.fd).ok()).collect();
    // A negative number is skipped; any other unknown number is reported at once.
    let is_invalid = |(polled, held): (&Polled, &Option<_>)| held.is_none() && polled.fd >= 0;
    let invalid = fds.iter().zip(&held).filter(|it| is_invalid(*it)).count();
    let time_out = if invalid > 0 { TimeOut::After(Duration::ZERO) } else { time_out };
    let asked = fds.iter().zip(&held).filter_map(|(polled, held)| {
        // Some libc types, as under Miri, have signed flags here.
        let events = PollFlags::from_bits_retain(polled.events.bits() as _);
        Some(PollFd::new(held.as_deref()?, events))
    });
    let mut asked: Vec<_> = asked.collect();
    let ready = in_slices(&machine.stop, time_out, |slice| {
        Ok(Some(event::poll(&mut asked, Some(&slice))?).filter(|ready| *ready > 0))
    })?;
    let mut asked = asked.iter();
    let found = fds.iter().zip(&held).map(|(polled, held)| {
        let revents = match held {
            Some(_) => asked.next().map_or(PollFlags::empty(), PollFd::revents),
            None if polled.fd < 0 => PollFlags::empty(),
            None => PollFlags::NVAL,
        };
        Polled { revents: PollEvents::from_bits(revents.bits() as u32), ..*polled }
    });
    Ok(((ready.unwrap_or(0) + invalid) as i64, Filled::Polled(found.collect())))
}

fn epoll_wait(machine: &Machine, epoll: i32, most: u32, time_out: TimeOut) -> Outcome {
    let epoll = machine.descriptors.find(epoll)?;
    // As in the kernel: no process can have two buffers of so many bytes.
    if !(1..=i32::MAX as usize / size_of::<Event>()).contains(&(most as usize)) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let found = in_slices(&machine.stop, time_out, |slice| {
        let mut found = Vec::with_capacity(most.min(EVENTS) as usize);
        epoll::wait(&*epoll, spare_capacity(&mut found), Some(&slice))?;
        Ok(Some(found).filter(|found| !found.is_empty()))
    })?;
    let event = |Event { flags, data }| (EpollEvents::from_bits(flags.bits()), data.u64());
    let found: Vec<_> = found.unwrap_or_default().into_iter().map(event).collect();
    Ok((found.len() as i64, Filled::Epoll(found)))
}

/// Waits in slices, and checks for a stop between them: unlike a read, a poll cannot be ended from
/// outside.
fn in_slices<T>(
    stop: &Stop,
    time_out: TimeOut,
    mut wait: impl FnMut(Timespec) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let deadline = match time_out {
        TimeOut::Never => None,
        TimeOut::After(time_out) => Some(Instant::now() + time_out),
    };
    loop {
        let left = deadline.map_or(SLICE, |deadline| deadline.duration_since(Instant::now()));
        // The kernel waits for whole milliseconds, at least as long as requested.
        let slice = left.min(SLICE).as_micros().div_ceil(1000) as i64;
        let found = wait(Timespec { tv_sec: 0, tv_nsec: slice * 1_000_000 })?;
        if found.is_some() || left.is_zero() || stop.is_set() {
            return Ok(found);
        }
    }
}

/// Result of a call that returns no data.
const NOTHING: (i64, Filled) = (0, Filled::Nothing);
const SLICE: Duration = Duration::from_millis(50);
/// Limit of events in one call.
const EVENTS: u32 = 4_096;
