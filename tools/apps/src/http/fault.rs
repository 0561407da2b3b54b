//! Reasons to refuse a request, and the status for each.

use alloc::format;
use alloc::string::String;

use super::{Limits, Response, Status};

/// Reason to refuse a request. Each ends the connection, because the start of the next request is
/// no longer certain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Not HTTP/1.1 as in RFC 9112, with the reason.
    Malformed(&'static str),
    /// The peer closed its direction in the middle of a request.
    CutShort,
    /// The connection was silent in the middle of a request.
    TooSlow,
    /// The head was not complete within [`Limits::head_time`].
    HeadTooSlow,
    /// The request line exceeds the limit of a head.
    TargetTooLong,
    /// The head exceeds its limit.
    HeadTooLarge,
    /// More header fields than [`MAX_FIELDS`](super::limits::MAX_FIELDS).
    TooManyFields,
    /// An upload without a length.
    LengthRequired,
    /// The body exceeds its limit.
    BodyTooLarge,
    /// An expectation other than `100-continue`.
    Expectation,
    /// A method unknown to HTTP/1.1.
    UnknownMethod,
    /// A transfer coding other than `chunked`.
    UnknownCoding,
    /// A major version other than 1.
    Version,
}

impl Fault {
    /// The response for the peer.
    pub fn response(self, limits: &Limits) -> Response {
        Response::text(self.status(), self.explanation(limits))
    }

    /// The status of the response: 4xx, or 5xx for what the server lacks.
    pub const fn status(self) -> Status {
        match self {
            Self::Malformed(_) | Self::CutShort => Status::BAD_REQUEST,
            Self::TooSlow | Self::HeadTooSlow => Status::REQUEST_TIMEOUT,
            Self::TargetTooLong => Status::URI_TOO_LONG,
            Self::HeadTooLarge | Self::TooManyFields => Status::FIELDS_TOO_LARGE,
            Self::LengthRequired => Status::LENGTH_REQUIRED,
            Self::BodyTooLarge => Status::CONTENT_TOO_LARGE,
            Self::Expectation => Status::EXPECTATION_FAILED,
            Self::UnknownMethod | Self::UnknownCoding => Status::NOT_IMPLEMENTED,
            Self::Version => Status::VERSION_NOT_SUPPORTED,
        }
    }

    fn explanation(self, limits: &Limits) -> String {
        match self {
            Self::Malformed(what) => format!("malformed request: {what}\n"),
            Self::CutShort => "the request ends before it is complete: send all of it\n".into(),
            Self::TooSlow => format!(
                "no byte came for {} s in the middle of a request, the limit: send faster\n",
                limits.idle.as_secs()
            ),
            Self::HeadTooSlow => format!(
                "the head did not come whole within {} s, the limit: send it in one go\n",
                limits.head_time.as_secs_f64()
            ),
            Self::TargetTooLong => format!(
                "the request line exceeds the limit of {} bytes for a head: ask for less\n",
                limits.head
            ),
            Self::HeadTooLarge => format!(
                "the head exceeds its limit of {} bytes: send fewer or shorter fields\n",
                limits.head
            ),
            Self::TooManyFields => format!(
                "the head exceeds its limit of {} fields: send fewer\n",
                super::limits::MAX_FIELDS
            ),
            Self::LengthRequired => {
                "an upload needs a length: send Content-Length or Transfer-Encoding: chunked\n"
                    .into()
            }
            Self::BodyTooLarge => {
                format!("the body exceeds its limit of {} bytes: send less\n", limits.body)
            }
            Self::Expectation => {
                "only the expectation 100-continue is known: send no other\n".into()
            }
            Self::UnknownMethod => {
                "the method is not known here: use GET, HEAD, POST or PUT\n".into()
            }
            Self::UnknownCoding => {
                "the transfer coding is not known here: send chunked alone\n".into()
            }
            Self::Version => "only HTTP/1.0 and HTTP/1.1 are spoken here: use one of them\n".into(),
        }
    }
}
