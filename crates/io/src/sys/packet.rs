//! AF_PACKET sockets (packet(7)): the frames of an interface, received in a ring that the kernel
//! shares with this process (Linux `Documentation/networking/packet_mmap.rst`).

use std::ffi::CStr;
use std::io::{self, IoSlice, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use libc::{c_int, c_uint, sock_filter};

use super::ring::{RingMemory, RingShape};
use super::{check, interface_request, own, send_messages};

/// A socket for whole frames. Non-blocking; it receives nothing before it is bound.
#[derive(Debug)]
pub(crate) struct PacketSocket(std::fs::File);

/// Properties of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InterfaceState {
    /// Its number in the kernel.
    pub(crate) index: u32,
    /// Size of the largest packet, in bytes.
    pub(crate) mtu: u32,
    /// True if it is up.
    pub(crate) up: bool,
    /// Hardware type of its frames: `ARPHRD_*`.
    pub(crate) hardware: u16,
    /// Its own hardware address.
    pub(crate) station: [u8; 6],
}

/// Options of the level SOL_PACKET whose value is an `int`, and which do not change a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PacketOption {
    /// `PACKET_COPY_THRESH`: frames that exceed their slot wait in the socket's queue.
    CopyThreshold,
    /// `PACKET_FANOUT`: the group that shares frames.
    Fanout,
    /// `PACKET_IGNORE_OUTGOING`: frames that the machine sends are not received.
    IgnoreOutgoing,
    /// `PACKET_VNET_HDR`: an offload header precedes each frame.
    VnetHeader,
}

impl PacketOption {
    const fn number(self) -> c_int {
        match self {
            Self::CopyThreshold => libc::PACKET_COPY_THRESH,
            Self::Fanout => libc::PACKET_FANOUT,
            Self::IgnoreOutgoing => libc::PACKET_IGNORE_OUTGOING,
            Self::VnetHeader => libc::PACKET_VNET_HDR,
        }
    }
}

impl PacketSocket {
    /// Creates a socket bound to no interface. Needs CAP_NET_RAW.
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket takes no pointer.
        let fd = own(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        Ok(Self(fd.into()))
    }

    /// Adopts a socket opened elsewhere; `None` if it is none for whole frames. It becomes non-blocking, as
    /// do all descriptors that share its description.
    pub(crate) fn adopt(fd: OwnedFd) -> io::Result<Option<Self>> {
        let socket = Self(fd.into());
        let option = |option| socket.read_option(libc::SOL_SOCKET, option, 0);
        let kind: (c_int, c_int) = match (option(libc::SO_DOMAIN), option(libc::SO_TYPE)) {
            (Ok(family), Ok(kind)) => (family, kind),
            (Err(error), _) | (_, Err(error)) if error.raw_os_error() != Some(libc::ENOTSOCK) => {
                return Err(error);
            }
            _ => return Ok(None),
        };
        if kind != (libc::AF_PACKET, libc::SOCK_RAW) {
            return Ok(None);
        }
        let fd = socket.0.as_raw_fd();
        // SAFETY: F_GETFL takes no argument.
        let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
        // SAFETY: F_SETFL takes its argument by value.
        check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
        Ok(Some(socket))
    }

    /// Returns the properties of the interface called `name`, in the socket's network namespace.
    pub(crate) fn interface(&self, name: &CStr) -> io::Result<InterfaceState> {
        let ask = |request| {
            let mut asked = interface_request(name);
            // SAFETY: each of the requests below reads and writes one `ifreq`, lent exclusively.
            check(unsafe { libc::ioctl(self.0.as_raw_fd(), request, &raw mut asked) })?;
            Ok::<_, io::Error>(asked.ifr_ifru)
        };
        let index = ask(libc::SIOCGIFINDEX)?;
        let mtu = ask(libc::SIOCGIFMTU)?;
        let flags = ask(libc::SIOCGIFFLAGS)?;
        let hardware = ask(libc::SIOCGIFHWADDR)?;
        // SAFETY: each request filled the field of the union that is read here, and all are
        // integers.
        let (index, mtu, flags, hardware) =
            unsafe { (index.ifru_ifindex, mtu.ifru_mtu, flags.ifru_flags, hardware.ifru_hwaddr) };
        let mut station = [0; 6];
        for (byte, given) in station.iter_mut().zip(hardware.sa_data) {
            *byte = given.cast_unsigned();
        }
        Ok(InterfaceState {
            index: index.cast_unsigned(),
            mtu: mtu.cast_unsigned(),
            up: c_int::from(flags) & libc::IFF_UP != 0,
            hardware: hardware.sa_family,
            station,
        })
    }

    /// True if an interface of this number exists.
    pub(crate) fn is_there(&self, index: u32) -> bool {
        let mut asked = interface_request(c"");
        asked.ifr_ifru.ifru_ifindex = index.cast_signed();
        // SAFETY: SIOCGIFNAME reads and writes one `ifreq`, which is lent exclusively.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCGIFNAME, &raw mut asked) == 0 }
    }

    /// Sets an option of the level SOL_PACKET.
    pub(crate) fn set(&self, option: PacketOption, value: c_int) -> io::Result<()> {
        self.set_option(libc::SOL_PACKET, option.number(), &value)
    }

    /// Returns the value of an option of the level SOL_PACKET.
    pub(crate) fn option(&self, option: PacketOption) -> io::Result<c_int> {
        self.read_option(libc::SOL_PACKET, option.number(), 0)
    }

    /// Sets the size in bytes of the queue outside the ring, as far as the system allows.
    pub(crate) fn set_receive_buffer(&self, bytes: c_int) {
        let forced = self.set_option(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes);
        if forced.is_err() {
            // Without CAP_NET_ADMIN up to net.core.rmem_max.
            let _ = self.set_option(libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes);
        }
    }

    /// Accepts only frames for which this program (classic BPF) returns a value other than 0.
    pub(crate) fn attach_filter(&self, program: &[sock_filter]) -> io::Result<()> {
        self.set_option(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &fprog(program))
    }

    /// Selects the socket of a fanout group by the result of this program (classic BPF).
    pub(crate) fn set_fanout_program(&self, program: &[sock_filter]) -> io::Result<()> {
        self.set_option(libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &fprog(program))
    }

    /// Makes the interface receive frames for other stations, too: `PACKET_MR_*`.
    pub(crate) fn add_membership(
        &self,
        index: u32,
        kind: c_int,
        station: [u8; 6],
    ) -> io::Result<()> {
        let mut address = [0; 8];
        address[..6].copy_from_slice(&station);
        let membership = libc::packet_mreq {
            mr_ifindex: index.cast_signed(),
            mr_type: kind as u16,
            mr_alen: 6,
            mr_address: address,
        };
        self.set_option(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
    }

    /// Starts receiving the frames of the interface of this number, of all protocols.
    pub(crate) fn bind(&self, index: u32) -> io::Result<()> {
        // SAFETY: `sockaddr_ll` is a C structure of integers, for which zeroes are a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index.cast_signed();
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address outlives the call, and `len` bytes of it are its own.
        check(unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) })?;
        Ok(())
    }

    /// Creates the receive ring (TPACKET_V2).
    pub(crate) fn ring(&self, shape: RingShape) -> io::Result<Ring> {
        let version = libc::tpacket_versions::TPACKET_V2 as c_int;
        self.set_option(libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        // The bounds of a shape let all of them fit.
        let block = shape.slot().max(BLOCK);
        let request = libc::tpacket_req {
            tp_block_size: block as c_uint,
            tp_block_nr: (shape.bytes() / block) as c_uint,
            tp_frame_size: shape.slot() as c_uint,
            tp_frame_nr: (shape.bytes() / shape.slot()) as c_uint,
        };
        self.set_option(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ok(Ring::over(Mapping::of(self.0.as_fd(), shape)?))
    }

    /// Returns how many frames were dropped because no slot was free, since the last call.
    pub(crate) fn take_drops(&self) -> io::Result<u32> {
        let nothing = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let statistics = self.read_option(libc::SOL_PACKET, libc::PACKET_STATISTICS, nothing)?;
        Ok(statistics.tp_drops)
    }

    /// Returns the pending error and clears it.
    pub(crate) fn take_error(&self) -> io::Result<c_int> {
        self.read_option(libc::SOL_SOCKET, libc::SO_ERROR, 0)
    }

    /// Receives the next frame that was too large for its slot into `place`. Returns its size in
    /// bytes.
    pub(crate) fn receive(&self, place: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(place)
    }

    /// Sends frames, each of several slices and at most [`super::seqpacket::MOST`] of them. Returns
    /// how many were taken, at least one.
    pub(crate) fn send(&self, frames: &[&[IoSlice<'_>]]) -> io::Result<usize> {
        send_messages(self.0.as_fd(), frames)
    }

    fn set_option<T>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        let (place, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
        // SAFETY: the kernel reads `len` bytes, which are those of `value`; what they point to, if
        // anything, is borrowed beyond the call.
        check(unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, place, len) })?;
        Ok(())
    }

    fn read_option<T>(&self, level: c_int, option: c_int, mut value: T) -> io::Result<T> {
        let mut len = size_of::<T>() as libc::socklen_t;
        let place = (&raw mut value).cast();
        // SAFETY: the kernel writes `len` bytes at most, which are those of `value`; all that is
        // asked for here are integers.
        check(unsafe { libc::getsockopt(self.0.as_raw_fd(), level, option, place, &raw mut len) })?;
        Ok(value)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<PacketSocket> for OwnedFd {
    fn from(socket: PacketSocket) -> Self {
        socket.0.into()
    }
}

/// The memory of a ring, shared with the kernel.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    shape: RingShape,
}

impl Mapping {
    /// Maps the ring of a socket. mmap(2) fails if the ring has another shape.
    fn of(socket: BorrowedFd<'_>, shape: RingShape) -> io::Result<Self> {
        let (access, len) = (libc::PROT_READ | libc::PROT_WRITE, shape.bytes());
        let anywhere = std::ptr::null_mut();
        // SAFETY: the kernel chooses a place that is free, for as many bytes as the ring has.
        let place =
            unsafe { libc::mmap(anywhere, len, access, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(place.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, shape })
    }
}

// SAFETY: the mapping has as many bytes as its shape, begins with a page and stays until it is
// dropped. The kernel fills a slot while its status says so, and sets that when it has.
unsafe impl RingMemory for Mapping {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn shape(&self) -> RingShape {
        self.shape
    }
}

// SAFETY: the mapping belongs to the process, and its owner is its only user.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the place and length are those of `of`, and nothing borrows from them any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.shape.bytes()) };
    }
}

/// Receive ring of a socket.
pub(crate) type Ring = super::ring::Ring<Mapping>;

/// Returns a classic program in the kernel's form, which borrows `program`.
fn fprog(program: &[sock_filter]) -> libc::sock_fprog {
    libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() }
}

/// Size of the kernel's blocks in bytes: slots do not cross their boundaries.
const BLOCK: usize = 64 * 1024;
