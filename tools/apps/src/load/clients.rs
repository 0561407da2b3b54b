//! Plans that make the load of well-known programs.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use whimbrel_wire::{Address, Endpoint};

use super::{Correction, Ending, Exchange, FastOpen, LoadPlan, ResponseEnd, StopCondition};
use crate::http::Composition;
use crate::http::reply::Expected;

impl LoadPlan {
    /// As wrk: all connections open at once and are kept, and each sends its next request as soon
    /// as it has the response. wrk counts responses that take longer than its time-out, but gives
    /// up none before the end.
    pub fn wrk(connections: u32, lasts: Duration) -> Self {
        let kept = Self::new(Exchange::get(true), connections, lasts);
        Self { ending: Ending::KeepAlive, timeout: FOR_EVER, connect_timeout: FOR_EVER, ..kept }
    }

    /// As oha with --disable-keepalive: a connection for each request, which this side closes.
    pub fn oha_without_keep_alive(connections: u32, lasts: Duration) -> Self {
        Self::new(Exchange::get(false), connections, lasts)
    }

    /// As a load balancer: users arrive evenly, each with a connection of its own, and the server
    /// closes that. As many connections as arrive in a second can be open.
    pub fn balancer(rate: f64, warmup: Duration, lasts: Duration) -> Self {
        let connections = (rate.ceil() as u32).clamp(64, MOST_AT_ONCE);
        let plan = Self::new(Exchange::get(false), connections, lasts);
        Self { rate: Some(rate), ending: Ending::Server, warmup, ..plan }
    }

    /// A plan of one connection for each exchange, which this side closes, with defaults for all
    /// else; the target is set when it is known.
    pub fn new(exchange: Exchange, connections: u32, lasts: Duration) -> Self {
        Self {
            target: Endpoint::new(Address::from_v4_bytes([0; 4]), 0),
            exchange,
            destinations: Vec::new(),
            connections,
            until: StopCondition::Elapsed(lasts),
            rate: None,
            offset: Duration::ZERO,
            ending: Ending::Client,
            timeout: TIMEOUT,
            connect_timeout: TIMEOUT,
            warmup: Duration::ZERO,
            interval: Duration::from_secs(1),
            correction: Correction::On,
            local: Vec::new(),
            fast_open: FastOpen::Off,
        }
    }
}

impl Exchange {
    /// GET of `/`, and its response; the request says if the connection is to be kept.
    pub fn get(persistent: bool) -> Self {
        let composition = Composition {
            method: "GET",
            target: "/",
            host: "whimbrel",
            fields: &[],
            body: &[],
            persistent,
        };
        let request = composition.compose().unwrap_or_else(|_| Bytes::new());
        Self { request, answer: ResponseEnd::Http(Expected::Body) }
    }
}

/// Longer than any run.
const FOR_EVER: Duration = Duration::from_secs(1_000_000);
/// Longest wait of a user.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Most connections at once: at higher rates each is over soon, or all fail.
const MOST_AT_ONCE: u32 = 100_000;
