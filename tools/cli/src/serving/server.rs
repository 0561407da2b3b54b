//! A server of the web, or of plain bytes.

use whimbrel_apps::http::{ExchangeLog, HttpDate, HttpServer};
use whimbrel_apps::{Model, PeerServer, Statistics, Transport, iperf3_server};
use whimbrel_base::Instant;

use super::access_log::AccessLog;
use super::content::Content;
use super::h2::H2Server;
use super::plan::{ContentPlan, Protocol, ServePlan};
use crate::failure::Failure;

/// One of the servers.
pub(crate) enum Server<T: Transport> {
    /// A server of HTTP.
    Http(Box<HttpServer<Content, T>>),
    /// A web server with HTTP/2 as well.
    H2(Box<H2Server<Content, T>>),
    /// A server of bytes.
    Service(Box<PeerServer<T>>),
    /// One of iperf3's tests.
    Iperf3(Box<iperf3_server::Server<T>>),
}

impl<T: Transport> Server<T> {
    /// Opens the server of `plan`, if its content can be read.
    pub(crate) fn open(plan: &ServePlan) -> Result<Self, Failure> {
        let pace = plan.pace.shared_by(plan.setup.shards.into());
        Ok(match &plan.content {
            ContentPlan::Service(role, close_mode) => {
                let server = PeerServer::new(role.clone(), *close_mode);
                Self::Service(Box::new(server.with_pace(pace)))
            }
            ContentPlan::Iperf3(settings) => {
                Self::Iperf3(Box::new(iperf3_server::Server::new(settings.clone())))
            }
            ContentPlan::Web(site, Protocol::H2c) => Self::H2(Box::new(H2Server::new(
                Content::open(site, plan.setup.shards.into())?,
                plan.limits,
                pace,
                plan.log.as_ref().map(|log| [exchange_log(log), exchange_log(log)]),
            ))),
            ContentPlan::Web(site, Protocol::Http1) => {
                let server =
                    HttpServer::new(Content::open(site, plan.setup.shards.into())?, plan.limits);
                let log = plan.log.as_ref().map(exchange_log);
                Self::Http(Box::new(server.with_pace(pace).with_log(log)))
            }
        })
    }

    /// Counts so far.
    pub(crate) fn statistics(&self) -> Statistics {
        match self {
            Self::Http(server) => *server.statistics(),
            Self::H2(server) => server.statistics(),
            Self::Service(server) => *server.statistics(),
            Self::Iperf3(server) => server.statistics(),
        }
    }

    /// Takes extra lines to print since the last call.
    pub(crate) fn take_news(&mut self) -> Option<String> {
        match self {
            Self::Iperf3(server) => server.take_news(),
            Self::Http(_) | Self::H2(_) | Self::Service(_) => None,
        }
    }

    /// The time for the `Date` field, where there is one.
    pub(crate) fn set_date(&mut self, date: HttpDate) {
        match self {
            Self::Http(server) => server.set_date(date),
            Self::H2(server) => server.set_date(date),
            Self::Service(_) | Self::Iperf3(_) => {}
        }
    }

    /// Begins to drain, where the protocol has a way to say so: HTTP ends connections with their next response.
    pub(crate) fn drain(&mut self) {
        match self {
            Self::Http(server) => server.drain(),
            Self::H2(server) => server.drain(),
            Self::Service(_) | Self::Iperf3(_) => {}
        }
    }

    /// Closes connections that wait for a request, where there are requests.
    pub(crate) fn close_idle(&mut self, net: &mut T) {
        match self {
            Self::Http(server) => server.close_idle(net),
            Self::H2(server) => server.close_idle(net),
            Self::Service(_) | Self::Iperf3(_) => {}
        }
    }

    /// Closes all connections.
    pub(crate) fn shut_down(&mut self, net: &mut T) {
        match self {
            Self::Http(server) => server.shut_down(net),
            Self::H2(server) => server.shut_down(net),
            Self::Service(server) => server.shut_down(net),
            Self::Iperf3(server) => server.shut_down(net),
        }
    }

    /// Closes connections that had to send their last bytes first.
    pub(crate) fn let_go(&mut self, net: &mut T, now: Instant) {
        if let Self::Iperf3(server) = self {
            server.close_all(net, now);
        }
    }
}

/// A log as one server writes it.
fn exchange_log(log: &AccessLog) -> Box<dyn ExchangeLog + Send> {
    Box::new(log.clone())
}

impl<T: Transport> Model<T> for Server<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        match self {
            Self::Http(server) => server.poll(net, now, budget),
            Self::H2(server) => Model::poll(server.as_mut(), net, now, budget),
            Self::Service(server) => Model::poll(server.as_mut(), net, now, budget),
            Self::Iperf3(server) => Model::poll(server.as_mut(), net, now, budget),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Http(server) => server.next_deadline(),
            Self::H2(server) => Model::<T>::next_deadline(server.as_ref()),
            Self::Service(server) => Model::<T>::next_deadline(server.as_ref()),
            Self::Iperf3(server) => Model::<T>::next_deadline(server.as_ref()),
        }
    }
}
