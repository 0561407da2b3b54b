//! What became of each request, for whoever keeps a log of them.

use alloc::vec::Vec;

use whimbrel_wire::Endpoint;

/// An exchange that is over, or was broken off after its response began.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LoggedExchange {
    /// Who asked, if the transport knows.
    pub peer: Option<Endpoint>,
    /// The request line as it came, without its end; empty if none came whole.
    pub request: Vec<u8>,
    /// The value of the `Referer` field, as it came.
    pub referer: Option<Vec<u8>>,
    /// The value of the `User-Agent` field, as it came.
    pub agent: Option<Vec<u8>>,
    /// The status of the response; 0 while there is none.
    pub status: u16,
    /// Octets of the response's body that were handed to the transport.
    pub sent: u64,
}

/// Told of every exchange of an HTTP server, to keep an access log.
pub trait ExchangeLog {
    /// An exchange is over. Called on the thread of the server, which waits meanwhile.
    fn note(&mut self, exchange: &LoggedExchange);
}

impl LoggedExchange {
    /// That of a request with this head, which need not be one that can be parsed.
    pub fn of(head: &[u8]) -> Self {
        let mut lines = head.split(|octet| *octet == b'\n').map(<[u8]>::trim_ascii);
        // An empty line may precede the request line.
        let request = lines.find(|line| !line.is_empty()).unwrap_or_default().to_vec();
        let mut exchange = Self { request, ..Self::default() };
        for line in lines {
            let mut parts = line.splitn(2, |octet| *octet == b':');
            let (Some(name), Some(value)) = (parts.next(), parts.next()) else { continue };
            let place = match name {
                name if name.eq_ignore_ascii_case(b"referer") => &mut exchange.referer,
                name if name.eq_ignore_ascii_case(b"user-agent") => &mut exchange.agent,
                _ => continue,
            };
            place.get_or_insert_with(|| value.trim_ascii().to_vec());
        }
        exchange
    }
}

#[cfg(test)]
mod tests;
