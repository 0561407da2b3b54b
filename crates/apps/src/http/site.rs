//! What a server serves: the traits that stand between the protocol and the content.

use alloc::boxed::Box;

use bytes::Bytes;

use super::{Request, Response};

/// Answers requests.
pub trait Site {
    /// The answer to this request. Called when the head is complete, before the body.
    fn respond(&mut self, request: &Request<'_>) -> Answer;
}

/// What becomes of a request.
pub enum Answer {
    /// This response. A body that comes with the request is not wanted.
    Response(Response),
    /// The body goes there, and the response comes from there.
    Upload(Box<dyn Upload>),
}

impl From<Response> for Answer {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}

/// A response's body, read piece by piece as fast as the peer takes it.
pub trait BodySource: Send {
    /// The next octets: at least one, at most `at_most`. Empty means that nothing is left; before
    /// the announced length that is an error, and the connection is reset.
    fn read(&mut self, at_most: usize) -> Result<Bytes, SourceError>;
}

/// A source that can no longer be read. The peer sees a reset, because a part of the body has
/// been promised already; the source itself should tell its owner why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the source of a response's body can no longer be read")]
pub struct SourceError;

/// Takes a request's body. Dropped without [`Upload::finish`] if the body does not end well.
pub trait Upload: Send {
    /// The next octets of the body. An error is the response that tells why, and ends the
    /// connection after it.
    fn write(&mut self, octets: &[u8]) -> Result<(), Response>;

    /// The body is complete: the response.
    fn finish(self: Box<Self>) -> Response;
}
