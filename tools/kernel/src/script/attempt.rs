//! Makes a script's call on the thread that runs the script, if the call does not block.
//!
//! Passing each call to another thread would be simpler, but late by the scheduler's time slice on
//! a busy machine: 1 to 5 ms were seen, while scripts tolerate 4.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use whimbrel_posix::{Errno, MsgFlags};
use whimbrel_script::call::{Call, ReadCall, Reading, Returned, TimeOut, WriteCall, Writing};

use super::Machine;
use super::descriptors::Descriptor;
use super::options;
use super::perform::{failed, perform};

/// Result of an attempted call.
pub(super) enum Attempt {
    /// The call has returned this.
    Done(Returned),
    /// The call would block: the rest of it needs a thread.
    Blocks(BlockedCall),
}

/// The rest of a call that would block.
pub(super) struct BlockedCall {
    call: Call,
    /// Bytes sent so far.
    sent: i64,
}

impl BlockedCall {
    /// Completes the call on the calling thread, which may block.
    pub(super) fn perform(&self, machine: &Machine) -> Returned {
        let mut returned = perform(&self.call, machine);
        if self.sent > 0 {
            // After a partial send, the next call reports the error.
            returned.value = Ok(self.sent + returned.value.unwrap_or(0));
        }
        returned
    }
}

/// Makes the call as far as it does not block.
pub(super) fn attempt(call: Call, machine: &Machine) -> Attempt {
    match may_block(&call, machine) {
        Err(error) => Attempt::Done(failed(&error)),
        Ok(false) => Attempt::Done(perform(&call, machine)),
        Ok(true) => match impatient(&call) {
            None => Attempt::Blocks(BlockedCall { call, sent: 0 }),
            Some(hasty) => judge(call, perform(&hasty, machine)),
        },
    }
}

fn may_block(call: &Call, machine: &Machine) -> io::Result<bool> {
    let find = |fd: &i32| machine.descriptors.find(*fd);
    Ok(match call {
        Call::Connect { fd, .. } => blocks(&*find(fd)?)?,
        Call::Accept { fd, .. } => blocks(&*find(fd)?)? && !is_readable(&*find(fd)?)?,
        Call::Close { fd } => options::lingers(&*find(fd)?),
        Call::Receive { fd, flags, .. } | Call::Send { fd, flags, .. } => {
            !flags.has(MsgFlags::MSG_DONTWAIT) && blocks(&*find(fd)?)?
        }
        Call::Poll { time_out, .. } | Call::EpollWait { time_out, .. } => *time_out != NO_TIME,
        _ => false,
    })
}

/// Returns a non-blocking form of the call, if there is one.
fn impatient(call: &Call) -> Option<Call> {
    Some(match call {
        Call::Receive { fd, with, flags } => {
            // Without space, read returns at once; a call that waits for all its bytes may have to
            // wait even if some are there.
            let room: usize = with.sizes.iter().sum();
            if room == 0 || flags.has(MsgFlags::MSG_WAITALL) {
                return None;
            }
            let with = Reading { call: ReadCall::RecvMsg, sizes: with.sizes.clone() };
            Call::Receive { fd: *fd, with, flags: *flags | MsgFlags::MSG_DONTWAIT }
        }
        Call::Send { fd, with, flags } => {
            let with = Writing { call: WriteCall::SendMsg, ..with.clone() };
            Call::Send { fd: *fd, with, flags: *flags | MsgFlags::MSG_DONTWAIT }
        }
        Call::Poll { fds, .. } => Call::Poll { fds: fds.clone(), time_out: NO_TIME },
        Call::EpollWait { epoll, most, .. } => {
            Call::EpollWait { epoll: *epoll, most: *most, time_out: NO_TIME }
        }
        _ => return None,
    })
}

/// Interprets the result of the non-blocking form of `call`.
fn judge(call: Call, returned: Returned) -> Attempt {
    let nothing = match (&call, &returned.value) {
        (Call::Receive { .. } | Call::Send { .. }, value) => *value == Err(Errno::EAGAIN),
        (_, value) => *value == Ok(0),
    };
    match (call, &returned.value) {
        (call, _) if nothing => Attempt::Blocks(BlockedCall { call, sent: 0 }),
        (Call::Send { fd, with, flags }, Ok(sent)) => {
            let bytes = with.pieces.concat();
            match bytes.get(*sent as usize..).filter(|rest| !rest.is_empty()) {
                None => Attempt::Done(returned),
                Some(rest) => {
                    let with = Writing { pieces: vec![rest.to_vec()], ..with };
                    Attempt::Blocks(BlockedCall {
                        call: Call::Send { fd, with, flags },
                        sent: *sent,
                    })
                }
            }
        }
        _ => Attempt::Done(returned),
    }
}

fn blocks(descriptor: &Descriptor) -> io::Result<bool> {
    Ok(!fcntl_getfl(descriptor)?.contains(OFlags::NONBLOCK))
}

fn is_readable(descriptor: &Descriptor) -> io::Result<bool> {
    let mut fds = [PollFd::new(descriptor, PollFlags::IN)];
    Ok(poll(&mut fds, Some(&Timespec::default()))? > 0)
}

const NO_TIME: TimeOut = TimeOut::After(Duration::ZERO);
