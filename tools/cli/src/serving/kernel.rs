//! The servers on the kernel's sockets: the baseline to compare with.

use std::io;
use std::time::Duration;

use whimbrel_apps::Model;
use whimbrel_base::Instant;
use whimbrel_io::poll::{Interest, PollFd, ppoll};

use super::answers::{self, Answer};
use super::draining::QUIET;
use super::port::{BUDGET, Dates};
use super::server::Server;
use super::supervision::Duty;
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
    let ServeControl { mut report, stop, clock, supervision, signals } = reporter;
    let mut server = Server::open(plan)?;
    // On failure it accepts fewer, and reports that.
    let _as_it_is = whimbrel_io::descriptors::raise_limit();
    let mut net = KernelNet::new().map_err(Failure::run)?;
    listen(plan, &mut net)?;
    report.begin(plan, "the kernel's sockets");
    supervision.manager.ready();
    let (mut dates, mut drain) = (Dates::default(), None::<Drain>);
    loop {
        if drain.is_none() && stop.is_set() {
            if !plan.drains(signals) {
                break;
            }
            supervision.manager.stopping("draining");
            while server.poll(&mut net, clock.now(), BUDGET) {}
            net.close_listeners();
            server.drain();
            drain = Some(Drain::new(clock.now(), plan.drain));
        }
        if let Some(drain) = &mut drain
            && drain.is_over(&mut server, &mut net, clock.now())
        {
            break;
        }
        let now = clock.now();
        dates.refresh(now, |date| server.set_date(date));
        let more = server.poll(&mut net, now, BUDGET);
        net.check().map_err(Failure::run)?;
        server.take_news().inspect(|news| report.tell(news));
        report.tick(now, || Totals::of(server.statistics(), None));
        if !more {
            let next =
                [server.next_deadline(), report.next_line(), drain.as_ref().map(|it| it.sweep)];
            let next = next.into_iter().flatten().min().map(|next| clock.until(next));
            let patience = supervision.patience(clock);
            let timeout = [next, net.patience(), patience].into_iter().flatten().min();
            let [asked, hangup] = supervision.fds();
            let ends = PollFd::new(stop, Interest::Read);
            let mut fds = [asked, hangup, PollFd::new(&net, Interest::Read), ends];
            // During a drain the signal stays readable.
            let awaited = if drain.is_some() { &mut fds[..3] } else { &mut fds[..] };
            ppoll(awaited, timeout).map_err(Failure::run)?;
            let (asked, hangup) = (fds[0].is_readable(), fds[1].is_readable());
            let answer = || Answer::of(Totals::of(server.statistics(), None), None);
            match supervision.duty(asked, hangup, clock)? {
                Duty::Nothing => {}
                Duty::Status => answers::tell(clock.now(), &answer(), plan.log.as_ref()),
                Duty::Reload => supervision.reload(plan.log.as_ref()),
                Duty::SignOfLife => answer().give(&mut supervision.manager, clock.now()),
            }
        }
    }
    if drain.is_none() {
        supervision.manager.stopping("ending");
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

/// Listens at the sockets that the service manager passed, or at those of the plan.
fn listen(plan: &ServePlan, net: &mut KernelNet) -> Result<(), Failure> {
    let passed = super::passed::sockets()?;
    if !passed.is_empty() {
        let adopt = |socket| net.adopt_listener(socket).map(drop);
        return passed.into_iter().try_for_each(adopt).map_err(|error| {
            Failure::run(format!("LISTEN_FDS: {error}; use ListenStream= and Accept=no"))
        });
    }
    for at in &plan.listen {
        net.listen(*at, plan.backlog).map_err(|error| refused(&error, &at.to_string()))?;
    }
    Ok(())
}

/// A drain after SIGTERM.
struct Drain {
    /// When connections between requests are closed next.
    sweep: Instant,
    until: Instant,
}

impl Drain {
    fn new(now: Instant, time: Duration) -> Self {
        Self { sweep: now + QUIET, until: now + time }
    }

    /// True if the last connection has ended, or the time is over. Closes connections between requests.
    fn is_over(
        &mut self,
        server: &mut Server<KernelNet>,
        net: &mut KernelNet,
        now: Instant,
    ) -> bool {
        if now >= self.sweep {
            server.close_idle(net);
            self.sweep = (now + QUIET).min(self.until);
        }
        server.statistics().open == 0 || now >= self.until
    }
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
