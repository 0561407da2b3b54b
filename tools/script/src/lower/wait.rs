//! `poll` and `epoll`.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_posix::{EpollEvents, EpollOp, PollEvents};

use super::{LowerError, args, host_fd};
use crate::ast::{Arg, CallStep};
use crate::call::{Call, Polled, TimeOut};
use crate::lower_error::{invalid, unsupported};
use crate::names::Names;
use crate::value::{bits, check_fields, field, fields, int, number};

pub(super) fn lower(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    match step.name.as_str() {
        "poll" => poll(step, names),
        "epoll_create" => {
            let [_size] = args(step)?;
            Ok(Call::EpollCreate)
        }
        "epoll_create1" => {
            let [flags] = args(step)?;
            match number(flags)? {
                0 => Ok(Call::EpollCreate),
                _ => Err(unsupported("a flag of epoll_create1")),
            }
        }
        "epoll_ctl" => control(step, names),
        _ => wait(step, names),
    }
}

fn poll(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let [list, count, time_out] = args(step)?;
    let Arg::List(list) = list else { return Err(invalid("poll takes a list of descriptors")) };
    if usize::try_from(number(count)?) != Ok(list.len()) {
        return Err(unsupported("poll of another number of descriptors than are written"));
    }
    let fds = list.iter().map(|entry| polled(entry, names)).collect::<Result<Vec<_>, _>>()?;
    Ok(Call::Poll { fds, time_out: read_time_out(time_out)? })
}

fn polled(entry: &Arg, names: &Names) -> Result<Polled, LowerError> {
    let entry = fields(entry)?;
    check_fields(entry, &["fd", "events", "revents"])?;
    let fd = field(entry, &["fd"]).ok_or_else(|| invalid("poll of no descriptor"))?;
    let events = field(entry, &["events"]).map_or(Ok(0), bits)?;
    match field(entry, &["revents"]) {
        None | Some(Arg::Ellipsis) => {}
        Some(revents) => drop(bits(revents)?),
    }
    Ok(Polled {
        fd: host_fd(fd, names)?,
        events: PollEvents::from_bits(events),
        revents: PollEvents::NONE,
    })
}

fn control(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let [epoll, op, fd, event] = args(step)?;
    let op = EpollOp::by_number(int(op)?).ok_or_else(|| unsupported("this of epoll_ctl"))?;
    let (events, data) = match event {
        // Deletion has no event.
        Arg::Ellipsis | Arg::Name(_) | Arg::Int(0) => (EpollEvents::NONE, 0),
        event => read_event(event)?,
    };
    let (epoll, fd) = (host_fd(epoll, names)?, host_fd(fd, names)?);
    Ok(Call::EpollCtl { epoll, op, fd, events, data })
}

/// `{events=…, fd=4}`. The data belongs to the script: a descriptor in it is the script's number.
pub(crate) fn read_event(event: &Arg) -> Result<(EpollEvents, u64), LowerError> {
    let event = fields(event)?;
    let data: &[&str] = &["fd", "ptr", "u32", "u64", "data"];
    check_fields(event, &[&["events"], data].concat())?;
    let events = field(event, &["events"]).map_or(Ok(0), bits)?;
    let data = field(event, data).map_or(Ok(0), number)?;
    Ok((EpollEvents::from_bits(events), data.cast_unsigned()))
}

fn wait(step: &CallStep, names: &Names) -> Result<Call, LowerError> {
    let [epoll, _, most, time_out] = args(step)?;
    let written = number(most)?;
    let most = u32::try_from(written)
        .map_err(|_| unsupported(&format!("epoll_wait for {written} events")))?;
    for event in expected_events(step) {
        read_event(event)?;
    }
    Ok(Call::EpollWait { epoll: host_fd(epoll, names)?, most, time_out: read_time_out(time_out)? })
}

/// Expected events of `epoll_wait`, if written: one, or a list.
pub(crate) fn expected_events(step: &CallStep) -> &[Arg] {
    match step.args.get(1) {
        None | Some(Arg::Ellipsis) => &[],
        Some(Arg::List(list)) => match list.as_slice() {
            [Arg::Ellipsis] => &[],
            list => list,
        },
        Some(one) => core::slice::from_ref(one),
    }
}

fn read_time_out(arg: &Arg) -> Result<TimeOut, LowerError> {
    let millis = int(arg)?;
    Ok(u64::try_from(millis)
        .map_or(TimeOut::Never, |millis| TimeOut::After(Duration::from_millis(millis))))
}
