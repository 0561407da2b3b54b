//! Connections that the program opens: each is answered once its counterpart outside is open, or is
//! refused as that was.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};

use whimbrel_io::descriptors;
use whimbrel_stack::ip::Unreachable;
use whimbrel_stack::{Answer, SynHandle};
use whimbrel_wire::Endpoint;

use super::far::FarNet;

/// SYNs of the program that are not answered yet, or whose handshake is under way. A shard holds 4,096.
pub(super) struct Dials<F: FarNet> {
    by_syn: BTreeMap<SynHandle, Dial<F>>,
    /// By the place of the connection that opens for them.
    by_far: BTreeMap<u32, SynHandle>,
}

struct Dial<F: FarNet> {
    far: F::Id,
    /// Places to try after a failure.
    left: VecDeque<Endpoint>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The connection outside opens.
    Opening,
    /// It is open, and so is the program's soon.
    Answered,
}

/// An answer to a SYN, and why it is one that refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decided {
    pub(super) syn: SynHandle,
    pub(super) answer: Answer,
    pub(super) why: Option<&'static str>,
}

impl<F: FarNet> Default for Dials<F> {
    fn default() -> Self {
        Self { by_syn: BTreeMap::new(), by_far: BTreeMap::new() }
    }
}

impl<F: FarNet> Dials<F> {
    /// Begins to connect to the first of these places that can be tried.
    pub(super) fn begin(
        &mut self,
        net: &mut F,
        syn: SynHandle,
        mut places: VecDeque<Endpoint>,
    ) -> Option<Decided> {
        let mut failed = io::Error::from(ErrorKind::HostUnreachable);
        while let Some(place) = places.pop_front() {
            match net.open(place) {
                Ok(far) => {
                    self.by_far.insert(F::place(far), syn);
                    self.by_syn.insert(syn, Dial { far, left: places, stage: Stage::Opening });
                    return None;
                }
                Err(error) => failed = error,
            }
        }
        Some(refusal(syn, &failed))
    }

    /// A connection outside is open. Returns the answer for the SYN that it was opened for.
    pub(super) fn on_open(&mut self, far: F::Id) -> Option<Decided> {
        let syn = *self.by_far.get(&F::place(far))?;
        let dial = self.by_syn.get_mut(&syn).filter(|dial| dial.far == far)?;
        dial.stage = Stage::Answered;
        Some(Decided { syn, answer: Answer::Accept, why: None })
    }

    /// A connection outside failed, before it was open.
    pub(super) fn on_failed(
        &mut self,
        net: &mut F,
        far: F::Id,
        error: &io::Error,
    ) -> Option<Decided> {
        let syn = *self.by_far.get(&F::place(far))?;
        // The place may be another connection's by now.
        self.by_syn.get(&syn).filter(|dial| dial.far == far)?;
        let dial = self.take(syn)?;
        net.abort(far);
        match dial.left.is_empty() {
            true => Some(refusal(syn, error)),
            false => self.begin(net, syn, dial.left),
        }
    }

    /// The program's side is open: returns the connection outside.
    pub(super) fn on_opened(&mut self, syn: SynHandle) -> Option<F::Id> {
        self.take(syn).map(|dial| dial.far)
    }

    /// The program's side is gone.
    pub(super) fn on_withdrawn(&mut self, net: &mut F, syn: SynHandle) {
        if let Some(dial) = self.take(syn) {
            net.abort(dial.far);
        }
    }

    /// Gives up those that are not answered: the program has ended, and waits for none.
    pub(super) fn cut_unanswered(&mut self, net: &mut F) {
        let unanswered =
            |(syn, dial): (&SynHandle, &Dial<F>)| (dial.stage == Stage::Opening).then_some(*syn);
        let cut: Vec<_> = self.by_syn.iter().filter_map(unanswered).collect();
        cut.into_iter().for_each(|syn| self.on_withdrawn(net, syn));
    }

    /// Gives up all.
    pub(super) fn cut(&mut self, net: &mut F) {
        while let Some((syn, _)) = self.by_syn.first_key_value() {
            self.on_withdrawn(net, *syn);
        }
    }

    /// Number of those that wait.
    pub(super) fn len(&self) -> usize {
        self.by_syn.len()
    }

    fn take(&mut self, syn: SynHandle) -> Option<Dial<F>> {
        let dial = self.by_syn.remove(&syn)?;
        self.by_far.remove(&F::place(dial.far));
        Some(dial)
    }
}

/// The answer that tells the program what the machine was told.
fn refusal(syn: SynHandle, error: &io::Error) -> Decided {
    let (answer, why) = match error.kind() {
        _ if descriptors::are_used_up(error) => (Answer::Reset, "no descriptor left"),
        ErrorKind::ConnectionRefused => (Answer::Reset, "connection refused"),
        ErrorKind::ConnectionReset => (Answer::Reset, "connection reset"),
        ErrorKind::NetworkUnreachable => {
            (Answer::Unreachable(Unreachable::Network), "network unreachable")
        }
        ErrorKind::PermissionDenied => (Answer::Unreachable(Unreachable::Prohibited), "forbidden"),
        ErrorKind::TimedOut => (Answer::Ignore, "timed out"),
        ErrorKind::AddrNotAvailable => (Answer::Reset, "no free port"),
        ErrorKind::QuotaExceeded => (Answer::Reset, "too many connections on the wire"),
        _ => (Answer::Unreachable(Unreachable::Host), "host unreachable"),
    };
    Decided { syn, answer, why: Some(why) }
}
