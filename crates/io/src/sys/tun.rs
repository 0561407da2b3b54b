//! The device `/dev/net/tun`: an open one is a queue of an interface, once it has been told which.

use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use bytes::BytesMut;
use libc::{c_char, c_int, c_uint, c_ulong};

use super::bpf::Program;
use super::{check, interface_request};

/// An open `/dev/net/tun`. Non-blocking. What a request of ioctl(2) reads and writes depends on the
/// device, so that those below are for no other file.
#[derive(Debug)]
pub(crate) struct TunFile(File);

impl TunFile {
    /// Of no interface yet.
    pub(crate) fn open() -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        options.open("/dev/net/tun").map(Self)
    }

    /// One that somebody else opened; `None` if `fd` is of any other file. Non-blocking from now on, as is
    /// whatever shares its description.
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

    /// TUNGETIFF: the name of its interface, and its flags (`IFF_*` of linux/if_tun.h).
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

    /// To be read and written, a frame at a time.
    pub(crate) fn file(&self) -> &File {
        &self.0
    }

    /// Reads a frame into `chunk`, which is empty, and what there is no room for in it into `beyond`. Returns
    /// the bytes of both.
    pub(crate) fn read_into(&self, chunk: &mut BytesMut, beyond: &mut [u8]) -> io::Result<usize> {
        let room = chunk.spare_capacity_mut();
        let most = room.len();
        let iovec = |start: *mut u8, iov_len| libc::iovec { iov_base: start.cast(), iov_len };
        let places =
            [iovec(room.as_mut_ptr().cast(), most), iovec(beyond.as_mut_ptr(), beyond.len())];
        // SAFETY: both places are lent exclusively beyond the call, and of as many bytes as it is told.
        let read =
            unsafe { libc::readv(self.0.as_raw_fd(), places.as_ptr(), places.len() as c_int) };
        let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the kernel wrote as many bytes of the chunk, or all of its room.
        unsafe { chunk.set_len(read.min(most)) };
        Ok(read)
    }

    /// TUNSETIFF: makes of it a queue of the interface `name`, which is made if there is none.
    pub(crate) fn set_interface(&self, name: &CStr, flags: c_int) -> io::Result<()> {
        let mut request = interface_request(name);
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: of this device TUNSETIFF reads and writes one `ifreq`, which is lent exclusively.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
        Ok(())
    }

    /// TUNSETVNETHDRSZ: how many bytes of offload header precede each frame.
    pub(crate) fn set_vnet_header_size(&self, octets: c_int) -> io::Result<()> {
        let place = &raw const octets;
        // SAFETY: of this device TUNSETVNETHDRSZ reads one `int`, which outlives the call.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETVNETHDRSZ, place) })?;
        Ok(())
    }

    /// TUNSETOFFLOAD: what frames the kernel may pass to us (`TUN_F_*`).
    pub(crate) fn set_offload(&self, features: c_uint) -> io::Result<()> {
        let features = c_ulong::from(features);
        // SAFETY: of this device TUNSETOFFLOAD takes its argument by value.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETOFFLOAD, features) })?;
        Ok(())
    }

    /// TUNSETSTEERINGEBPF: the answer of this program, modulo the number of queues, is the queue that
    /// the kernel sends a packet to.
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

/// The number of the device (`TUN_MINOR`, of the major for what has none of its own).
const TUN_DEVICE: libc::dev_t = libc::makedev(10, 200);

impl AsFd for TunFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
