//! What a server serves: the traits that stand between the protocol and the content.

use alloc::boxed::Box;

use super::{Request, Response};

/// Answers requests, whatever connection they came by: the part of a server that knows its content.
pub trait Site {
    /// The answer to this request. Called when the head is complete, before the body.
    fn respond(&mut self, request: &Request<'_>) -> SiteResponse;

    /// What an answer costs at most beside the bytes of its body, as [`TurnBudget`](crate::effort::TurnBudget)
    /// counts. By default nothing: it is at hand, its body included, of which no byte is made.
    fn cost(&self) -> u64 {
        0
    }
}

/// What becomes of a request.
pub enum SiteResponse {
    /// This response. A body that comes with the request is not wanted.
    Response(Response),
    /// The body goes there, and the response comes from there.
    Upload(Box<dyn Upload>),
    /// The response is long work ([`TurnBudget`](crate::effort::TurnBudget)), which has a turn of its own. A body
    /// that comes with the request is not wanted.
    Long(Box<dyn LongAnswer>),
}

/// A response that takes more than others may wait for. Dropped unmade if the connection ends before.
pub trait LongAnswer: Send {
    /// Makes the response, in one go.
    fn make(self: Box<Self>) -> Response;
}

impl From<Response> for SiteResponse {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}

/// Takes a request's body. Dropped without [`Upload::finish`] if the body does not end well.
pub trait Upload: Send {
    /// The next bytes of the body. An error is the response that tells why, and ends the
    /// connection after it.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Response>;

    /// The body is complete: the response.
    fn finish(self: Box<Self>) -> Response;
}
