//! Streams of a client that asks a web server at great length.

use whimbrel_apps::http::{HttpServer, Limits, Request, Response, Site, SiteResponse, Status};
use whimbrel_base::Instant;
use whimbrel_stack::Shard;
use whimbrel_tcp::Tunables;
use whimbrel_wire::IpHeader;
use whimbrel_wire::tcp::{TcpFlags, TcpHeader};

use super::{PACKETS, PORT, Pace, Victim, frame_with, numbers};
use crate::Failure;

/// Answers in a few words.
struct Greeting;

impl Site for Greeting {
    fn respond(&mut self, request: &Request<'_>) -> SiteResponse {
        Response::text(Status::OK, request.path().len().to_string()).into()
    }
}

impl Victim {
    /// A web server with a client that had one answer.
    pub(super) fn serving() -> Result<Self, Failure> {
        let (mut victim, _) = Self::listening(Tunables::default(), 16)?;
        let mut server: HttpServer<Greeting> = HttpServer::new(Greeting, Limits::default());
        victim.application = Some(Box::new(move |shard: &mut Shard, now: Instant| {
            server.poll(shard, now, usize::MAX);
        }));
        victim.pace = Pace::Each;
        victim.sent = victim.half_opened(PORT)?;
        victim.suffer(&[victim.said(0, 0, &[])]);
        for piece in head().chunks(PIECE) {
            victim.suffer(&[victim.said(0, 0, piece)]);
            victim.next += piece.len() as u32;
        }
        let answer = victim.answer();
        if !answer.starts_with(b"HTTP/1.1 200 OK\r\n") {
            return Err("the request was not answered".into());
        }
        victim.sent += answer.len() as u32;
        victim.suffer(&[victim.said(0, 0, &[])]);
        Ok(victim)
    }

    /// Last response of the server.
    fn answer(&self) -> Vec<u8> {
        let text = IpHeader::parse(&self.last).ok().and_then(|(_, segment)| {
            let (_, len) = TcpHeader::parse(segment).ok()?;
            segment.get(len..)
        });
        text.unwrap_or_default().to_vec()
    }

    /// A segment of the client after `said` more sent and `heard` more received bytes.
    fn said(&self, said: usize, heard: u32, text: &[u8]) -> Vec<u8> {
        let mut header = self.header(TcpFlags::ACK | TcpFlags::PSH, self.next + said as u32);
        header.ack += heard;
        frame_with(0, &header, text)
    }
}

/// A head of which a byte comes at a time.
pub(super) fn bytes(victim: &Victim) -> Vec<Vec<u8>> {
    let of = |(at, byte): (u32, &u8)| victim.said(at as usize, 0, &[*byte]);
    numbers().zip(&head()).map(of).collect()
}

/// One request after the other, each as long as it may be; their answers are acknowledged.
pub(super) fn of_16_kib(victim: &Victim) -> Vec<Vec<u8>> {
    let text = head().repeat((PACKETS as usize * PIECE).div_ceil(HEAD));
    let answer = victim.answer().len();
    let of = |(number, piece): (usize, &[u8])| {
        let said = number * PIECE;
        victim.said(said, (said / HEAD * answer) as u32, piece)
    };
    text.chunks(PIECE).take(PACKETS as usize).enumerate().map(of).collect()
}

/// A request with a head of [`HEAD`] bytes, in many fields.
fn head() -> Vec<u8> {
    let mut head = b"GET / HTTP/1.1\r\nHost: whimbrel\r\n".to_vec();
    let mut field = 0;
    while head.len() < HEAD - 600 {
        head.extend(format!("X-Field-{field}: {}\r\n", "v".repeat(250)).bytes());
        field += 1;
    }
    head.extend(b"X-Last: ");
    head.resize(HEAD - 4, b'v');
    head.extend(b"\r\n\r\n");
    head
}

/// The longest head that a server takes by default.
const HEAD: usize = 16 << 10;
/// Bytes of a segment.
const PIECE: usize = 1_460;
