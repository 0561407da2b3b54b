//! One client: its requests, answered in order.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::clients::{Admitted, Clients};
use super::lines::{Line, LineReader, LineWriter};
use super::request::{Request, failure};
use super::service::Service;
use super::{lines, peer};
use crate::{Stop, linger};

/// Reason why a client is not served: a code for programs, and a text.
pub(super) type Refused = (&'static str, String);

/// Gives a client a place, if it is of the right user and there is room.
pub(super) fn admit<'c>(
    stream: &Arc<UnixStream>,
    clients: &'c Clients,
) -> Result<Admitted<'c>, Refused> {
    // Another user's client takes no place.
    peer::check(stream).map_err(|why| ("denied", why))?;
    clients.admit(stream).ok_or_else(|| {
        let most = Clients::MOST;
        ("busy", format!("{most} clients are served already: end one of them, or try again in 5 s"))
    })
}

/// Tells a client why it is not served, without waiting for it.
pub(super) fn refuse(stream: &UnixStream, refused: &Refused) {
    let (code, why) = refused;
    let line = format!("{}\n", failure(&Value::Null, code, why));
    // A new stream has room for a line. The client may have gone.
    let _ = stream.set_nonblocking(true).and_then(|()| (&mut &*stream).write_all(line.as_bytes()));
}

/// Tells a client why it is not served, and waits until it has read that.
pub(super) fn refuse_and_wait(stream: &UnixStream, refused: &Refused) {
    refuse(stream, refused);
    let _gone = stream.set_nonblocking(false);
    linger(stream);
}

/// Serves a client until it leaves, breaks the protocol, gives way, or `stop` is set.
pub(super) fn serve(stream: &UnixStream, admitted: &Admitted<'_>, service: &Service, stop: &Stop) {
    // Without this, one that reads nothing would block the writer for ever.
    let Ok(mut writer) = LineWriter::new(stream) else { return };
    // Whatever fails, the stream ends with this function.
    let _ = converse(stream, admitted, &mut writer, service, stop);
}

/// Waits a moment until a refused client has read why: if it still writes, an end at once would look like a
/// broken connection.
fn linger(stream: &UnixStream) {
    // Whatever it sends is not read; its end, or the time, ends this.
    let _gone = stream
        .shutdown(Shutdown::Write)
        .and_then(|()| linger::read_to_end(stream, |left| stream.set_read_timeout(left), LINGER));
}

fn converse(
    stream: &UnixStream,
    admitted: &Admitted<'_>,
    writer: &mut LineWriter<'_>,
    service: &Service,
    stop: &Stop,
) -> io::Result<()> {
    let mut reader = LineReader::new(stream);
    writer.line(&service.greeting())?;
    writer.flush()?;
    loop {
        admitted.note_request(false);
        let line = reader.next(stop);
        if !admitted.note_request(true) {
            writer.line(&failure(&Value::Null, "silent", SILENT_TEXT))?;
            return writer.flush();
        }
        match line {
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
const SILENT_TEXT: &str =
    "nothing was asked for 5 s, and another client needs this place: connect again to ask";
