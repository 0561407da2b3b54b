//! Types with the traits of other libraries, each behind a feature of that library's name.
//!
//! | feature | what it adds |
//! |---|---|
//! | `quinn` | `QuinnSocket`, over which a `quinn::Endpoint` sends |
//! | `hickory` | `HickoryProvider`, from which a `hickory_resolver::Resolver` has its sockets |
//! | `tonic` | `tonic::transport::server::Connected` for [`TcpStream`](crate::TcpStream) |
//!
//! The `ecosystem` folder of the repository has a program over each.

#[cfg(feature = "hickory")]
mod hickory;
#[cfg(feature = "quinn")]
mod quinn;
#[cfg(feature = "tonic")]
mod tonic;

#[cfg(feature = "hickory")]
#[cfg_attr(docsrs, doc(cfg(feature = "hickory")))]
pub use hickory::{HickoryProvider, HickoryUdpSocket};
#[cfg(feature = "quinn")]
#[cfg_attr(docsrs, doc(cfg(feature = "quinn")))]
pub use quinn::QuinnSocket;
