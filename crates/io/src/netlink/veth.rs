//! Creates veth pairs, and lists them and which of their ends leave checksums to the device (veth(4)).
//!
//! A frame goes from one end to the other within the kernel. If the sender leaves the checksum of a
//! segment to its device, no code ever computes it.

use std::ffi::CStr;
use std::io;

use whimbrel_base::Foreign;

use super::{Netlink, Request};
use crate::sys;

/// One end of a pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Veth {
    /// The name of the interface, in its own network namespace.
    pub name: String,
    /// The other end, if it is in the same network namespace.
    pub peer: Option<Peer>,
}

/// The other end of a pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The name of the interface, in its own network namespace.
    pub name: String,
    /// Side that computes the checksums of what it sends.
    pub checksums: Checksums,
}

/// Side that computes the checksums of what an end sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksums {
    /// The sender, as on a wire.
    Sender,
    /// The device, which a veth does not do.
    Device,
}

/// Returns every end that is in this thread's network namespace.
pub fn ends() -> io::Result<Vec<Veth>> {
    let mut request = Request::new(libc::RTM_GETLINK, libc::NLM_F_DUMP);
    // struct ifinfomsg: any interface.
    request.put(&[0; LINK_LEN]);
    let mut links = Vec::new();
    Netlink::open()?.ask(request, |body| links.extend(link_in(body)))?;
    let peer = |veth: &Link| {
        let peer = links.iter().find(|link| Some(link.index) == veth.peer)?;
        let name = CStr::from_bytes_until_nul(&peer.name).ok()?;
        let checksums = match sys::leaves_checksums(name) {
            Ok(true) => Checksums::Device,
            _ => Checksums::Sender,
        };
        Some(Peer { name: peer.name(), checksums })
    };
    let ends = links.iter().filter(|link| link.is_veth);
    Ok(ends.map(|veth| Veth { name: veth.name(), peer: peer(veth) }).collect())
}

impl Netlink {
    /// Creates a pair whose ends have these names, in this thread's network namespace. Both are down and
    /// have no address. Needs CAP_NET_ADMIN.
    pub fn add_veth(&mut self, [one, other]: [&CStr; 2]) -> io::Result<()> {
        let mut request = Request::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        // struct ifinfomsg: any number.
        request.put(&[0; LINK_LEN]);
        request.attribute(IFLA_IFNAME, one.to_bytes_with_nul());
        request.nested(IFLA_LINKINFO, |request| {
            request.attribute(IFLA_INFO_KIND, b"veth\0");
            request.nested(IFLA_INFO_DATA, |request| {
                request.nested(VETH_INFO_PEER, |request| {
                    request.put(&[0; LINK_LEN]);
                    request.attribute(IFLA_IFNAME, other.to_bytes_with_nul());
                });
            });
        });
        self.send(request)
    }
}

/// An interface, as the kernel describes it.
struct Link {
    index: u32,
    /// Name, with a zero byte at its end.
    name: Vec<u8>,
    is_veth: bool,
    /// Index of the other end, if it is in the same network namespace.
    peer: Option<u32>,
}

impl Link {
    fn name(&self) -> String {
        let name = self.name.strip_suffix(&[0]).unwrap_or(&self.name);
        Foreign::new(name).to_string()
    }
}

/// Parses a `struct ifinfomsg` (index at byte 4) and its attributes.
fn link_in(body: &[u8]) -> Option<Link> {
    let index = u32::from_ne_bytes(*body.get(4..)?.first_chunk()?);
    let all = body.get(LINK_LEN..)?;
    let of = |wanted| attributes(all).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let kind = of(IFLA_LINKINFO).and_then(|info| {
        attributes(info).find(|(kind, _)| *kind == IFLA_INFO_KIND).map(|(_, value)| value)
    });
    let peer = of(IFLA_LINK).filter(|_| of(IFLA_LINK_NETNSID).is_none());
    Some(Link {
        index,
        name: of(IFLA_IFNAME)?.to_vec(),
        is_veth: kind == Some(b"veth\0"),
        peer: peer.and_then(|bytes| Some(u32::from_ne_bytes(*bytes.first_chunk()?))),
    })
}

/// Iterates over the attributes: the kind and value of each.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?) & KIND;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Length of `struct ifinfomsg`, in bytes.
const LINK_LEN: usize = 16;

/// Mask of the bits of a kind that are not flags (linux/netlink.h: NLA_TYPE_MASK).
const KIND: u16 = 0x3fff;
// From linux/if_link.h.
const IFLA_IFNAME: u16 = 3;
const IFLA_LINK: u16 = 5;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_LINK_NETNSID: u16 = 37;
// From linux/veth.h.
const VETH_INFO_PEER: u16 = 1;

#[cfg(test)]
mod tests;
