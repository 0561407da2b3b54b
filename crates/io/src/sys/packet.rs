//! AF_PACKET sockets (packet(7)): the frames of an interface, received by way of a ring that the
//! kernel shares with this process (Linux `Documentation/networking/packet_mmap.rst`).

use std::ffi::CStr;
use std::io::{self, IoSlice, Read};
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{c_int, c_uint, sock_filter, tpacket2_hdr};

use super::{check, interface_request, own, send_messages};

/// A socket for whole frames. Non-blocking; it hears nothing before it is bound.
#[derive(Debug)]
pub struct PacketSocket(std::fs::File);

/// What the kernel says of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceState {
    /// Its number.
    pub index: u32,
    /// The largest packet, octets.
    pub mtu: u32,
    /// Whether it is up.
    pub up: bool,
    /// What its frames begin with: `ARPHRD_*`.
    pub hardware: u16,
    /// Its own station.
    pub station: [u8; 6],
}

impl PacketSocket {
    /// A socket of no interface. Needs CAP_NET_RAW.
    pub fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket takes no pointer.
        let fd = own(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        Ok(Self(fd.into()))
    }

    /// What is so of the interface called `name`, in the socket's network namespace.
    pub fn interface(&self, name: &CStr) -> io::Result<InterfaceState> {
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
        for (octet, given) in station.iter_mut().zip(hardware.sa_data) {
            *octet = given.cast_unsigned();
        }
        Ok(InterfaceState {
            index: index.cast_unsigned(),
            mtu: mtu.cast_unsigned(),
            up: c_int::from(flags) & libc::IFF_UP != 0,
            hardware: hardware.sa_family,
            station,
        })
    }

    /// Whether there is still an interface of this number.
    pub fn is_there(&self, index: u32) -> bool {
        let mut asked = interface_request(c"");
        asked.ifr_ifru.ifru_ifindex = index.cast_signed();
        // SAFETY: SIOCGIFNAME reads and writes one `ifreq`, which is lent exclusively.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCGIFNAME, &raw mut asked) == 0 }
    }

    /// Sets an option of the level SOL_PACKET whose value is a number.
    pub fn set(&self, option: c_int, value: c_int) -> io::Result<()> {
        self.set_option(libc::SOL_PACKET, option, &value)
    }

    /// Asks for the number that is the value of an option of the level SOL_PACKET.
    pub fn option(&self, option: c_int) -> io::Result<c_int> {
        self.read_option(libc::SOL_PACKET, option, 0)
    }

    /// Room for frames that wait outside the ring, octets, as far as the system allows.
    pub fn set_receive_buffer(&self, octets: c_int) {
        let forced = self.set_option(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &octets);
        if forced.is_err() {
            // Without CAP_NET_ADMIN up to net.core.rmem_max.
            let _ = self.set_option(libc::SOL_SOCKET, libc::SO_RCVBUF, &octets);
        }
    }

    /// Takes only the frames for which this program (classic BPF) answers other than 0.
    pub fn attach_filter(&self, program: &[sock_filter]) -> io::Result<()> {
        self.set_option(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &fprog(program))
    }

    /// Chooses among the sockets of a fanout group by the answer of this program (classic BPF).
    pub fn set_fanout_program(&self, program: &[sock_filter]) -> io::Result<()> {
        self.set_option(libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &fprog(program))
    }

    /// Makes the interface take frames for more than itself: `PACKET_MR_*`.
    pub fn add_membership(&self, index: u32, kind: c_int, station: [u8; 6]) -> io::Result<()> {
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

    /// Hears the frames of the interface of this number, of whatever protocol.
    pub fn bind(&self, index: u32) -> io::Result<()> {
        // SAFETY: `sockaddr_ll` is a C structure of integers, for which zeroes are a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index.cast_signed();
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address outlives the call, and `len` octets of it are its own.
        check(unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) })?;
        Ok(())
    }

    /// Makes the ring that frames come in by (TPACKET_V2), of `slots` slots of `slot` octets each,
    /// powers of two.
    pub fn ring(&self, slot: usize, slots: usize) -> io::Result<Ring> {
        self.set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as c_int)?;
        let block = slot.max(BLOCK);
        let request = libc::tpacket_req {
            tp_block_size: block as c_uint,
            tp_block_nr: (slot * slots / block) as c_uint,
            tp_frame_size: slot as c_uint,
            tp_frame_nr: slots as c_uint,
        };
        self.set_option(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ring::map(self.0.as_fd(), slot, slots)
    }

    /// How many frames were dropped for want of a free slot since it was last asked.
    pub fn take_drops(&self) -> io::Result<u32> {
        let nothing = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let statistics = self.read_option(libc::SOL_PACKET, libc::PACKET_STATISTICS, nothing)?;
        Ok(statistics.tp_drops)
    }

    /// The error that waits, which it clears.
    pub fn take_error(&self) -> io::Result<c_int> {
        self.read_option(libc::SOL_SOCKET, libc::SO_ERROR, 0)
    }

    /// The next frame that was too large for its slot, into `place`. Returns its octets.
    pub fn receive(&self, place: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(place)
    }

    /// Sends frames, each of several slices and at most [`super::seqpacket::MOST`] of them. Returns
    /// how many were taken: one at least.
    pub fn send(&self, frames: &[&[IoSlice<'_>]]) -> io::Result<usize> {
        send_messages(self.0.as_fd(), frames)
    }

    fn set_option<T>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        let (place, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
        // SAFETY: the kernel reads `len` octets, which are those of `value`; what they point to, if
        // anything, is borrowed beyond the call.
        check(unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, place, len) })?;
        Ok(())
    }

    fn read_option<T>(&self, level: c_int, option: c_int, mut value: T) -> io::Result<T> {
        let mut len = size_of::<T>() as libc::socklen_t;
        let place = (&raw mut value).cast();
        // SAFETY: the kernel writes `len` octets at most, which are those of `value`; all that is
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

/// The slots that the kernel puts frames into, one after the other and round again.
///
/// A slot belongs to the kernel until its status says that it is the user's, and to the user until
/// it is given back by [`Ring::release`].
#[derive(Debug)]
pub struct Ring {
    memory: NonNull<u8>,
    slot: usize,
    slots: usize,
    /// The next slot that the kernel fills, or has filled.
    next: usize,
}

/// A frame in its slot.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    /// `TP_STATUS_*`.
    pub status: u32,
    /// The frame's octets, of which those that did not fit are missing.
    pub len: usize,
    /// What stands in front of the frame: the offload header, if there is one, ends it.
    pub head: &'a [u8],
    /// The frame, as far as it fitted.
    pub frame: &'a [u8],
}

impl Ring {
    fn map(socket: BorrowedFd<'_>, slot: usize, slots: usize) -> io::Result<Self> {
        let (access, len) = (libc::PROT_READ | libc::PROT_WRITE, slot * slots);
        // SAFETY: the kernel chooses a place that is free, for as many octets as the ring has.
        let place = unsafe {
            let anywhere = std::ptr::null_mut();
            libc::mmap(anywhere, len, access, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(place.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { memory, slot, slots, next: 0 })
    }

    /// The frame in the slot `ahead` slots behind the next, if the kernel has filled it.
    pub fn waiting(&self, ahead: usize) -> Option<Slot<'_>> {
        if ahead >= self.slots {
            return None;
        }
        let status = self.status(ahead).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot lies in the mapping, and is the user's: the kernel writes nothing there
        // before `release`, which takes the ring exclusively and so ends this borrow.
        let octets = unsafe { std::slice::from_raw_parts(self.place(ahead).as_ptr(), self.slot) };
        let number = |at| Some(u32::from_ne_bytes(*octets.get(at..)?.first_chunk()?));
        let (len, kept) = (number(offset_of!(tpacket2_hdr, tp_len))?, number(KEPT)?);
        let mac = octets.get(offset_of!(tpacket2_hdr, tp_mac)..)?.first_chunk()?;
        let (head, rest) = octets.split_at_checked(u16::from_ne_bytes(*mac).into())?;
        Some(Slot { status, len: len as usize, head, frame: rest.get(..kept as usize)? })
    }

    /// Gives the next `count` slots back to the kernel.
    pub fn release(&mut self, count: usize) {
        for _ in 0..count.min(self.slots) {
            self.status(0).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.slots;
        }
    }

    fn status(&self, ahead: usize) -> &AtomicU32 {
        // SAFETY: each slot begins with its status, aligned to 16 octets, and both sides access it
        // as one word.
        unsafe { self.place(ahead).cast().as_ref() }
    }

    fn place(&self, ahead: usize) -> NonNull<u8> {
        // SAFETY: the product is less than the octets of the mapping.
        unsafe { self.memory.add((self.next + ahead) % self.slots * self.slot) }
    }
}

// SAFETY: the mapping is the process', and whoever has the ring is its only user.
unsafe impl Send for Ring {}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the place and length are those of `map`, and nothing borrows from them any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.slot * self.slots) };
    }
}

/// A classic program as the kernel takes it; it reads what `program` borrows.
fn fprog(program: &[sock_filter]) -> libc::sock_fprog {
    libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() }
}

/// What the kernel has in one piece of memory: slots do not cross its bounds.
const BLOCK: usize = 64 * 1024;
const KEPT: usize = offset_of!(tpacket2_hdr, tp_snaplen);
