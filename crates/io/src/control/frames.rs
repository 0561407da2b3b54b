//! Captures: the frames of a running stack as pcapng, until the client asks for something else.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use whimbrel_link::filter::Filter;

use super::ControlHost;
use super::ask::ask_captures;
use super::lines::{LineReader, LineWriter};
use super::request::{Refusal, Request};
use crate::tap::FrameQueue;
use crate::{Inspect, Stop};

/// Selection of frames, and the bytes of each.
struct Wanted {
    filter: Option<Filter>,
    snap: usize,
    most: u64,
}

/// A capture of all shards of a host, which ends when it is dropped.
struct Capture<'h> {
    shards: &'h [Arc<dyn Inspect>],
    queue: FrameQueue,
}

/// Sends frames until there are as many as were asked for, the client sends something or leaves, or `stop` is
/// set.
pub(super) fn answer(
    request: &Request,
    host: &ControlHost,
    name: &str,
    reader: &LineReader<'_>,
    writer: &mut LineWriter<'_>,
    stop: &Stop,
) -> io::Result<()> {
    let begun = Wanted::of(request).and_then(|wanted| Capture::begin(host, name, &wanted));
    let (capture, header) = match begun {
        Ok(begun) => begun,
        Err(refusal) => return writer.line(&refusal.answer(&request.id)),
    };
    writer.line(&capture.line(&request.id, &header))?;
    writer.flush()?;
    while !capture.queue.is_full() && !reader.wait(stop, PAUSE)? {
        capture.send(&request.id, writer)?;
    }
    // Frames that were processed before the end belong to it, so each shard is asked to stop.
    let ended = capture.end();
    capture.send(&request.id, writer)?;
    match ended {
        Err(refusal) => writer.line(&refusal.answer(&request.id)),
        Ok(()) => {
            let (frames, dropped) = (capture.queue.frames(), capture.queue.dropped());
            let done = json!({ "frames": frames, "dropped": dropped });
            writer.line(&json!({ "id": request.id, "done": done }))
        }
    }
}

impl<'h> Capture<'h> {
    /// Begins to capture at each shard. Returns the header of the file, too.
    fn begin(
        host: &'h ControlHost,
        name: &str,
        wanted: &Wanted,
    ) -> Result<(Self, Vec<u8>), Refusal> {
        let capture = Self { shards: &host.shards, queue: FrameQueue::new(wanted.most) };
        let mut header = Vec::new();
        for shard in &host.shards {
            let (queue, filter) = (capture.queue.clone(), wanted.filter.clone());
            let (name, snap) = (name.to_owned(), wanted.snap);
            header =
                ask_captures(shard.as_ref(), move |slot| slot.attach(queue, &name, snap, filter))?;
        }
        Ok((capture, header))
    }

    /// Sends what waits, in pieces.
    fn send(&self, id: &Value, writer: &mut LineWriter<'_>) -> io::Result<()> {
        // The kernel takes a line of a piece whole or not at all, so that a slow client is one after a single
        // time-out.
        for piece in self.queue.take() {
            writer.line(&self.line(id, &piece))?;
            writer.flush()?;
        }
        Ok(())
    }

    fn line(&self, id: &Value, pcapng: &[u8]) -> Value {
        let (frames, dropped) = (self.queue.frames(), self.queue.dropped());
        let pcapng = BASE64_STANDARD.encode(pcapng);
        json!({ "id": id, "pcapng": pcapng, "frames": frames, "dropped": dropped })
    }

    /// Ends the capture at each shard, and waits until it has.
    fn end(&self) -> Result<(), Refusal> {
        for shard in self.shards {
            let queue = self.queue.clone();
            ask_captures(shard.as_ref(), move |slot| slot.detach(&queue))?;
        }
        Ok(())
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        for shard in self.shards {
            let queue = self.queue.clone();
            shard.capture(Box::new(move |slot| slot.detach(&queue)));
        }
    }
}

impl Wanted {
    fn of(request: &Request) -> Result<Self, Refusal> {
        request.check_params(&["host", "filter", "snap", "count"])?;
        let filter = request.text("filter")?.map(|text| {
            let parsed = text.parse::<Filter>();
            parsed.map_err(|error| Refusal::new("bad-request", format!("filter: {error}")))
        });
        Ok(Self {
            filter: filter.transpose()?,
            snap: request.number("snap")?.map_or(usize::MAX, |snap| snap as usize),
            most: request.number("count")?.unwrap_or(u64::MAX),
        })
    }
}

/// Longest delay of a frame on its way to the client.
const PAUSE: Duration = Duration::from_millis(20);
