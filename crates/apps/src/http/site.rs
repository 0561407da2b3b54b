//! What a server serves: the traits that stand between the protocol and the content.

use alloc::boxed::Box;

use super::{Request, Response};

/// Answers requests, whatever connection they came by: the part of a server that knows its content.
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

/// Takes a request's body. Dropped without [`Upload::finish`] if the body does not end well.
pub trait Upload: Send {
    /// The next octets of the body. An error is the response that tells why, and ends the
    /// connection after it.
    fn write(&mut self, octets: &[u8]) -> Result<(), Response>;

    /// The body is complete: the response.
    fn finish(self: Box<Self>) -> Response;
}
