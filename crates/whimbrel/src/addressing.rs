//! Adding and removing addresses and routes at run time (`ip address`, `ip route`).

use std::io;
use std::sync::Arc;

use tokio::sync::oneshot;
use whimbrel_io::DuplicateAddressDetection;
use whimbrel_stack::{InterfaceAddress, Route, Shard};
use whimbrel_wire::Address;

use crate::address_port::AddressCheck;
use crate::changes::{change_all, set_mtu};
use crate::mailbox::{Mailbox, Request};
use crate::stack::inspect;
use crate::{Stack, ToAddress, fault};

impl Stack {
    /// Adds an address with its prefix length, and the route to its network. Over `tap:` and `packet:`
    /// the stack first checks for 0.9 s that no other host has it (unless the wire has `dad=off`), then
    /// announces it. Listeners and sockets at the unspecified address receive its packets from then on,
    /// and `bind` and `connect` can use it.
    ///
    /// Behind a TUN device, the kernel also needs a route to the new address.
    ///
    /// # Cancel safety
    ///
    /// After the future was dropped, the address may have been added or not, or at some shards
    /// only. Call it again, or [`Stack::remove_address`].
    ///
    /// # Errors
    ///
    /// `AddrInUse`: the stack has the address, or another host, which the message names.
    /// `InvalidInput`: not an address of a single host, not usable on this wire, or a loopback address
    /// (every host has 127.0.0.1 and ::1 already). `QuotaExceeded`: 65,534 addresses, or 64 being
    /// checked. `NotConnected`: the stack has ended.
    ///
    /// ```
    /// # use whimbrel::{Stack, TcpListener, TcpStream};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (left, right) = Stack::pair()?;
    /// let listener = TcpListener::bind(&left, "0.0.0.0:80").await?;
    /// left.add_address("10.0.0.7", 24).await?;
    /// let stream = TcpStream::connect(&right, "10.0.0.7:80").await?;
    /// let (accepted, _) = listener.accept().await?;
    /// assert_eq!(accepted.local_addr()?, stream.peer_addr()?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn add_address(&self, addr: impl ToAddress, prefix_len: u8) -> io::Result<()> {
        let address = InterfaceAddress::new(addr.to_address()?, prefix_len);
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

    /// Removes an address. Its streams fail with `ConnectionAborted`, and their peers receive no
    /// segment, because RFC 4862 5.5.4 forbids sending from a removed address. (Linux keeps such
    /// connections until they time out.) Listeners and UDP sockets bound to it stay, but receive
    /// nothing until it is added again. The call walks all connections.
    ///
    /// # Cancel safety
    ///
    /// After the future was dropped, the address may have been removed or not, or at some shards
    /// only. Call it again.
    ///
    /// # Errors
    ///
    /// `AddrNotAvailable`: not an address of this stack. `NotConnected`: the stack has ended.
    pub async fn remove_address(&self, addr: impl ToAddress) -> io::Result<()> {
        let addr = Address::from(addr.to_address()?);
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

    /// Adds a route. The longest prefix wins, then the smallest metric. Existing connections use it
    /// from their next packet on.
    ///
    /// # Cancel safety
    ///
    /// After the future was dropped, the route may have been added or not, or at some shards only.
    /// Call it again, or [`Stack::remove_route`].
    ///
    /// # Errors
    ///
    /// `AlreadyExists`: the network has a route by this gateway. `InvalidInput`: not a network, or a
    /// gateway in no directly connected network. `QuotaExceeded`: 65,536 routes.
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

    /// Removes the route to this network by this gateway (or the direct route), whatever its metric.
    /// Destinations without another route become unreachable: `connect` fails, and connections wait for
    /// a route until they time out.
    ///
    /// # Cancel safety
    ///
    /// After the future was dropped, the route may have been removed or not, or at some shards
    /// only. Call it again.
    ///
    /// # Errors
    ///
    /// `NotFound`: no such route was added. The route to an address' own network is removed with the
    /// address.
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

    /// Returns the MTU of the link: the largest IP packet that the stack sends, in bytes.
    pub fn mtu(&self) -> u16 {
        self.mailboxes().first().map_or(0, |first| first.ways().mtu())
    }

    /// Sends IP packets of up to `mtu` bytes from now on, for example because the path of a tunnel
    /// changed. New connections advertise the matching MSS. If the MTU becomes smaller, data in flight
    /// that no longer fits is resegmented and sent again. Segments of existing connections never become
    /// larger. The call walks all connections.
    ///
    /// The MTU of a TUN device or an interface does not change; use `ip link set`. The
    /// [`PacketPort`](crate::PacketPort) of a stack follows, as with
    /// [`PacketPort::set_mtu`](crate::PacketPort::set_mtu).
    ///
    /// # Cancel safety
    ///
    /// After the future was dropped, the MTU may have changed or not, or at some shards only. Call
    /// it again.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: below 68 (RFC 791), below 1,280 (RFC 8200 5) if the stack has an IPv6 address,
    /// or above the MTU with which the wire was opened (over packets: 65,535). Nothing has changed
    /// then. `NotConnected`: the stack has ended.
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

    /// Applies a change to every shard.
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
