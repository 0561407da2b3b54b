//! A call of a script's, made by the calling thread: it blocks as long as the call does.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use whimbrel_posix::sockets::Ioctl;
use whimbrel_posix::{Domain, EpollEvents, Errno, FileFlags, MsgFlags, PollEvents};
use whimbrel_script::call::{
    Call, Filled, Polled, ReadCall, Reading, Returned, TimeOut, WriteCall, Writing,
};
use whimbrel_wire::{Address, Endpoint, Family};

use super::Machine;
use super::descriptors::{Descriptor, Descriptors};
use super::options;
use crate::Stop;
use crate::sys::socket;
use crate::sys::stream::{self, Question, RawAddress, Whom};

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

/// What a call that failed returns.
pub(super) fn failed(error: &io::Error) -> Returned {
    Returned { value: Err(errno(error)), out: Filled::Nothing }
}

/// The errno in `error`: EIO for one that has no name of ours.
pub(super) fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().and_then(Errno::by_number).unwrap_or(Errno::EIO)
}

fn attempt(call: &Call, machine: &Machine) -> Outcome {
    let descriptors = &machine.descriptors;
    match *call {
        Call::Socket { domain, kind, flags, protocol } => {
            let kind = kind.number() | flags.bits().cast_signed() | libc::SOCK_CLOEXEC;
            let make = || socket(domain.number(), kind, protocol.number());
            let fd = machine.namespace.within(make)??;
            number(descriptors.add(fd, Some(domain)))
        }
        Call::Bind { fd, to } => with_address(descriptors, fd, to, stream::bind),
        Call::Connect { fd, to } => with_address(descriptors, fd, to, stream::connect),
        Call::Listen { fd, backlog } => {
            done(stream::listen(descriptors.find(fd)?.as_fd(), backlog))
        }
        Call::Accept { fd, flags } => {
            let listener = descriptors.find(fd)?;
            let flags = flags.bits().cast_signed() | libc::SOCK_CLOEXEC;
            let (accepted, from) = stream::accept(listener.as_fd(), flags)?;
            let peer = from.to_std().map_or(Filled::Nothing, |from| Filled::Peer(endpoint(from)));
            Ok((descriptors.add(accepted, listener.domain).into(), peer))
        }
        Call::Close { fd } => done(descriptors.close(fd)),
        Call::Shutdown { fd, how } => {
            done(stream::shutdown(descriptors.find(fd)?.as_fd(), how.number()))
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
        Call::EpollCreate => number(descriptors.add(stream::epoll_create()?, None)),
        Call::EpollCtl { epoll, op, fd, events, data } => {
            let (epoll, fd) = (descriptors.find(epoll)?, descriptors.find(fd)?);
            let (epoll, fd) = (epoll.as_fd(), fd.as_fd());
            done(stream::epoll_ctl(epoll, op.number(), fd, events.bits(), data))
        }
        Call::EpollWait { epoll, most, time_out } => epoll_wait(machine, epoll, most, time_out),
        Call::FcntlGetFl { fd } => number(stream::file_flags(descriptors.find(fd)?.as_fd())?),
        Call::FcntlSetFl { fd, flags } => done(set_flags(&*descriptors.find(fd)?, flags)),
        Call::Ioctl { fd, request } => {
            let question = match request {
                Ioctl::Fionread | Ioctl::Inq => Question::Unread,
                Ioctl::Outq => Question::Unacknowledged,
                Ioctl::OutqUnsent => Question::Unsent,
                Ioctl::AtMark => Question::AtMark,
            };
            let answer = stream::ask(descriptors.find(fd)?.as_fd(), question)?;
            Ok((0, Filled::Number(answer)))
        }
        Call::GetSockOpt { fd, option } => {
            Ok((0, Filled::Option(options::read(&*descriptors.find(fd)?, option)?)))
        }
        Call::SetSockOpt { fd, option, ref value } => {
            done(options::write(&*descriptors.find(fd)?, option, value))
        }
        // The others were made by `attempt`.
        _ => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
    }
}

fn done(result: io::Result<()>) -> Outcome {
    result.map(|()| (0, Filled::Nothing))
}

fn number(value: i32) -> Outcome {
    Ok((value.into(), Filled::Nothing))
}

fn with_address(
    descriptors: &Descriptors,
    fd: i32,
    to: Endpoint,
    call: impl FnOnce(std::os::fd::BorrowedFd<'_>, &RawAddress) -> io::Result<()>,
) -> Outcome {
    let descriptor = descriptors.find(fd)?;
    done(call(descriptor.as_fd(), &raw_address(to, descriptor.domain)))
}

/// An IPv4 address goes to an IPv6 socket in mapped form.
fn raw_address(to: Endpoint, domain: Option<Domain>) -> RawAddress {
    let ip = match (to.addr.family(), domain) {
        (Family::V4, Some(Domain::Inet6)) => IpAddr::V6(Ipv6Addr::from(*to.addr.octets())),
        _ => to.addr.to_ip(),
    };
    SocketAddr::new(ip, to.port).into()
}

fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::new(Address::from(address.ip()), address.port())
}

fn set_flags(descriptor: &Descriptor, flags: FileFlags) -> io::Result<()> {
    stream::set_file_flags(descriptor.as_fd(), flags.bits().cast_signed())
}

fn receive(descriptor: &Descriptor, with: &Reading, flags: MsgFlags) -> Outcome {
    let mut buffers: Vec<_> = with.sizes.iter().map(|size| vec![0; *size]).collect();
    let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
    let fd = descriptor.as_fd();
    let (len, said) = match with.call {
        ReadCall::Read | ReadCall::Readv => (stream::readv(fd, &mut slices)?, 0),
        ReadCall::Recv | ReadCall::RecvFrom | ReadCall::RecvMsg => {
            stream::recvmsg(fd, &mut slices, flags.bits().cast_signed())?
        }
    };
    // With MSG_TRUNC the octets are thrown away and only counted.
    let kept = if flags.has(MsgFlags::MSG_TRUNC) { 0 } else { len };
    let mut octets = buffers.concat();
    octets.truncate(kept);
    Ok((len as i64, Filled::Octets(octets, MsgFlags::from_bits(said.cast_unsigned()))))
}

fn send(descriptor: &Descriptor, with: &Writing, flags: MsgFlags) -> Outcome {
    let slices: Vec<_> = with.pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let fd = descriptor.as_fd();
    let sent = match with.call {
        WriteCall::Write | WriteCall::Writev => stream::writev(fd, &slices)?,
        WriteCall::Send | WriteCall::SendTo | WriteCall::SendMsg => {
            let to = with.to.map(|to| raw_address(to, descriptor.domain));
            stream::sendmsg(fd, &slices, to.as_ref(), flags.bits().cast_signed())?
        }
    };
    Ok((sent as i64, Filled::Nothing))
}

fn poll(machine: &Machine, fds: &[Polled], time_out: TimeOut) -> Outcome {
    // Held, so that none of the numbers is given to another descriptor meanwhile.
    let held: Vec<_> = fds.iter().map(|polled| machine.descriptors.find(polled.fd)).collect();
    let raw = |(polled, held)| raw_polled(polled, held);
    let mut raws: Vec<_> = fds.iter().zip(&held).map(raw).collect();
    let ready = in_slices(&machine.stop, time_out, |milliseconds| {
        Ok(Some(stream::poll(&mut raws, milliseconds)?).filter(|ready| *ready > 0))
    })?;
    let found = |(polled, raw): (&Polled, stream::Polled<'_>)| {
        let revents = PollEvents::from_bits(u32::from(raw.revents.cast_unsigned()));
        Polled { revents, ..*polled }
    };
    let found = fds.iter().zip(raws).map(found).collect();
    Ok((ready.unwrap_or(0) as i64, Filled::Polled(found)))
}

fn raw_polled<'h>(polled: &Polled, held: &'h io::Result<Arc<Descriptor>>) -> stream::Polled<'h> {
    let whom = match held {
        Ok(descriptor) => Whom::Descriptor(descriptor.as_fd()),
        Err(_) if polled.fd < 0 => Whom::Ignored,
        Err(_) => Whom::Nobody,
    };
    stream::Polled { whom, events: polled.events.bits() as i16, revents: 0 }
}

fn epoll_wait(machine: &Machine, epoll: i32, most: u32, time_out: TimeOut) -> Outcome {
    let epoll = machine.descriptors.find(epoll)?;
    let found = in_slices(&machine.stop, time_out, |milliseconds| {
        let found = stream::epoll_wait(epoll.as_fd(), most, milliseconds)?;
        Ok(Some(found).filter(|found| !found.is_empty()))
    })?;
    let found = found.unwrap_or_default();
    let found: Vec<_> =
        found.into_iter().map(|(events, data)| (EpollEvents::from_bits(events), data)).collect();
    Ok((found.len() as i64, Filled::Epoll(found)))
}

/// Waits in slices, between which it looks whether anybody still wants to know: unlike reading and
/// its like, polling cannot be ended from outside.
fn in_slices<T>(
    stop: &Stop,
    time_out: TimeOut,
    mut wait: impl FnMut(i32) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let deadline = match time_out {
        TimeOut::Never => None,
        TimeOut::After(time_out) => Some(Instant::now() + time_out),
    };
    loop {
        let left = deadline.map_or(SLICE, |deadline| deadline.duration_since(Instant::now()));
        // The kernel waits whole milliseconds, and not less than what was asked for.
        let slice = left.min(SLICE).as_micros().div_ceil(1000) as i32;
        let found = wait(slice)?;
        if found.is_some() || left.is_zero() || stop.is_set() {
            return Ok(found);
        }
    }
}

const SLICE: Duration = Duration::from_millis(50);
