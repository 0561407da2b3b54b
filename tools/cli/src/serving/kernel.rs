//! The servers on the kernel's sockets: the baseline to compare with.

use std::io;

use whimbrel_apps::Model;
use whimbrel_io::poll::{Interest, PollFd, ppoll};

use super::answers::{self, Answer};
use super::port::{BUDGET, Dates};
use super::server::Server;
use super::totals::Totals;
use super::{ServeControl, ServePlan, Served};
use crate::drive::{FinishedRun, KernelNet};
use crate::failure::Failure;
use crate::need::Need;

/// Serves until it is stopped.
pub(super) fn serve(
    plan: &ServePlan,
    reporter: ServeControl<'_>,
) -> Result<FinishedRun<Served>, Failure> {
    let ServeControl { mut report, stop, clock, question } = reporter;
    let mut server = Server::open(plan)?;
    // On failure it accepts fewer, and reports that.
    let _as_it_is = whimbrel_io::descriptors::raise_limit();
    let mut net = KernelNet::new().map_err(Failure::run)?;
    for at in &plan.listen {
        net.listen(*at, plan.backlog).map_err(|error| refused(&error, &at.to_string()))?;
    }
    report.begin(plan, "the kernel's sockets");
    let mut dates = Dates::default();
    while !stop.is_set() {
        let now = clock.now();
        dates.refresh(now, |date| server.set_date(date));
        let more = server.poll(&mut net, now, BUDGET);
        net.check().map_err(Failure::run)?;
        server.take_news().inspect(|news| report.tell(news));
        report.tick(now, || Totals::of(server.statistics(), None));
        if !more {
            let next = [server.next_deadline(), report.next_line()].into_iter().flatten().min();
            let next = next.map(|next| clock.until(next));
            let timeout = [next, net.patience()].into_iter().flatten().min();
            let mut fds = [
                PollFd::new(question, Interest::Read),
                PollFd::new(&net, Interest::Read),
                PollFd::new(stop, Interest::Read),
            ];
            ppoll(&mut fds, timeout).map_err(Failure::run)?;
            if fds[0].is_readable() {
                question.take().map_err(Failure::run)?;
                let totals = Totals::of(server.statistics(), None);
                answers::tell(clock.now(), &Answer::of(totals, None), plan.log.as_ref());
            }
        }
    }
    server.shut_down(&mut net);
    server.let_go(&mut net, clock.now());
    server.take_news().inspect(|news| report.tell(news));
    let totals = Totals::of(server.statistics(), None);
    Ok(FinishedRun::over_the_kernel(
        Served { report: Some(report), totals, replayed: None },
        plan.target(),
    ))
}

fn refused(error: &io::Error, at: &str) -> Failure {
    match error.kind() {
        io::ErrorKind::AddrInUse => Failure::run(format!(
            "address in use: another program listens at {at}; choose another port with --listen"
        )),
        io::ErrorKind::PermissionDenied => Failure::Missing {
            text: format!(
                "no privilege to listen at {at}: use a port from 1024 on, or run with \
                 CAP_NET_BIND_SERVICE"
            ),
            needs: &[Need::LowPorts],
        },
        io::ErrorKind::AddrNotAvailable => Failure::run(format!(
            "{at} is not an address of this machine: use one of its addresses, or 0.0.0.0"
        )),
        _ => Failure::run(format!("cannot listen at {at}: {error}")),
    }
}
