//! One connection of the server: bytes in, bytes out.
//!
//! A [`Connection`] has one thing to do at a time, which [`Connection::poll`] returns: send bytes,
//! get more input, close. Its driver reads input only on request, so a request waits while the
//! response before it cannot be sent. That bounds the memory of a connection: a partial head
//! ([`Limits::head`]), one piece of input, one piece of output ([`Limits::piece`]).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::task::Waker;

use bytes::Bytes;

use super::body::BodyReader;
use super::chunked::BodyPart;
use super::fault::Fault;
use super::head::{self, field_room};
use super::response::ConnectionOption;
use super::scan::HeadBuffer;
use super::{
    Body, BodySource, CloseBy, Framing, Limits, Method, Request, Response, SiteResponse,
    exchange_log,
};
use super::{LongAnswer, ServerSettings, Site, SourceError, Status, Upload, Version};
use crate::effort::TurnBudget;
use crate::source::Source;

/// The state of one connection.
#[derive(Default)]
pub struct Connection {
    input: Bytes,
    /// True if the peer closed its direction: `input` has the last bytes.
    ended: bool,
    head: HeadBuffer,
    stage: RequestStage,
    responses: u64,
    /// The status of the last response begun.
    last_status: Option<Status>,
    /// The exchange under way and the one that ended last, if there is a log.
    under_way: Option<Box<exchange_log::LoggedExchange>>,
    ended_last: Option<Box<exchange_log::LoggedExchange>>,
}

/// The client of a connection, as its driver knows it.
pub trait Client {
    /// Bytes that the transport takes at once.
    fn room(&self) -> usize;

    /// Source of its requests.
    fn source(&self) -> Source;

    /// Makes a waker that has the driver poll this connection again.
    fn waker(&self) -> Waker;
}

/// A client whose driver polls in any case, and sends all at once.
struct SoleClient;

impl Client for SoleClient {
    fn room(&self) -> usize {
        usize::MAX
    }

    fn source(&self) -> Source {
        Source::default()
    }

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }
}

/// Next action of the driver.
#[derive(PartialEq, Eq, Debug)]
pub enum Step {
    /// Send these bytes; never empty.
    Send(Bytes),
    /// Give input by [`Connection::on_bytes`] or [`Connection::on_end`]; nothing else can happen
    /// until then.
    NeedInput,
    /// Long work is next, but not in this turn: poll again in its turn.
    Later,
    /// Close this side's direction, and go on polling and reading.
    Shutdown,
    /// Close: everything was sent.
    Close,
    /// Reset: the promised rest cannot be sent.
    Abort,
}

#[derive(Default)]
enum RequestStage {
    /// Between requests, or within a head.
    #[default]
    Head,
    /// The body is being received.
    Upload { body: BodyReader, upload: Box<dyn Upload>, exchange: Exchange, go_ahead: GoAhead },
    /// The response is long work.
    Long { work: Box<dyn LongAnswer>, exchange: Exchange, after: After },
    /// The response is being sent.
    Reply { head: Bytes, body: OutgoingBody, after: After },
    /// Reads and discards the rest of an unwanted body.
    Discard { body: BodyReader },
    /// The last response was sent: reads on, so that a reset does not overtake it.
    Linger { left: u64, shut: Shut },
    /// Everything was sent and read; one step is left.
    Done { step: Last },
}

/// Data that the response depends on, kept while the body arrives.
#[derive(Clone, Copy)]
struct Exchange {
    version: Version,
    persistent: bool,
    head_only: bool,
}

#[derive(Clone, Copy)]
enum GoAhead {
    Awaited,
    NotAwaited,
}

enum OutgoingBody {
    Nothing,
    Bytes(Bytes),
    Source { left: u64, source: Box<dyn BodySource> },
}

/// Next stage after a response.
enum After {
    Next,
    Discard(BodyReader),
    Close,
    /// Closes after the rest of the peer's data.
    Linger,
}

#[derive(Clone, Copy)]
enum Shut {
    /// This direction is still to be closed.
    Due,
    /// It is closed, or must not be before the peer's.
    Not,
}

#[derive(Clone, Copy)]
enum Last {
    Close,
    /// Closes in any case: the connection lingered for long enough.
    Leave,
    Abort,
}

/// A step for the driver, or `None` after a change of stage.
type Progress = Option<Step>;

impl Connection {
    /// A connection that has just been opened.
    pub fn new() -> Self {
        Self::default()
    }

    /// True if it is between requests: closing it now loses nothing.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, RequestStage::Head) && self.input.is_empty() && self.head.is_empty()
    }

    /// True if part of a request's head has arrived.
    pub fn is_within_head(&self) -> bool {
        matches!(self.stage, RequestStage::Head) && !self.head.is_empty()
    }

    /// True if there is nothing more to send or to read.
    pub const fn is_over(&self) -> bool {
        matches!(self.stage, RequestStage::Linger { .. } | RequestStage::Done { .. })
    }

    /// Responses begun so far.
    pub const fn responses(&self) -> u64 {
        self.responses
    }

    /// The status of the last response begun.
    pub const fn last_status(&self) -> Option<Status> {
        self.last_status
    }

    /// The log entry of the exchange under way.
    pub fn under_way(&mut self) -> Option<&mut exchange_log::LoggedExchange> {
        self.under_way.as_deref_mut()
    }

    /// The log entry of the exchange that ended since the last call.
    pub fn take_ended(&mut self) -> Option<Box<exchange_log::LoggedExchange>> {
        self.ended_last.take()
    }

    /// Takes bytes that arrived. Call it after [`Step::NeedInput`].
    pub fn on_bytes(&mut self, bytes: Bytes) {
        debug_assert!(self.input.is_empty(), "input is given when it is asked for");
        self.input = bytes;
    }

    /// Notes that the peer closed its direction.
    pub fn on_end(&mut self) {
        self.ended = true;
    }

    /// Handles silence of [`Limits::idle`]. Sends 408 if a request had begun.
    pub fn on_silence(&mut self, terms: &ServerSettings) {
        let mid_request =
            matches!(self.stage, RequestStage::Upload { .. }) || !self.head.is_empty();
        if mid_request {
            self.refuse(Fault::TooSlow, terms);
        } else if matches!(self.stage, RequestStage::Linger { .. }) {
            self.stage = RequestStage::Done { step: Last::Leave };
        } else {
            let step = if self.is_idle() { Last::Close } else { Last::Abort };
            self.stage = RequestStage::Done { step };
        }
    }

    /// Handles a head that took longer than [`Limits::head_time`]: sends 408 and closes.
    pub fn on_late_head(&mut self, terms: &ServerSettings) {
        self.refuse(Fault::HeadTooSlow, terms);
    }

    /// Handles a peer that took nothing of a response for [`Limits::idle`].
    pub fn on_stall(&mut self) {
        self.stage = RequestStage::Done { step: Last::Abort };
    }

    /// Handles input after [`Step::Close`]: reads on for a while, because closing now would reset
    /// the connection. Once the limit for that is reached, the input is discarded.
    pub fn on_late_bytes(&mut self, bytes: Bytes, terms: &ServerSettings) {
        if !matches!(self.stage, RequestStage::Done { step: Last::Leave }) {
            self.stage = RequestStage::Linger { left: terms.limits.linger, shut: Shut::Due };
            self.on_bytes(bytes);
        }
    }

    /// Returns the next step without a limit of work. `site` answers requests.
    pub fn poll(&mut self, site: &mut impl Site, terms: &ServerSettings) -> Step {
        self.poll_within(site, terms, &mut TurnBudget::unbounded(), &SoleClient)
    }

    /// Returns the next step within a turn's `effort`. Of a body at most the client's room is made, or
    /// 1 KiB.
    pub fn poll_within(
        &mut self,
        site: &mut impl Site,
        terms: &ServerSettings,
        effort: &mut TurnBudget,
        client: &impl Client,
    ) -> Step {
        // Each pass consumes input or advances the exchange, and input is bounded, so this loop
        // ends.
        loop {
            let progress = match &mut self.stage {
                RequestStage::Head => self.poll_head(site, terms, effort, client),
                RequestStage::Upload { .. } => self.poll_upload(terms),
                RequestStage::Long { .. } => self.poll_long(terms, effort),
                RequestStage::Reply { .. } => self.poll_reply(terms, effort, || client.room()),
                RequestStage::Discard { .. } => self.poll_discard(),
                RequestStage::Linger { .. } => self.poll_linger(),
                RequestStage::Done { step: Last::Close | Last::Leave } => Some(Step::Close),
                RequestStage::Done { step: Last::Abort } => Some(Step::Abort),
            };
            if let Some(step) = progress {
                return step;
            }
        }
    }

    fn poll_head(
        &mut self,
        site: &mut impl Site,
        terms: &ServerSettings,
        effort: &mut TurnBudget,
        client: &impl Client,
    ) -> Progress {
        if self.input.is_empty() {
            return self.poll_end_between(terms);
        }
        match self.head.take(&mut self.input, terms.limits.head) {
            Ok(None) => self.poll_end_between(terms),
            Ok(Some(head)) => {
                if terms.keeps_log {
                    self.under_way = Some(Box::new(exchange_log::LoggedExchange::of(&head)));
                }
                if site.cost() > 0 {
                    effort.spend(site.cost() + SCRUTINY * head.len() as u64);
                }
                if let Err(fault) = self.begin(&head, client, site, terms) {
                    self.refuse(fault, terms);
                }
                None
            }
            Err(fault) => {
                self.refuse(fault, terms);
                None
            }
        }
    }

    fn poll_end_between(&mut self, terms: &ServerSettings) -> Progress {
        if !self.ended {
            return Some(Step::NeedInput);
        }
        if self.head.is_empty() {
            self.stage = RequestStage::Done { step: Last::Close };
        } else {
            self.refuse(Fault::CutShort, terms);
        }
        None
    }

    /// Passes a complete head to the site.
    fn begin(
        &mut self,
        head: &[u8],
        client: &impl Client,
        site: &mut impl Site,
        terms: &ServerSettings,
    ) -> Result<(), Fault> {
        let mut room = field_room();
        let mut request = head::parse(head, &mut room)?;
        if site.cost() > 0 {
            request = Request { at_once: client.room(), source: client.source(), ..request };
        }
        let body = BodyReader::new(request.framing, terms.limits.body)?;
        let exchange = Exchange {
            version: request.version,
            persistent: request.persistent
                && terms.limits.keep_alive.goes_on_after(self.responses + 1),
            head_only: request.method == Method::Head,
        };
        match site.respond(&request) {
            SiteResponse::Upload(mut upload) => {
                upload.watch(&client.waker());
                let awaited = request.expects_continue && !body.is_complete();
                let go_ahead = if awaited { GoAhead::Awaited } else { GoAhead::NotAwaited };
                self.stage = RequestStage::Upload { body, upload, exchange, go_ahead };
            }
            SiteResponse::Response(response) => {
                let after = judge_rest(&request, body, &terms.limits);
                self.reply(response, exchange, after, terms);
            }
            SiteResponse::Long(work) => {
                let after = judge_rest(&request, body, &terms.limits);
                self.stage = RequestStage::Long { work, exchange, after };
            }
        }
        Ok(())
    }

    fn poll_long(&mut self, terms: &ServerSettings, effort: &mut TurnBudget) -> Progress {
        if !effort.begin_long() {
            return Some(Step::Later);
        }
        if let RequestStage::Long { work, exchange, after } = core::mem::take(&mut self.stage) {
            self.reply(work.make(), exchange, after, terms);
        }
        None
    }

    fn poll_upload(&mut self, terms: &ServerSettings) -> Progress {
        let RequestStage::Upload { body, upload, go_ahead, .. } = &mut self.stage else {
            return None;
        };
        if let Some(response) = upload.displaced() {
            self.reply_and_part(response, terms);
            return None;
        }
        if let GoAhead::Awaited = go_ahead {
            *go_ahead = GoAhead::NotAwaited;
            return Some(Step::Send(Bytes::from_static(b"HTTP/1.1 100 Continue\r\n\r\n")));
        }
        let fault = match body.next(&mut self.input) {
            Ok(BodyPart::Data(bytes)) => match upload.write(&bytes) {
                Ok(()) => return None,
                Err(response) => {
                    self.reply_and_part(response, terms);
                    return None;
                }
            },
            Ok(BodyPart::End) => {
                self.finish_upload(terms);
                return None;
            }
            Ok(BodyPart::More) if !self.ended => return Some(Step::NeedInput),
            Ok(BodyPart::More) => Fault::CutShort,
            Err(fault) => fault,
        };
        self.refuse(fault, terms);
        None
    }

    fn finish_upload(&mut self, terms: &ServerSettings) {
        if let RequestStage::Upload { upload, exchange, .. } = core::mem::take(&mut self.stage) {
            let response = upload.finish();
            self.reply(response, exchange, After::Next, terms);
        }
    }

    fn poll_reply(
        &mut self,
        terms: &ServerSettings,
        effort: &mut TurnBudget,
        room: impl Fn() -> usize,
    ) -> Progress {
        let RequestStage::Reply { head, body, after } = &mut self.stage else { return None };
        if !head.is_empty() {
            return Some(Step::Send(core::mem::take(head)));
        }
        if body.is_long() && !effort.begin_long() {
            return Some(Step::Later);
        }
        match body.next(terms.limits.piece, room) {
            Some(Ok(bytes)) => {
                effort.spend(bytes.len() as u64);
                if let Some(exchange) = &mut self.under_way {
                    exchange.sent += bytes.len() as u64;
                }
                return Some(Step::Send(bytes));
            }
            Some(Err(SourceError)) => {
                self.stage = RequestStage::Done { step: Last::Abort };
                return None;
            }
            None => {}
        }
        self.ended_last = self.under_way.take();
        self.stage = match core::mem::replace(after, After::Close) {
            After::Next => RequestStage::Head,
            After::Discard(body) => RequestStage::Discard { body },
            After::Close if terms.limits.close_by == CloseBy::Client => {
                RequestStage::Linger { left: terms.limits.linger, shut: Shut::Not }
            }
            After::Close if self.input.is_empty() => RequestStage::Done { step: Last::Close },
            After::Close | After::Linger => {
                RequestStage::Linger { left: terms.limits.linger, shut: Shut::Due }
            }
        };
        None
    }

    fn poll_discard(&mut self) -> Progress {
        let RequestStage::Discard { body } = &mut self.stage else { return None };
        match body.next(&mut self.input) {
            Ok(BodyPart::Data(_)) => {}
            Ok(BodyPart::End) => self.stage = RequestStage::Head,
            Ok(BodyPart::More) if !self.ended => return Some(Step::NeedInput),
            // The response was sent before the body failed, so the error cannot be reported.
            Ok(BodyPart::More) | Err(_) => self.stage = RequestStage::Done { step: Last::Close },
        }
        None
    }

    fn poll_linger(&mut self) -> Progress {
        let RequestStage::Linger { left, shut } = &mut self.stage else { return None };
        if let Shut::Due = shut {
            *shut = Shut::Not;
            return Some(Step::Shutdown);
        }
        let fresh = core::mem::take(&mut self.input).len() as u64;
        if fresh > *left {
            self.stage = RequestStage::Done { step: Last::Abort };
            return None;
        }
        *left -= fresh;
        if self.ended {
            self.stage = RequestStage::Done { step: Last::Close };
            return None;
        }
        Some(Step::NeedInput)
    }

    /// Refuses a request, and ends the connection.
    fn refuse(&mut self, fault: Fault, terms: &ServerSettings) {
        self.reply_and_part(fault.response(&terms.limits), terms);
    }

    /// Responds in the middle of a request whose rest is not read.
    fn reply_and_part(&mut self, response: Response, terms: &ServerSettings) {
        let exchange = Exchange { version: Version::Http11, persistent: false, head_only: false };
        self.head = HeadBuffer::default();
        self.reply(response, exchange, After::Linger, terms);
    }

    fn reply(
        &mut self,
        response: Response,
        exchange: Exchange,
        after: After,
        terms: &ServerSettings,
    ) {
        let after = match after {
            After::Next if !exchange.persistent => After::Close,
            After::Discard(_) if !exchange.persistent => After::Linger,
            after => after,
        };
        let connection_option = match (&after, exchange.version) {
            (After::Close | After::Linger, _) => ConnectionOption::Ends,
            (_, Version::Http10) => ConnectionOption::Said,
            (_, Version::Http11) => ConnectionOption::Implied,
        };
        self.responses += 1;
        self.last_status = Some(response.status);
        let mut head = Vec::with_capacity(HEAD_ROOM);
        response.write_head(connection_option, terms.date.as_ref(), &mut head);
        if terms.keeps_log {
            // Input that never became a request has no entry yet.
            self.under_way.get_or_insert_default().status = response.status.code;
        }
        let body = match response.body {
            _ if exchange.head_only => OutgoingBody::Nothing,
            Body::Bytes(bytes) if bytes.len() <= SMALL_BODY => {
                head.extend_from_slice(&bytes);
                if let Some(exchange) = &mut self.under_way {
                    exchange.sent = bytes.len() as u64;
                }
                OutgoingBody::Nothing
            }
            Body::Bytes(bytes) => OutgoingBody::Bytes(bytes),
            Body::Source { length, source } => OutgoingBody::Source { left: length, source },
        };
        self.stage = RequestStage::Reply { head: Bytes::from(head), body, after };
    }
}

impl OutgoingBody {
    /// True if the next piece is long work.
    fn is_long(&self) -> bool {
        matches!(self, Self::Source { left: 1.., source } if source.is_long())
    }

    /// The next piece, if there is one; at most `room` bytes are made.
    fn next(
        &mut self,
        at_most: usize,
        room: impl Fn() -> usize,
    ) -> Option<Result<Bytes, SourceError>> {
        match self {
            Self::Nothing | Self::Source { left: 0, .. } => None,
            Self::Bytes(bytes) => {
                let piece = bytes.split_to(bytes.len().min(at_most));
                (!piece.is_empty()).then_some(Ok(piece))
            }
            Self::Source { left, source } => {
                let at_most = at_most.min(room().max(LEAST));
                let at_most = usize::try_from(*left).unwrap_or(usize::MAX).min(at_most);
                let piece = source.read(at_most).and_then(|piece| {
                    let fits = !piece.is_empty() && piece.len() <= at_most;
                    if fits { Ok(piece) } else { Err(SourceError) }
                });
                if let Ok(piece) = &piece {
                    *left -= piece.len() as u64;
                }
                Some(piece)
            }
        }
    }
}

/// Decides about an unwanted body: it is discarded if it is short and certain to arrive.
fn judge_rest(request: &Request<'_>, body: BodyReader, limits: &Limits) -> After {
    match request.framing {
        _ if body.is_complete() => After::Next,
        // The peer may send the body or not, now that it has its response, so the start of the next
        // request is unknown.
        _ if request.expects_continue => After::Linger,
        Framing::Length(length) if length <= limits.discard => After::Discard(body),
        _ => After::Linger,
    }
}

/// Least bytes of a body made at a time: memory for a client that reads nothing.
const LEAST: usize = 1 << 10;
/// Cost of each byte of a head that leads to files: names are cut out, decoded, joined and looked
/// up.
const SCRUTINY: u64 = 16;
/// Size of a usual head.
const HEAD_ROOM: usize = 320;
/// Bodies up to this size, bytes, are copied behind the head: cheaper than one more slice.
const SMALL_BODY: usize = 512;

#[cfg(test)]
mod tests;
