//! Connections to any destination, on their shard's thread: pending decisions and results.

use std::collections::BTreeMap;
use std::io;

use tokio::sync::oneshot;
use whimbrel_stack::{Answer, ListenerId, Shard, SynHandle, SynRequest, Withdrawal};
use whimbrel_wire::Flow;

use crate::cell::Settings;
use crate::dials::{AnyEnd, AnyRequest, Decision, Dial, OpenedSender};
use crate::fault;
use crate::waiters::deliver;

/// The listener for any destination, if there is one, and its pending connections.
#[derive(Default, Debug)]
pub(crate) struct AnyPort {
    listening: Option<(ListenerId, AnyEnd)>,
    asked: BTreeMap<SynHandle, Waiting>,
}

/// An accepted SYN whose handshake is not complete.
#[derive(Debug)]
struct Waiting {
    withdrawn: oneshot::Sender<Withdrawal>,
    opened: Option<OpenedSender>,
    flow: Flow,
}

impl AnyPort {
    /// Returns the number of listeners, 0 or 1.
    pub(crate) const fn len(&self) -> usize {
        self.listening.is_some() as usize
    }

    pub(crate) fn process_request(&mut self, shard: &mut Shard, request: AnyRequest) {
        match request {
            AnyRequest::Listen(end) => {
                let listening = shard.listen_any();
                debug_assert!(listening.is_ok(), "the table of what is bound grants one");
                self.listening = listening.ok().map(|id| (id, end));
            }
            AnyRequest::Room => self.ask(shard),
            AnyRequest::Decide(decision) => self.decide(shard, decision),
            AnyRequest::Close => {
                if let Some((id, _)) = self.listening.take() {
                    shard.close_listener(id);
                }
            }
        }
    }

    /// Sends SYNs to the listener, as many as it has room for; the shard keeps the others. If the
    /// listener is closed but its [`Incoming`](crate::Incoming) are held, they are refused.
    pub(crate) fn ask(&mut self, shard: &mut Shard) {
        let Some((id, end)) = &self.listening else { return };
        while let Some(place) = end.place() {
            let Some(asked) = shard.asked(*id) else { return };
            let SynRequest { syn, flow } = asked;
            let (withdrawn, tells) = oneshot::channel();
            self.asked.insert(syn, Waiting { withdrawn, opened: None, flow });
            place.send(Dial { asked, shard: end.shard, withdrawn: tells });
        }
        while end.queue.is_closed()
            && let Some(asked) = shard.asked(*id)
        {
            shard.answer_syn(asked.syn, Answer::Reset);
        }
    }

    fn decide(&mut self, shard: &mut Shard, decision: Decision) {
        let Decision { syn, answer, opened } = decision;
        // If the SYN is gone, the listener gets the reason by its event.
        if !shard.answer_syn(syn, answer) {
            return;
        }
        match (opened, self.asked.get_mut(&syn)) {
            (Some(opened), Some(waiting)) => waiting.opened = Some(opened),
            _ => drop(self.asked.remove(&syn)),
        }
    }

    /// Returns the receiver of a completed handshake and the settings of its stream; `None` if the
    /// receiver has gone.
    pub(crate) fn on_opened(&mut self, syn: SynHandle) -> Option<(OpenedSender, Settings)> {
        let opened = self.asked.remove(&syn)?.opened?;
        let (_, end) = self.listening.as_ref()?;
        (!opened.is_closed()).then_some((opened, end.settings))
    }

    pub(crate) fn on_withdrawn(&mut self, syn: SynHandle, why: Withdrawal) {
        let Some(Waiting { withdrawn, opened, flow }) = self.asked.remove(&syn) else { return };
        // The receiver may have gone.
        deliver(withdrawn, why);
        if let Some(opened) = opened {
            deliver(opened, Err(fault::withdrawn(why, flow.remote)));
        }
    }

    /// Reports the end of the stack to all receivers.
    pub(crate) fn end(&mut self, ended: impl Fn() -> io::Error) {
        self.listening = None;
        for waiting in std::mem::take(&mut self.asked).into_values() {
            if let Some(opened) = waiting.opened {
                deliver(opened, Err(ended()));
            }
        }
    }
}
