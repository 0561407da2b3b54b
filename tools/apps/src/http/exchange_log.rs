//! Log of requests and their outcomes.

use alloc::vec::Vec;

use whimbrel_wire::Endpoint;

/// An exchange that is over, or that ended after its response began.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LoggedExchange {
    /// Address of the client, if the transport knows it.
    pub peer: Option<Endpoint>,
    /// The request line as received, without its end; empty if none was complete. This and the
    /// fields below keep at most 1,024 bytes each, with `...` for the middle of longer ones: they
    /// are kept until the peer has taken the response, and HTTP/2 has a hundred of them at a time.
    pub request: Vec<u8>,
    /// The value of the `Referer` field, as it came.
    pub referer: Option<Vec<u8>>,
    /// The value of the `User-Agent` field, as it came.
    pub agent: Option<Vec<u8>>,
    /// The status of the response; 0 while there is none.
    pub status: u16,
    /// Bytes of the response's body passed to the transport.
    pub sent: u64,
}

/// Called for each exchange of an HTTP server, to keep an access log.
pub trait ExchangeLog {
    /// Notes an exchange that is over. It runs on the thread of the server, which waits meanwhile.
    fn note(&mut self, exchange: &LoggedExchange);
}

impl LoggedExchange {
    /// The entry of a request with this head, valid or not.
    pub fn of(head: &[u8]) -> Self {
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        // An empty line may precede the request line.
        let request = lines.find(|line| !line.is_empty()).unwrap_or_default();
        let mut exchange = Self { request: shortened(request), ..Self::default() };
        for line in lines {
            let mut parts = line.splitn(2, |byte| *byte == b':');
            let (Some(name), Some(value)) = (parts.next(), parts.next()) else { continue };
            let place = match name {
                name if name.eq_ignore_ascii_case(b"referer") => &mut exchange.referer,
                name if name.eq_ignore_ascii_case(b"user-agent") => &mut exchange.agent,
                _ => continue,
            };
            place.get_or_insert_with(|| shortened(value.trim_ascii()));
        }
        exchange
    }
}

/// Keeps the beginning and the end of long bytes: a request line ends with its version.
fn shortened(bytes: &[u8]) -> Vec<u8> {
    let (front, back) = (MOST - ELLIPSIS.len() - VERSION, bytes.len().saturating_sub(VERSION));
    match (bytes.get(..front), bytes.get(back..)) {
        (Some(front), Some(back)) if bytes.len() > MOST => [front, ELLIPSIS, back].concat(),
        _ => bytes.to_vec(),
    }
}

/// The most bytes that are kept of a line.
const MOST: usize = 1_024;
const ELLIPSIS: &[u8] = b"...";
/// Bytes of ` HTTP/1.1`, with which a request's first line ends.
const VERSION: usize = 9;

#[cfg(test)]
mod tests;
