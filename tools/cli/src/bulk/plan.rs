//! A typed command becomes a transfer plan: over which wire, with which peer.

use std::num::NonZeroU64;
use std::time::Duration;

use whimbrel_apps::bulk::{self, Direction, Iperf3Params, Peer, StopCondition};
use whimbrel_apps::iperf3 as protocol;
use whimbrel_apps::transport::ConnectOptions;
use whimbrel_io::rules::Rules;
use whimbrel_tcp::conn::Nagle;
use whimbrel_wire::{Endpoint, Family};

use super::{Arguments, BulkDirection, PeerKind, Window, target};
use crate::failure::Failure;
use crate::options::{ClockKind, StackSetup};
use crate::rules::CONGESTION;
use crate::shards::Work;
use crate::{drive, output, proc};

/// A transfer: its streams, its wire, and its output.
pub(super) struct BulkPlan {
    pub(super) setup: StackSetup,
    pub(super) target: Option<Endpoint>,
    /// Value of `--window`.
    pub(super) window: Option<Window>,
    pub(super) bulk: bulk::TransferPlan,
}

impl BulkPlan {
    pub(super) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let family = match (arguments.ipv4, arguments.ipv6) {
            (false, false) => None,
            (ipv4, _) => Some(if ipv4 { Family::V4 } else { Family::V6 }),
        };
        let over_kernel = arguments.is_over_the_kernel();
        let found = |text| target::resolve(text, family, over_kernel);
        let destinations = arguments.target.as_deref().map(found).transpose()?.unwrap_or_default();
        let target = destinations.first().map(|first| first.at);
        let zone = destinations.first().map_or(0, |first| first.zone);
        let work = Work { parts: arguments.parallel.into(), option: "--parallel" };
        let setup =
            arguments.setup.setup(arguments.target.as_deref(), &arguments.shorthands(), work)?;
        let sends = (arguments.way == Some(BulkDirection::Send)) != arguments.reverse;
        let direction = match (arguments.bidir, sends) {
            (true, _) => Direction::Both,
            (false, true) => Direction::Send,
            (false, false) => Direction::Receive,
        };
        let peer = arguments.peer(&setup)?;
        let plain = matches!(peer, Peer::Plain);
        let rates = [("--bitrate", arguments.bitrate), ("--fq-rate", arguments.fq_rate)];
        if let Some((option, _)) = rates.into_iter().find(|(_, rate)| rate.is_some())
            && direction == Direction::Receive
            && plain
        {
            let text = "the other side sends: limit its rate there, or use send";
            return Err(Failure::usage(option, text));
        }
        let is_timed = arguments.bytes.is_none() || arguments.omit.is_some();
        if is_timed && arguments.bitrate.is_none() {
            setup.check_that_time_passes()?;
        }
        let block = usize::try_from(arguments.length).ok().filter(|l| (1..=MOST_BLOCK).contains(l));
        let block = block.ok_or_else(|| Failure::usage("--length", "give 1 to 16M bytes"))?;
        Ok(Self {
            target,
            window: arguments.window,
            bulk: bulk::TransferPlan {
                // The driver finds the address of the other side.
                target: target
                    .unwrap_or(Endpoint::new(whimbrel_wire::Address::from_v4_bytes([0; 4]), 0)),
                destinations,
                direction,
                streams: arguments.parallel,
                until: match (arguments.bytes, arguments.time) {
                    (Some(count), _) => {
                        StopCondition::Bytes(count.div_ceil(arguments.parallel.into()))
                    }
                    (None, time) => StopCondition::Elapsed(time.unwrap_or(DEFAULT_TIME)),
                },
                rate: arguments.bitrate.map(|rate| rate as u64),
                block,
                omit: arguments.omit.unwrap_or_default(),
                interval: arguments.interval,
                timeout: arguments.timeout,
                options: ConnectOptions { zone, ..arguments.options(&setup)? },
                peer,
                effort: if setup.clock == ClockKind::Real { drive::effort } else { || None },
            },
            setup,
        })
    }
}

impl Arguments {
    /// Options of each connection.
    fn options(&self, setup: &StackSetup) -> Result<ConnectOptions, Failure> {
        if let Some(name) = self.congestion.as_ref().filter(|_| setup.wire.is_kernel()) {
            let known = proc::congestion_controls();
            if !known.split(' ').any(|known| known == name) {
                let text = format!("the kernel has no {name:?}: give one of {known}");
                return Err(Failure::usage("--congestion", text));
            }
        }
        let nagle = if self.no_delay { Nagle::Off } else { Nagle::On };
        let congestion = self.congestion.clone();
        let narrow = |Window { send, recv, .. }| {
            Some((u32::try_from(send).ok()?, u32::try_from(recv).ok()?))
        };
        let window = self.window.filter(|_| setup.wire.is_kernel());
        let buffers = window.map(|window| {
            let refused = || Failure::usage("--window", "give at most 2G");
            narrow(window)
                .filter(|(send, recv)| (*send).max(*recv) <= LARGEST_BUFFER)
                .ok_or_else(refused)
        });
        let buffers = buffers.transpose()?;
        Ok(ConnectOptions {
            nagle,
            mss: self.mss,
            congestion,
            buffers,
            max_pacing_rate: self.max_pacing_rate(setup)?,
            ..ConnectOptions::default()
        })
    }

    /// The most bytes per second of each stream's TCP.
    fn max_pacing_rate(&self, setup: &StackSetup) -> Result<Option<NonZeroU64>, Failure> {
        let Some(bits) = self.fq_rate else { return Ok(None) };
        if bits < LEAST_PACING_RATE {
            let text = format!("{bits} bit/s: give at least 32k, two segments in a second");
            return Err(Failure::usage("--fq-rate", text));
        }
        if setup.wire.is_kernel() && bits > MOST_PACING_RATE {
            let text = format!("{bits} bit/s: give at most 34G over kernel:, or leave it out");
            return Err(Failure::usage("--fq-rate", text));
        }
        Ok(NonZeroU64::new((bits / 8.0).ceil() as u64))
    }

    /// Protocol of the other side.
    fn peer(&self, setup: &StackSetup) -> Result<Peer, Failure> {
        let kind = self.peer.unwrap_or(match self.target {
            Some(_) => PeerKind::Iperf3,
            None => PeerKind::Plain,
        });
        if kind == PeerKind::Plain {
            let text = "only an iperf3 server sends its output: leave it out";
            return match self.get_server_output {
                true => Err(Failure::usage("--get-server-output", text)),
                false => Ok(Peer::Plain),
            };
        }
        if setup.shards > 1 {
            let text = "the streams of an iperf3 test run on one shard: use 1, or --peer plain";
            return Err(Failure::usage("--shards", text));
        }
        let congestion = self.congestion.clone().unwrap_or_else(|| match setup.wire.is_kernel() {
            true => proc::congestion_control(),
            false => congestion(&setup.rules),
        });
        let mut cookie = [0; protocol::COOKIE];
        let seed = setup.seed.map_or_else(whimbrel_io::entropy::seed, Ok).map_err(Failure::run)?;
        cookie
            .iter_mut()
            .zip(output::cookie(seed).bytes())
            .for_each(|(place, letter)| *place = letter);
        Ok(Peer::Iperf3(Iperf3Params {
            cookie,
            window: self.window.map(|it| u32::try_from(it.send.max(it.recv)).unwrap_or(u32::MAX)),
            server_output: self.get_server_output,
            congestion,
        }))
    }
}

/// The congestion control of this stack's connections.
pub(super) fn congestion(rules: &Rules) -> String {
    rules.tunables.value_of(CONGESTION).unwrap_or_default()
}

const DEFAULT_TIME: Duration = Duration::from_secs(10);
/// The largest buffer that a socket may request, bytes.
const LARGEST_BUFFER: u32 = 1 << 31;
/// Bits per second: less than two segments in a second are not kept.
const LEAST_PACING_RATE: f64 = 32e3;
/// Bits per second over the kernel, whose SO_MAX_PACING_RATE is set in 32 bits of bytes per second: all ones are no
/// limit.
const MOST_PACING_RATE: f64 = 34e9;
/// The largest block, bytes: it is kept in one piece.
const MOST_BLOCK: usize = 16 << 20;
