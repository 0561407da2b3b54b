//! The PROXY protocol: a header that tells a server behind a relay the client's address.
//!
//! As HAProxy's specification (`doc/proxy-protocol.txt`) has it, versions 1 and 2, for TCP over IPv4 and
//! IPv6. Only the sender is here.

use alloc::format;
use alloc::vec::Vec;

use bytes::Bytes;
use whimbrel_wire::Flow;

/// Version of the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxyVersion {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

impl ProxyVersion {
    /// Returns the header of a connection that was accepted from `flow.remote` at `flow.local`.
    pub fn header(self, flow: &Flow) -> Bytes {
        match self {
            Self::V1 => v1(flow),
            Self::V2 => v2(flow),
        }
    }
}

/// Section 2.1: "the string "PROXY"", the family, source, destination and their ports, each behind
/// "exactly one space", then CRLF.
fn v1(Flow { local, remote }: &Flow) -> Bytes {
    let family = if remote.addr.is_v4() { "TCP4" } else { "TCP6" };
    let (source, destination) = (remote.addr.to_ip(), local.addr.to_ip());
    let (from, to) = (remote.port, local.port);
    format!("PROXY {family} {source} {destination} {from} {to}\r\n").into()
}

/// Section 2.2: the signature, version and command, family and protocol, the length of the rest in
/// network byte order, then source and destination with their ports.
fn v2(Flow { local, remote }: &Flow) -> Bytes {
    let is_v4 = remote.addr.is_v4();
    let mut header = Vec::with_capacity(SIGNATURE.len() + 4 + 36);
    header.extend_from_slice(SIGNATURE);
    header.push(VERSION_2 | COMMAND_PROXY);
    header.push(STREAM | if is_v4 { AF_INET } else { AF_INET6 });
    let len: u16 = if is_v4 { 4 + 4 + 2 + 2 } else { 16 + 16 + 2 + 2 };
    header.extend_from_slice(&len.to_be_bytes());
    for addr in [remote.addr, local.addr] {
        match addr.to_ip() {
            core::net::IpAddr::V4(addr) => header.extend_from_slice(&addr.octets()),
            core::net::IpAddr::V6(addr) => header.extend_from_slice(&addr.octets()),
        }
    }
    for port in [remote.port, local.port] {
        header.extend_from_slice(&port.to_be_bytes());
    }
    header.into()
}

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// The upper four bits of the 13th byte.
const VERSION_2: u8 = 0x20;
/// The lower four: the connection was relayed, and is not the relay's own (LOCAL).
const COMMAND_PROXY: u8 = 0x01;
const AF_INET: u8 = 0x10;
const AF_INET6: u8 = 0x20;
const STREAM: u8 = 0x01;

#[cfg(test)]
mod tests;
