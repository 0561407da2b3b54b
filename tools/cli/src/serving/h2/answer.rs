//! A request of HTTP/2 to a site, and the site's answer back.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderName, HeaderValue};
use hyper::service::Service;
use hyper::{Method, Request, Response, StatusCode};
use whimbrel_apps::http::fault::Fault;
use whimbrel_apps::http::{
    self, BodySource, ExchangeLog, Limits, LoggedExchange, Site, SiteResponse, SourceError, Upload,
};
use whimbrel_apps::source::Source;
use whimbrel_base::Instant;
use whimbrel_wire::Endpoint;

use super::long::{LongPlace, LongQueue, LongTurn};
use super::room::{Room, StreamRoom};

/// A site that servers have in common.
pub(super) struct Common<S>(Rc<RefCell<S>>);

/// State shared by the connections of one server.
pub(super) struct Shared<S> {
    site: Common<S>,
    limits: Limits,
    think: Duration,
    now: Cell<Instant>,
    /// Answers that are thought about, by when they are due and by their number.
    thoughts: RefCell<BTreeMap<(Instant, u64), Waker>>,
    /// The number of the next one.
    next_thought: Cell<u64>,
    /// Requests answered, and those among them refused.
    answered: Cell<(u64, u64)>,
    exchange_log: Option<RefCell<Box<dyn ExchangeLog + Send>>>,
    /// Queue of answers, or pieces of them, that are long work.
    pub(super) long: Rc<LongQueue>,
    /// Work done since the request, in units of [`TurnBudget`](whimbrel_apps::effort::TurnBudget).
    spent: Cell<u64>,
}

/// Answers the requests of one connection.
pub(super) struct Answerer<S> {
    pub(super) shared: Rc<Shared<S>>,
    /// The sender of the requests, for the log.
    pub(super) peer: Option<Endpoint>,
    /// Memory for its answers.
    pub(super) room: Room,
    /// Place in the queue of long work, if it is such.
    pub(super) long: LongPlace,
}

/// The client of a stream.
struct StreamClient {
    /// Bytes that its connection takes at once.
    at_once: usize,
    source: Source,
}

/// The body of an answer.
pub(super) struct Reply<S> {
    shared: Rc<Shared<S>>,
    body: http::Body,
    /// Memory for the stream.
    room: StreamRoom,
    /// Waits for its next piece, if that is long work.
    long: LongPlace,
    turn: Option<LongTurn>,
    /// The rest of the request's body: dropping it before the answer is sent would reset the stream.
    _unread: Incoming,
    /// For the log, if there is one.
    exchange: Option<LoggedExchange>,
}

impl<S> Common<S> {
    pub(super) fn new(site: S) -> Self {
        Self(Rc::new(RefCell::new(site)))
    }
}

impl<S> Clone for Common<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<S: Site> Site for Common<S> {
    fn respond(&mut self, request: &http::Request<'_>) -> SiteResponse {
        self.0.borrow_mut().respond(request)
    }

    fn cost(&self) -> u64 {
        self.0.borrow().cost()
    }
}

impl<S> Shared<S> {
    pub(super) fn new(
        site: Common<S>,
        limits: Limits,
        think: Duration,
        exchange_log: Option<Box<dyn ExchangeLog + Send>>,
    ) -> Self {
        Self {
            site,
            limits,
            think,
            now: Cell::new(Instant::ZERO),
            thoughts: RefCell::default(),
            next_thought: Cell::default(),
            answered: Cell::default(),
            exchange_log: exchange_log.map(RefCell::new),
            long: Rc::default(),
            spent: Cell::default(),
        }
    }

    /// Requests answered, and those among them with a status of 400 or more.
    pub(super) fn answered(&self) -> (u64, u64) {
        self.answered.get()
    }

    /// Takes the work done since the last call.
    pub(super) fn take_spent(&self) -> u64 {
        self.spent.take()
    }

    fn spend(&self, cost: u64) {
        self.spent.set(self.spent.get().saturating_add(cost));
    }

    /// True if an answer is delayed.
    pub(super) fn is_thinking(&self) -> bool {
        !self.thoughts.borrow().is_empty()
    }

    /// When the next answer is thought about no longer.
    pub(super) fn next_thought(&self) -> Option<Instant> {
        self.thoughts.borrow().first_key_value().map(|((due, _), _)| *due)
    }

    /// It is that late.
    pub(super) fn on_time(&self, now: Instant) {
        self.now.set(now);
        let mut thoughts = self.thoughts.borrow_mut();
        while let Some(first) = thoughts.first_entry().filter(|first| first.key().0 <= now) {
            first.remove().wake();
        }
    }
}

impl<S: Site> Shared<S> {
    /// Returns the site's answer to a request, once its body has come or is not wanted; with the rest
    /// of the body.
    async fn respond(
        &self,
        request: Request<Incoming>,
        client: StreamClient,
        long: &LongPlace,
    ) -> (http::Response, Incoming) {
        let answer = self.answer(&request, client);
        // Of what waits for its body, or for its turn, no head is kept.
        let mut body = request.into_body();
        let response = match answer {
            SiteResponse::Response(response) => {
                self.discard(&mut body).await;
                response
            }
            SiteResponse::Upload(upload) => self.take(upload, &mut body).await,
            SiteResponse::Long(work) => {
                self.discard(&mut body).await;
                long.turn().await;
                self.spend(u64::MAX);
                work.make()
            }
        };
        (response, body)
    }

    fn answer(&self, request: &Request<Incoming>, client: StreamClient) -> SiteResponse {
        let StreamClient { at_once, source } = client;
        let (head, mut site) = (head(request), self.site.clone());
        self.spend(site.cost());
        http::head::respond(&mut site, &head, &self.limits, at_once, source)
    }

    /// Reads a body that is not wanted, if it is short: some clients take it for an error if they are
    /// answered in the middle of it.
    async fn discard(&self, body: &mut Incoming) {
        let length = body.size_hint().upper();
        if length.is_some_and(|length| length <= self.limits.discard) {
            while next_frame(body).await.is_some_and(|frame| frame.is_ok()) {}
        }
    }

    /// Takes a request's body.
    async fn take(&self, mut upload: Box<dyn Upload>, body: &mut Incoming) -> http::Response {
        let mut room = self.limits.body;
        while let Some(frame) = next_part(upload.as_mut(), body).await {
            let frame = match frame {
                Ok(Ok(frame)) => frame,
                Ok(Err(_)) => return Fault::CutShort.response(&self.limits),
                Err(displaced) => return displaced,
            };
            let Ok(bytes) = frame.into_data() else { continue };
            let Some(left) = room.checked_sub(bytes.len() as u64) else {
                return Fault::BodyTooLarge.response(&self.limits);
            };
            room = left;
            self.spend(bytes.len() as u64);
            if let Err(response) = upload.write(&bytes) {
                return response;
            }
        }
        upload.finish()
    }

    fn count(&self, status: u16) {
        let (requests, refused) = self.answered.get();
        self.answered.set((requests + 1, refused + u64::from(status >= 400)));
    }
}

impl<S: Site + 'static> Service<Request<Incoming>> for Answerer<S> {
    type Response = Response<Reply<S>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (shared, peer) = (Rc::clone(&self.shared), self.peer);
        let (room, long) = (self.room.clone(), self.long.clone());
        Box::pin(async move {
            let bodiless = request.method() == Method::HEAD;
            let exchange = shared.exchange_log.is_some().then(|| exchange(&request, peer));
            let client = StreamClient { at_once: room.at_once(), source: Source::of(peer) };
            let (response, unread) = shared.respond(request, client, &long).await;
            if !shared.think.is_zero() {
                ThinkDelay { shared: &shared, place: None }.await;
            }
            let status = response.status.code;
            shared.count(status);
            let exchange = exchange.map(|it| LoggedExchange { status, ..it });
            let room = room.stream();
            Ok(translated(response, bodiless).map(|body| {
                let body = match body {
                    // Shared bytes were not made for this client.
                    http::Body::Bytes(bytes) if bytes.is_unique() => {
                        http::Body::Bytes(room.hold(bytes))
                    }
                    body => body,
                };
                Reply { shared, body, room, long, turn: None, _unread: unread, exchange }
            }))
        })
    }
}

/// The log's entry for a request.
fn exchange(request: &Request<Incoming>, peer: Option<Endpoint>) -> LoggedExchange {
    let mut exchange = LoggedExchange { peer, ..LoggedExchange::of(&head(request)) };
    let line = exchange.request.strip_suffix(b"1.1").unwrap_or_default();
    exchange.request = [line, b"2.0"].concat();
    exchange
}

/// The head of the same request in HTTP/1.1, so that one server answers both.
fn head(request: &Request<Incoming>) -> BytesMut {
    // It does not grow: a long head would be there three times meanwhile.
    let fields =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let uri = request.uri();
    let target = uri.path_and_query().map_or(1, |path| path.as_str().len());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    let mut head = BytesMut::with_capacity(target + authority + fields.sum::<usize>() + HEAD_ROOM);
    let target = request.uri().path_and_query().map_or("*", |path| path.as_str());
    let mut line = |parts: &[&[u8]]| {
        parts.iter().for_each(|part| head.extend_from_slice(part));
        head.extend_from_slice(b"\r\n");
    };
    line(&[request.method().as_str().as_bytes(), b" ", target.as_bytes(), b" HTTP/1.1"]);
    let fields = request.headers();
    // RFC 9113 8.3.1: ":authority" takes the place of Host.
    match request.uri().authority() {
        Some(authority) => line(&[b"Host: ", authority.as_str().as_bytes()]),
        None => line(&[b"Host: ", fields.get(HOST).map_or(b"-".as_slice(), HeaderValue::as_bytes)]),
    }
    for (name, value) in fields.iter().filter(|(name, _)| **name != HOST && **name != EXPECT) {
        line(&[name.as_str().as_bytes(), b": ", value.as_bytes()]);
    }
    // Without a length, the end of the stream is the end of the body.
    if !request.body().is_end_stream() && !fields.contains_key(CONTENT_LENGTH) {
        line(&[b"Transfer-Encoding: chunked"]);
    }
    line(&[]);
    head
}

/// A response of the site in HTTP/2.
fn translated(response: http::Response, bodiless: bool) -> Response<http::Body> {
    let http::Response { status, content_type, fields, body } = response;
    let length = body.length();
    let body = if bodiless { http::Body::Bytes(Bytes::new()) } else { body };
    let mut translated = Response::new(body);
    *translated.status_mut() =
        StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = translated.headers_mut();
    // As in HTTP/1.1, 304 would have to give the length of a body that it does not send.
    if status != http::Status::NOT_MODIFIED {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    if let Some(kind) = content_type {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let value = HeaderValue::from_str(&field.value);
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.insert(name, value);
        }
    }
    translated
}

impl<S> Body for Reply<S> {
    type Data = Bytes;
    type Error = SourceError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SourceError>>> {
        let Self { shared, body, room, long, turn, exchange, .. } = &mut *self;
        let piece = match body {
            http::Body::Bytes(bytes) => {
                let piece = bytes.split_to(bytes.len().min(PIECE));
                (!piece.is_empty()).then_some(Ok(piece))
            }
            http::Body::Source { length: 0, .. } => None,
            http::Body::Source { length, source } => {
                let Some(at_most) = room.at_once(cx.waker()) else { return Poll::Pending };
                if source.is_long() {
                    let turn = turn.get_or_insert_with(|| long.turn());
                    ready!(Pin::new(turn).poll(cx));
                    shared.spend(u64::MAX);
                }
                *turn = None;
                Some(next_piece(source.as_mut(), length, at_most.min(PIECE)).map(|it| {
                    shared.spend(it.len() as u64);
                    if it.is_unique() { room.hold(it) } else { it }
                }))
            }
        };
        if let (Some(Ok(piece)), Some(exchange)) = (&piece, exchange) {
            exchange.sent += piece.len() as u64;
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.length() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.length())
    }
}

/// The next bytes of a source that has this many left.
fn next_piece(
    source: &mut dyn BodySource,
    left: &mut u64,
    at_most: usize,
) -> Result<Bytes, SourceError> {
    let at_most = usize::try_from(*left).unwrap_or(usize::MAX).min(at_most);
    let piece = source.read(at_most)?;
    if piece.is_empty() || piece.len() > at_most {
        return Err(SourceError);
    }
    *left -= piece.len() as u64;
    Ok(piece)
}

/// Ready when an answer was thought about for long enough.
struct ThinkDelay<'s, S> {
    shared: &'s Shared<S>,
    /// Among those that are thought about.
    place: Option<(Instant, u64)>,
}

impl<S> Future for ThinkDelay<'_, S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Shared { now, think, next_thought, thoughts, .. } = self.shared;
        let now = now.get();
        match self.place {
            Some((due, _)) if due <= now => return Poll::Ready(()),
            Some(_) => {}
            None => {
                let place = (now + *think, next_thought.replace(next_thought.get() + 1));
                thoughts.borrow_mut().insert(place, cx.waker().clone());
                self.place = Some(place);
            }
        }
        Poll::Pending
    }
}

/// A reset stream leaves no delay behind.
impl<S> Drop for ThinkDelay<'_, S> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.shared.thoughts.borrow_mut().remove(&place);
        }
    }
}

impl<S> Drop for Reply<S> {
    fn drop(&mut self) {
        if let Some(exchange) = &self.exchange
            && let Some(exchange_log) = &self.shared.exchange_log
        {
            exchange_log.borrow_mut().note(exchange);
        }
    }
}

/// The most bytes of a body that are handed over at a time, and so wait for a peer's window: those of a
/// frame, as peers take it at least.
const PIECE: usize = 16 << 10;

/// Largest size of a head's other parts than target, authority and fields, bytes: the method is within
/// the other limits.
const HEAD_ROOM: usize = 128;

/// The next frame of an upload's body, or the response if the site ended the upload early.
async fn next_part(
    upload: &mut dyn Upload,
    body: &mut Incoming,
) -> Option<Result<Result<Frame<Bytes>, hyper::Error>, http::Response>> {
    std::future::poll_fn(|cx| {
        upload.watch(cx.waker());
        match upload.displaced() {
            Some(response) => Poll::Ready(Some(Err(response))),
            None => Pin::new(&mut *body).poll_frame(cx).map(|frame| frame.map(Ok)),
        }
    })
    .await
}

/// The next frame of a body.
async fn next_frame(body: &mut Incoming) -> Option<Result<Frame<Bytes>, hyper::Error>> {
    std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
}
