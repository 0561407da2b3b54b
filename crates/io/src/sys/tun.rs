//! The device `/dev/net/tun`: an open file is a queue of an interface, once it is attached to one.

use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use bytes::BytesMut;
use libc::{c_char, c_int, c_uint, c_ulong};

use super::bpf::Program;
use super::{check, interface_request};

/// An open `/dev/net/tun`. Non-blocking. The effect of an ioctl(2) request depends on the device,
/// so the requests below are for no other file.
#[derive(Debug)]
pub(crate) struct TunFile(File);

impl TunFile {
    /// Opens the device, attached to no interface.
    pub(crate) fn open() -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        options.open("/dev/net/tun").map(Self)
    }

    /// Adopts a descriptor opened elsewhere; `None` if `fd` is not of this device. It becomes
    /// non-blocking, as do all descriptors that share its description.
    pub(crate) fn adopt(fd: OwnedFd) -> io::Result<Option<Self>> {
        let file = File::from(fd);
        let about = file.metadata()?;
        if !about.file_type().is_char_device() || about.rdev() != TUN_DEVICE {
            return Ok(None);
        }
        let fd = file.as_raw_fd();
        // SAFETY: F_GETFL takes no argument.
        let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
        // SAFETY: F_SETFL takes its argument by value.
        check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
        Ok(Some(Self(file)))
    }

    /// Returns the name of its interface, and the interface's flags (TUNGETIFF, `IFF_*` of
    /// linux/if_tun.h).
    pub(crate) fn interface(&self) -> io::Result<(CString, c_int)> {
        let mut request = interface_request(c"");
        // SAFETY: of this device TUNGETIFF writes one `ifreq`, which is lent exclusively.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNGETIFF, &raw mut request) })?;
        let name = request.ifr_name.map(c_char::cast_unsigned);
        let name = CStr::from_bytes_until_nul(&name).map_err(io::Error::other)?;
        // SAFETY: the kernel wrote the flags, and any bytes are a number.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        Ok((name.into(), flags.cast_unsigned().into()))
    }

    /// Returns the file, which reads and writes one frame at a time.
    pub(crate) fn file(&self) -> &File {
        &self.0
    }

    /// Reads a frame into `chunk`, which is empty, and the part that does not fit into `beyond`.
    /// Returns the bytes of both.
    pub(crate) fn read_into(&self, chunk: &mut BytesMut, beyond: &mut [u8]) -> io::Result<usize> {
        let room = chunk.spare_capacity_mut();
        let most = room.len();
        let iovec = |start: *mut u8, iov_len| libc::iovec { iov_base: start.cast(), iov_len };
        let places =
            [iovec(room.as_mut_ptr().cast(), most), iovec(beyond.as_mut_ptr(), beyond.len())];
        // SAFETY: both places are lent exclusively beyond the call, with the lengths that are
        // passed.
        let read =
            unsafe { libc::readv(self.0.as_raw_fd(), places.as_ptr(), places.len() as c_int) };
        let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the kernel wrote as many bytes of the chunk, or all of its room.
        unsafe { chunk.set_len(read.min(most)) };
        Ok(read)
    }

    /// Attaches it to the interface `name` as a queue, and creates the interface if it does not
    /// exist (TUNSETIFF).
    pub(crate) fn set_interface(&self, name: &CStr, flags: c_int) -> io::Result<()> {
        let mut request = interface_request(name);
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: of this device TUNSETIFF reads and writes one `ifreq`, which is lent exclusively.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
        Ok(())
    }

    /// Sets the number of bytes of the offload header in front of each frame (TUNSETVNETHDRSZ).
    pub(crate) fn set_vnet_header_size(&self, bytes: c_int) -> io::Result<()> {
        let place = &raw const bytes;
        // SAFETY: of this device TUNSETVNETHDRSZ reads one `int`, which outlives the call.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETVNETHDRSZ, place) })?;
        Ok(())
    }

    /// Sets the offloads that the kernel may leave to the stack (TUNSETOFFLOAD, `TUN_F_*`).
    pub(crate) fn set_offload(&self, features: c_uint) -> io::Result<()> {
        let features = c_ulong::from(features);
        // SAFETY: of this device TUNSETOFFLOAD takes its argument by value.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETOFFLOAD, features) })?;
        Ok(())
    }

    /// Sets the program whose result, modulo the number of queues, is the queue of a packet
    /// (TUNSETSTEERINGEBPF).
    pub(crate) fn set_steering(&self, program: &Program) -> io::Result<()> {
        let program: c_int = program.as_fd().as_raw_fd();
        let place = &raw const program;
        // SAFETY: of this device TUNSETSTEERINGEBPF reads one `int`, which outlives the call.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETSTEERINGEBPF, place) })?;
        Ok(())
    }
}

impl From<TunFile> for OwnedFd {
    fn from(tun: TunFile) -> Self {
        tun.0.into()
    }
}

/// Number of the device (`TUN_MINOR`, of the major for devices without their own).
const TUN_DEVICE: libc::dev_t = libc::makedev(10, 200);

impl AsFd for TunFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
