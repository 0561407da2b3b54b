//! The traits between the protocol and the content that a server serves.

use alloc::boxed::Box;
use core::task::Waker;

use super::{Request, Response};

/// Answers requests over any protocol: the part of a server that knows its content.
pub trait Site {
    /// Answers a request. Called when the head is complete, before the body.
    fn respond(&mut self, request: &Request<'_>) -> SiteResponse;

    /// Most work for a response in addition to the bytes of its body, in units of
    /// [`TurnBudget`](crate::effort::TurnBudget). The default is 0: the response and its body are
    /// in memory.
    fn cost(&self) -> u64 {
        0
    }
}

/// A site's decision about a request.
pub enum SiteResponse {
    /// This response; the request's body is not wanted.
    Response(Response),
    /// Takes the body, and then makes the response.
    Upload(Box<dyn Upload>),
    /// The response is long work ([`TurnBudget`](crate::effort::TurnBudget)), which has a turn of
    /// its own. The request's body is not wanted.
    Long(Box<dyn LongAnswer>),
}

/// A response that would delay others. It is dropped unmade if the connection ends before.
pub trait LongAnswer: Send {
    /// Makes the response.
    fn make(self: Box<Self>) -> Response;
}

impl From<Response> for SiteResponse {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}

/// Takes a request's body. Dropped without [`Upload::finish`] if the body does not end well.
pub trait Upload: Send {
    /// Takes the next bytes of the body. An error is the response, after which the connection ends.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Response>;

    /// Registers the waker of the connection, for the time when the site ends the upload early. A site
    /// that never does has no use for it.
    fn watch(&mut self, _waker: &Waker) {}

    /// The response if the site ended the upload early; the connection then ends, as after an error.
    fn displaced(&mut self) -> Option<Response> {
        None
    }

    /// Returns the response after the complete body.
    fn finish(self: Box<Self>) -> Response;
}
