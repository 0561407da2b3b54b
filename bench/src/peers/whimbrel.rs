//! Whimbrel: two shards in one thread, see [`Churn`].

use whimbrel_base::packet::SegMeta;
use whimbrel_stack::shard::ConnectError;
use whimbrel_stack::{Handle, RxFrame};
use whimbrel_wire::Endpoint;

use super::frames::{Kept, NOT_KEPT, syn};
use super::host::Hosts;
use crate::Failure;
use crate::case::{AT_A_TIME, CHOICE, Case, Kind, PORTS, Tally};
use crate::churn::{Churn, Options, Work, address};

/// Two shards, and the other state of a case.
pub(crate) struct Whimbrel {
    churn: Churn,
    kept: Option<Kept>,
    syns: u32,
}

impl Whimbrel {
    /// Two hosts for this case.
    pub(crate) fn new(case: Case, options: Options) -> Result<Self, Failure> {
        let waiting = match case.kind {
            Kind::Ports | Kind::Few => 0,
            // Records of which the memory is measured outlive the measurement.
            Kind::TimeWait => 2 * case.scale,
            // Idle connections take as many client addresses as waiting ones.
            Kind::Churn | Kind::Syn | Kind::Idle | Kind::Packet | Kind::Burst | Kind::Datagrams => {
                case.scale
            }
        };
        let ports = if case.kind == Kind::Ports { CHOICE } else { PORTS };
        let churn =
            Churn::new(&Work { connections: 1, at_a_time: AT_A_TIME, waiting, options, ports })?;
        let kept = matches!(case.kind, Kind::Packet | Kind::Burst).then(Kept::default);
        Ok(Self { churn, kept, syns: 0 })
    }
}

impl Hosts for Whimbrel {
    type Handle = Handle;

    fn churn(&mut self, connections: u32) -> Result<(), Failure> {
        self.churn.run(connections)
    }

    fn tally(&self) -> Tally {
        self.churn.tally()
    }

    fn waiting(&self) -> Result<u64, Failure> {
        Ok(self.churn.waiting() as u64)
    }

    fn connect(&mut self) -> Result<Option<Handle>, Failure> {
        match self.churn.client.connect(Endpoint::new(address(SILENT), 80), None) {
            Ok(handle) => Ok(Some(handle)),
            Err(ConnectError::PortsExhausted { .. }) => Ok(None),
            Err(other) => Err(other.into()),
        }
    }

    fn abort(&mut self, handle: Handle) -> Result<(), Failure> {
        self.churn.client.abort(handle);
        Ok(())
    }

    fn open_idle(&mut self, count: u32) -> Result<(), Failure> {
        self.churn.open_idle(count, self.kept.as_mut()).map(|_opened| ())
    }

    fn receive_syns(&mut self, count: u32) -> Result<(), Failure> {
        let packets: Vec<_> = (self.syns..self.syns + count).map(syn).collect();
        let frames: Vec<_> = packets.iter().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
        self.churn.server.rx(self.churn.now, &frames);
        self.churn.discard();
        self.syns += count;
        let held = self.churn.server.census().syn_entries;
        if held != self.syns as usize {
            return Err(format!("{held} half-open entries after {} SYNs", self.syns).into());
        }
        Ok(())
    }

    fn stage(&mut self, connections: &[u32]) -> Result<(), Failure> {
        self.kept.as_mut().ok_or(NOT_KEPT)?.stage(connections);
        Ok(())
    }

    fn deliver(&mut self, at_a_time: usize) -> Result<(), Failure> {
        let kept = self.kept.as_ref().ok_or(NOT_KEPT)?;
        let frames: Vec<_> = kept.staged().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
        let before = self.churn.server.counters().accepted_segs;
        for burst in frames.chunks(at_a_time) {
            self.churn.server.rx(self.churn.now, burst);
            self.churn.discard();
        }
        let accepted = self.churn.server.counters().accepted_segs - before;
        if accepted != frames.len() as u64 {
            return Err(format!("{accepted} of {} packets were accepted", frames.len()).into());
        }
        Ok(())
    }
}

/// A host that never answers.
const SILENT: u32 = 0x00ff_ff01;
