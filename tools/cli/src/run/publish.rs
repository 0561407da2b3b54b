//! `-p`: ports outside that lead to the program's.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::str::FromStr;

use whimbrel_apps::Transport;
use whimbrel_stack::{Handle, InterfaceAddress, Shard};
use whimbrel_tcp::conn::SocketOptions;
use whimbrel_wire::{Address, Endpoint};

use super::destinations::Destinations;
use super::far::FarNet;
use crate::failure::Failure;

/// A published port as it was typed: `[ADDR:]OUT:IN[/udp]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PublishOption {
    /// Its address, if one was given.
    address: Option<Address>,
    port: u16,
    inside_port: u16,
    protocol: PublishedProtocol,
}

impl PublishOption {
    /// The port of the machine, at 127.0.0.1 if no address was given.
    pub(super) fn on_machine(self) -> Published {
        self.at(self.address.unwrap_or(Address::from_v4_bytes([127, 0, 0, 1])))
    }

    /// The ports of a stack with these addresses: at each that the given one covers.
    pub(super) fn on_wire(self, own: &[InterfaceAddress]) -> Result<Vec<Published>, Failure> {
        let covers = |addr: &Address| match self.address {
            None => true,
            Some(wish) if wish.is_unspecified() => wish.family() == addr.family(),
            Some(wish) => wish == *addr,
        };
        let own = || own.iter().map(|own| own.addr);
        let found: Vec<_> = own().filter(covers).map(|addr| self.at(addr)).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let wish = self.address.map_or_else(String::new, |wish| wish.to_ip().to_string());
        let all = own().map(|addr| addr.to_ip().to_string()).collect::<Vec<_>>().join(", ");
        let text =
            format!("{wish} is no address of the wire: use one of {all}, or leave the address out");
        Err(Failure::usage("--publish", text))
    }

    fn at(self, addr: Address) -> Published {
        let Self { port, inside_port, protocol, .. } = self;
        Published { outside: Endpoint::new(addr, port), inside_port, protocol }
    }
}

/// A port outside that leads to one of the program's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Published {
    pub(super) outside: Endpoint,
    pub(super) inside_port: u16,
    pub(super) protocol: PublishedProtocol,
}

/// Protocol of a published port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PublishedProtocol {
    Tcp,
    Udp,
}

/// Connections to published ports, of which the program's side opens.
pub(super) struct Publisher<F: FarNet> {
    published: Vec<Published>,
    /// By the number of the program's side.
    opening: BTreeMap<u32, (Handle, F::Id)>,
}

impl<F: FarNet> Publisher<F> {
    /// Listens at those of TCP.
    pub(super) fn new(net: &mut F, published: &[Published]) -> Result<Self, Failure> {
        let is_tcp = |it: &&Published| it.protocol == PublishedProtocol::Tcp;
        let published: Vec<_> = published.iter().filter(is_tcp).copied().collect();
        for Published { outside, .. } in &published {
            net.listen_at(*outside, BACKLOG)?;
        }
        Ok(Self { published, opening: BTreeMap::new() })
    }

    /// Accepts connections, and opens each to the program, from its client's address. Returns the number
    /// of those that could not be opened.
    pub(super) fn accept(
        &mut self,
        net: &mut F,
        shard: &mut Shard,
        listener: F::Listener,
        to: &Destinations,
    ) -> u64 {
        let mut refused = 0;
        while let Some(far) = net.accept(listener) {
            match self.open(net, shard, far, to) {
                Some(near) => drop(self.opening.insert(near.index(), (near, far))),
                None => {
                    net.abort(far);
                    refused += 1;
                }
            }
        }
        refused
    }

    fn open(&self, net: &F, shard: &mut Shard, far: F::Id, to: &Destinations) -> Option<Handle> {
        let (client, own) = (net.remote(far)?, net.local(far)?);
        let is_it = |it: &&Published| {
            let Endpoint { addr, port } = it.outside;
            port == own.port && (addr.is_unspecified() || addr == own.addr)
        };
        let Published { inside_port, .. } = self.published.iter().find(is_it)?;
        let program = to.network.program_of_family(client.addr)?;
        let mut from = to.inside(client);
        if from.addr != client.addr {
            // The port may be another client's, of another address of the machine.
            from.port = 0;
        }
        let program = Endpoint::new(program, *inside_port);
        shard.connect_with(program, Some(from), &SocketOptions::default()).ok()
    }

    /// The program's side is open: returns the client's.
    pub(super) fn on_open(&mut self, near: Handle) -> Option<F::Id> {
        let (_, far) = self.opening.remove(&near.index()).filter(|(opened, _)| *opened == near)?;
        Some(far)
    }

    /// Resets the clients that wait.
    pub(super) fn cut(&mut self, net: &mut F, shard: &mut Shard) {
        while let Some((_, (near, far))) = self.opening.pop_first() {
            Transport::abort(shard, near);
            net.abort(far);
        }
    }
}

impl FromStr for PublishOption {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let refused = || format!("{typed:?} is no port of the machine and one inside: {EXAMPLE}");
        let (ports, protocol) = match typed.rsplit_once('/') {
            None => (typed, PublishedProtocol::Tcp),
            Some((ports, "tcp")) => (ports, PublishedProtocol::Tcp),
            Some((ports, "udp")) => (ports, PublishedProtocol::Udp),
            Some(_) => return Err(refused()),
        };
        let (outside, inside) = ports.rsplit_once(':').ok_or_else(refused)?;
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
        let (address, outside_port) = match outside.rsplit_once(':') {
            None => (None, outside),
            Some((address, port)) => {
                let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                let address: IpAddr =
                    bare.unwrap_or(address).parse().map_err(|_not_one| refused())?;
                (Some(address.into()), port)
            }
        };
        Ok(Self {
            address,
            port: port(outside_port).ok_or_else(refused)?,
            inside_port: port(inside).ok_or_else(refused)?,
            protocol,
        })
    }
}

const EXAMPLE: &str = "give [ADDR:]OUT:IN[/udp], as in 8080:80, 0.0.0.0:8080:80 or 5353:53/udp";
/// The bound of the accept queues.
const BACKLOG: u32 = 4096;

#[cfg(test)]
mod tests;
