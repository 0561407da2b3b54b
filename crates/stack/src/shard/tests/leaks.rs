//! After every test: whatever it left open is aborted, time passes, and nothing remains.

use std::vec::Vec;

use crate::shard::Census;
use crate::{Shard, TxBatch};

/// More than the timers of any test: records, neighbours, fragments, each once or twice.
const MOST_STEPS: usize = 100_000;

impl Drop for Shard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let listeners: Vec<_> =
            self.tcp.passive.listeners.iter().map(|listener| listener.id()).collect();
        listeners.into_iter().for_each(|listener| self.close_listener(listener));
        while let Some(socket) = self.packets.udp.sockets.first() {
            self.udp_close(socket);
        }
        let mut at = 0;
        while let Some(found) = self.tcp.records.connections.0.first_from(at) {
            at = match found {
                Ok((index, _)) => {
                    self.abort_unaccepted(index);
                    index + 1
                }
                Err(next) => next,
            };
        }
        let mut batch = TxBatch::new(64);
        for _ in 0..MOST_STEPS {
            while self.tx(&mut batch) || !batch.is_empty() {
                batch.consume(batch.pending().len());
            }
            while self.poll_event().is_some() || self.poll_ping().is_some() {}
            let Some(next) = self.next_deadline() else { break };
            self.advance(next, 1024);
        }
        assert_eq!(self.census(), Census::default(), "something was left over");
        assert_eq!(self.packets.udp.sockets.memory(), 0, "no datagram waits, no port is taken");
        assert_eq!(self.memory().text, 0, "no text is held, and the account has some");
    }
}
