//! Loads BPF programs with plain bpf(2), and pins threads to processors.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::{c_int, c_long};

use super::{check, own};

/// One instruction: `struct bpf_insn` of linux/bpf.h.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct Instruction {
    /// The operation: class, source and size.
    pub(crate) code: u8,
    /// The register to change, and in the upper four bits the one to read.
    pub(crate) registers: u8,
    /// Distance of a jump.
    pub(crate) offset: i16,
    /// Constant of the operation.
    pub(crate) immediate: i32,
}

/// A program that the kernel has accepted.
#[derive(Debug)]
pub(crate) struct Program(OwnedFd);

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Argument of BPF_PROG_LOAD: the front of `union bpf_attr`.
#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
}

/// Loads a program that only reads packets. Needs CAP_BPF, or CAP_SYS_ADMIN if the system requires
/// it.
pub(crate) fn load(program: &[Instruction]) -> io::Result<Program> {
    let load = Load {
        kind: BPF_PROG_TYPE_SOCKET_FILTER,
        count: program.len() as u32,
        instructions: program.as_ptr().expose_provenance() as u64,
        license: LICENSE.as_ptr().expose_provenance() as u64,
    };
    let len = size_of::<Load>() as c_long;
    // SAFETY: the kernel reads `len` bytes, and from there the instructions and the license, all
    // of which outlive the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const load, len) };
    own(c_int::try_from(fd).unwrap_or(-1)).map(Program)
}

/// Pins the calling thread to this processor.
pub fn pin_to(processor: usize) -> io::Result<()> {
    // SAFETY: `cpu_set_t` is an array of integers, for which zeroes are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if processor >= 8 * size_of_val(&set) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number lies within the set.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the kernel reads the set, which outlives the call; 0 is the calling thread.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) }).map(|_| ())
}

// From linux/bpf.h.
const BPF_PROG_LOAD: c_int = 5;
const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;
/// License that the kernel requires of programs that call its helpers; this one calls none.
const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";
