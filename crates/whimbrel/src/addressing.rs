//! Addresses and routes of a stack that runs come and go (`ip address`, `ip route`).

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::oneshot;
use whimbrel_io::DuplicateAddressDetection;
use whimbrel_stack::{InterfaceAddress, Route, Shard};
use whimbrel_wire::Address;

use crate::address_port::AddressCheck;
use crate::changes::{change_all, set_mtu};
use crate::mailbox::{Mailbox, Request};
use crate::stack::inspect;
use crate::{Stack, fault};

impl Stack {
    /// Gives the stack another address, with the length of its network's prefix, and a route to that network.
    /// Over `tap:` and `packet:` it first asks, for 0.9 s, whether another station has it (`dad=off` in the
    /// wire's description: it does not), then announces it. Listeners and sockets at the unspecified address
    /// hear what is for it from then on, and `bind` and `connect` can have it.
    ///
    /// A kernel beyond a TUN device must be told of a route to it, as of any other.
    ///
    /// # Errors
    ///
    /// `AddrInUse`: the stack has it, or another station, which the error names. `InvalidInput`: no host can
    /// have it, or not over this wire; or it is a loopback address, of which every host has 127.0.0.1 and
    /// ::1. `QuotaExceeded`: 65,534 addresses, or 64 that are asked for. `NotConnected`: the stack has ended.
    ///
    /// ```
    /// # use whimbrel::{Stack, TcpListener, TcpStream};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (left, right) = Stack::pair()?;
    /// let listener = TcpListener::bind(&left, "0.0.0.0:80").await?;
    /// left.add_address("10.0.0.7".parse()?, 24).await?;
    /// let stream = TcpStream::connect(&right, "10.0.0.7:80").await?;
    /// let (accepted, _) = listener.accept().await?;
    /// assert_eq!(accepted.local_addr()?, stream.peer_addr()?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn add_address(&self, addr: IpAddr, prefix_len: u8) -> io::Result<()> {
        let address = InterfaceAddress { addr: addr.into(), prefix_len };
        let first = self.first()?;
        let judged = inspect(first, move |shard, _| shard.judge_address(&address)).await?;
        judged.map_err(fault::address)?;
        if self.dad() == DuplicateAddressDetection::On {
            let (answer, free) = oneshot::channel();
            first.ask(Request::Check(AddressCheck { addr: address.addr, answer }));
            free.await.map_err(|_| first.ended())?.map_err(fault::address)?;
        }
        let added = self.change_all(|mailbox| {
            let (mailbox, table) = (Arc::clone(mailbox), Arc::clone(self.bind_table()));
            move |shard: &mut Shard| {
                shard.add_address(address)?;
                if let Some(index) = shard.addresses().index_of(&address.addr) {
                    mailbox.note_address(index, address.addr);
                }
                table.add_address(address);
                mailbox.ways().add_address(&address);
                Ok(())
            }
        });
        added.await?.map_err(fault::address)
    }

    /// Takes an address from the stack, and all that hangs on it: streams from it fail with
    /// `ConnectionAborted`, and no segment tells their peers (RFC 4862 5.5.4 forbids to send from an address
    /// that is no more; Linux keeps such connections until they time out). Listeners and UDP sockets that
    /// are bound to it stay, and hear nothing until it is added again. It walks all connections.
    ///
    /// # Errors
    ///
    /// `AddrNotAvailable`: it is none of the stack's. `NotConnected`: the stack has ended.
    pub async fn remove_address(&self, addr: IpAddr) -> io::Result<()> {
        let addr = Address::from(addr);
        let removed = self.change_all(|mailbox| {
            let (mailbox, table) = (Arc::clone(mailbox), Arc::clone(self.bind_table()));
            move |shard: &mut Shard| {
                let own = shard.addresses().iter().find(|own| own.addr == addr).copied();
                shard.remove_address(&addr)?;
                table.remove_address(&addr);
                if let Some(own) = own {
                    mailbox.ways().remove_address(&own);
                }
                Ok(())
            }
        });
        removed.await?.map_err(fault::address)
    }

    /// Adds a route: the longest prefix counts, then the least metric. Connections that are there take it
    /// with their next packet.
    ///
    /// # Errors
    ///
    /// `AlreadyExists`: there is one to this network over this gateway. `InvalidInput`: not a network, or
    /// a gateway that is on no directly connected one. `QuotaExceeded`: 65,536 routes.
    pub async fn add_route(&self, route: Route) -> io::Result<()> {
        let added = self.change_all(|mailbox| {
            let mailbox = Arc::clone(mailbox);
            move |shard: &mut Shard| {
                shard.add_route(route)?;
                mailbox.ways().add_route(route);
                Ok(())
            }
        });
        added.await?.map_err(fault::route)
    }

    /// Removes the route to this network over this gateway (or directly, without one), whatever its metric.
    /// What has no other way does not leave: `connect` fails, and connections wait for a route until they
    /// time out.
    ///
    /// # Errors
    ///
    /// `NotFound`: none was given; that to an address' own network goes with the address.
    pub async fn remove_route(&self, route: Route) -> io::Result<()> {
        let removed = self.change_all(|mailbox| {
            let mailbox = Arc::clone(mailbox);
            move |shard: &mut Shard| {
                shard.remove_route(&route)?;
                mailbox.ways().remove_route(&route);
                Ok(())
            }
        });
        removed.await?.map_err(fault::route)
    }

    /// The MTU of its link: the largest IP packet that it sends, bytes.
    pub fn mtu(&self) -> u16 {
        self.mailboxes().first().map_or(0, |first| first.ways().mtu())
    }

    /// Sends IP packets of up to `mtu` bytes from now on, as the link carries so many: a tunnel found a
    /// smaller path, or a larger one. New connections announce what fits (MSS). If it is less than before, what
    /// streams have in flight and does not fit is cut anew and sent again; segments of streams that are there
    /// never become larger. It walks all connections.
    ///
    /// The wire itself is not told: a TUN device's MTU is for `ip link set` to change, an interface's likewise.
    /// The [`PacketPort`](crate::PacketPort) of a stack over packets is, as by
    /// [`PacketPort::set_mtu`](crate::PacketPort::set_mtu).
    ///
    /// # Errors
    ///
    /// `InvalidInput`: below 68 (RFC 791), below 1,280 (RFC 8200 5) where the stack has an address of IPv6, or
    /// more than the wire was opened for (over packets: 65,535). Then nothing has changed. `NotConnected`: the
    /// stack has ended.
    ///
    /// ```
    /// # use whimbrel::Stack;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (builder, port) = Stack::builder().packets(1_420);
    /// let stack = builder.address("10.0.0.1", 24)?.build()?;
    /// stack.set_mtu(1_380).await?;
    /// assert_eq!((stack.mtu(), port.mtu()), (1_380, 1_380));
    /// let error = stack.set_mtu(67).await.unwrap_err();
    /// assert!(error.to_string().contains("an MTU of 67 bytes"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_mtu(&self, mtu: u16) -> io::Result<()> {
        let queues = self.packet_queues().map(Arc::clone);
        let at_wire = move || {
            if let Some(queues) = &queues {
                queues.set_mtu(mtu);
            }
        };
        set_mtu(self.mailboxes(), at_wire, mtu).await
    }

    fn first(&self) -> io::Result<&Arc<Mailbox>> {
        self.mailboxes().first().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Makes the same change at every shard.
    async fn change_all<E, C>(
        &self,
        change: impl Fn(&Arc<Mailbox>) -> C,
    ) -> io::Result<Result<(), E>>
    where
        E: Send + 'static,
        C: FnOnce(&mut Shard) -> Result<(), E> + Send + 'static,
    {
        change_all(self.mailboxes(), change).await
    }
}
