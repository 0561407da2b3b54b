//! One client: its requests, answered in order.

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use super::clients::Clients;
use super::lines::{Line, LineReader, LineWriter};
use super::request::{Request, failure};
use super::service::Service;
use super::{lines, peer};
use crate::Stop;

/// Serves a client until it leaves, breaks the protocol, or `stop` is set.
pub(super) fn serve(stream: &UnixStream, clients: &Clients, service: &Service, stop: &Stop) {
    // Without this, one that reads nothing would block the writer for ever.
    let Ok(mut writer) = LineWriter::new(stream) else { return };
    let refused = match (peer::check(stream), clients.admit(stream)) {
        (Err(why), _) => Err(("denied", why)),
        (Ok(()), None) => {
            let text = format!("{} clients are served already: end one of them", Clients::MOST);
            Err(("busy", text))
        }
        (Ok(()), Some(admitted)) => Ok(admitted),
    };
    let _admitted = match refused {
        Ok(admitted) => admitted,
        Err((code, why)) => {
            // The client may have gone.
            let _ = writer.line(&failure(&Value::Null, code, &why)).and_then(|()| writer.flush());
            return linger(stream);
        }
    };
    // Whatever fails, the stream ends with this function.
    let _ = converse(stream, &mut writer, service, stop);
}

/// Waits a moment until a refused client has read why: if it still writes, an end at once would look like a
/// broken connection.
fn linger(stream: &UnixStream) {
    let half = stream.shutdown(Shutdown::Write).and(stream.set_read_timeout(Some(LINGER)));
    // Whatever it sends is not read; its end, or the time, ends this.
    let _ = half.and_then(|()| io::copy(&mut stream.take(lines::MOST as u64), &mut io::sink()));
}

fn converse(
    stream: &UnixStream,
    writer: &mut LineWriter<'_>,
    service: &Service,
    stop: &Stop,
) -> io::Result<()> {
    let mut reader = LineReader::new(stream);
    writer.line(&service.greeting())?;
    writer.flush()?;
    loop {
        match reader.next(stop) {
            Line::End => return Ok(()),
            Line::TooLong => {
                let text = format!("a line has more than {} bytes: this stream ends", lines::MOST);
                writer.line(&failure(&Value::Null, "too-long", &text))?;
                return writer.flush();
            }
            Line::Whole(line) => match Request::parse(&line) {
                Ok(request) if request.method == "pcap" => {
                    service.capture(&request, &reader, writer, stop)?;
                }
                Ok(request) => service.answer(&request, writer)?,
                Err(error) => writer.line(&error)?,
            },
        }
        writer.flush()?;
    }
}

/// Time for a refused client to read why.
const LINGER: Duration = Duration::from_millis(500);
