//! A client that runs one short connection after the other.

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::shard::ConfigError;
use whimbrel_stack::{Event, Handle, Recv, RxFrame, Shard, TxBatch};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

use super::{Frames, Inboxes, PORT, SERVER, take_all};

/// A client host, on the thread that serves it.
pub(super) struct Client {
    shard: Shard,
    batch: TxBatch,
    thread: usize,
    /// Local addresses. Each has its own ports towards the server, which rest after use.
    sources: Vec<Address>,
    next: usize,
    /// Queries under way.
    open: usize,
    asked: Frames,
    heard: Frames,
    queries: u64,
    failed: u64,
}

impl Client {
    pub(super) fn new(thread: usize) -> Result<Self, ConfigError> {
        let of = |source| Address::from_v4_bytes([10, thread as u8 + 1, 0, source]);
        let sources: Vec<_> = (1..=SOURCES).map(of).collect();
        let tunables = Tunables { port_first: 1_024, port_last: 65_535, ..Tunables::default() };
        Ok(Self {
            shard: super::shard(&tunables, sources.clone(), 2 + thread as u64)?,
            batch: TxBatch::new(BATCH),
            thread,
            sources,
            next: 0,
            open: 0,
            asked: Frames::default(),
            heard: Frames::default(),
            queries: 0,
            failed: 0,
        })
    }

    /// Resets the counts.
    pub(super) fn forget_counts(&mut self) {
        (self.queries, self.failed) = (0, 0);
    }

    /// Returns the numbers of answered and of failed queries.
    pub(super) fn counted(&self) -> (u64, u64) {
        (self.queries, self.failed)
    }

    /// Starts queries up to the limit.
    pub(super) fn ask(&mut self, now: Instant) {
        while self.shard.advance(now, BATCH) {}
        while self.open < AT_A_TIME {
            let source = self.sources[self.next % self.sources.len()];
            self.next += 1;
            let local = Some(Endpoint::new(source, 0));
            match self.shard.connect(Endpoint::new(SERVER, PORT), local) {
                Ok(_) => self.open += 1,
                Err(_) => {
                    self.failed += 1;
                    break;
                }
            }
        }
        self.asked.clear();
        take_all(&mut self.shard, &mut self.batch, &mut self.asked);
    }

    /// Returns the frames for the server.
    pub(super) fn asked(&self) -> impl Iterator<Item = &[u8]> {
        self.asked.iter()
    }

    /// Processes the frames that arrived for it.
    pub(super) fn hear(&mut self, now: Instant, inboxes: &Inboxes) {
        self.heard.clear();
        inboxes.take(self.thread, &mut self.heard);
        let frames: Vec<_> =
            self.heard.iter().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
        for burst in frames.chunks(BATCH) {
            self.shard.rx(now, burst);
        }
        while let Some(event) = self.shard.poll_event() {
            match event {
                // A finished connection is reported by its own event.
                Event::Connected(handle) => {
                    let _ = self.shard.send(handle, &mut Bytes::from_static(&REQUEST));
                }
                Event::Readable(handle) => self.read(handle),
                Event::Closed(handle, _) => self.end(handle, false),
                _ => {}
            }
        }
    }

    /// Reads the response, and closes first.
    fn read(&mut self, handle: Handle) {
        match self.shard.recv(handle) {
            Recv::Data(answer) if answer == RESPONSE[..] => self.end(handle, true),
            Recv::Pending | Recv::Unknown => {}
            _ => self.end(handle, false),
        }
    }

    fn end(&mut self, handle: Handle, is_answered: bool) {
        self.shard.close(handle);
        self.open -= 1;
        if is_answered {
            self.queries += 1;
        } else {
            self.failed += 1;
        }
    }
}

/// Text of a request; its response has the same length.
const REQUEST: [u8; 64] = [b'?'; 64];
pub(super) const RESPONSE: [u8; 256] = [b'!'; 256];
/// Queries of a client under way at a time.
const AT_A_TIME: usize = 32;
pub(super) const BATCH: usize = 256;
/// Number of addresses. With two million ports no query waits for one within 60 s at 30,000 queries
/// a second.
const SOURCES: u8 = 32;
