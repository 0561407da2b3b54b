//! The steering program `(source port ^ destination port) / 2 mod queues` for the kernel: in
//! classic BPF for AF_PACKET's fanout, in eBPF for TUN. A packet that is not a whole TCP segment
//! behind a plain IP header goes to queue 0.

use libc::sock_filter;

use crate::packet_filter::{load, operation, skip};
use crate::sys::bpf::Instruction;

/// Returns the program for a fanout of `queues` sockets; the kernel takes its result modulo that
/// number. Offsets count from the network header, because the two kinds of sockets differ in where
/// a packet begins.
pub fn classic(queues: u16) -> [sock_filter; 21] {
    let net = libc::SKF_NET_OFF.cast_unsigned();
    let protocol = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL).cast_unsigned();
    let indirect = libc::BPF_LD | libc::BPF_H | libc::BPF_IND;
    let modulo = libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K;
    [
        load(libc::BPF_W, protocol),
        skip(libc::BPF_JEQ, libc::ETH_P_IPV6 as u32, 7, 0),
        skip(libc::BPF_JEQ, libc::ETH_P_IP as u32, 0, 17),
        load(libc::BPF_B, net + V4_PROTOCOL),
        skip(libc::BPF_JEQ, TCP, 0, 15),
        load(libc::BPF_H, net + V4_FRAGMENT),
        skip(libc::BPF_JSET, FRAGMENT_BITS, 13, 0),
        operation(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, net),
        operation(libc::BPF_JMP, 3),
        load(libc::BPF_B, net + V6_PROTOCOL),
        skip(libc::BPF_JEQ, TCP, 0, 9),
        operation(libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM, V6_HEADER),
        operation(indirect, net),
        operation(libc::BPF_ST, 0),
        operation(indirect, net + 2),
        operation(libc::BPF_LDX | libc::BPF_W | libc::BPF_MEM, 0),
        operation(libc::BPF_ALU | libc::BPF_XOR | libc::BPF_X, 0),
        operation(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, 1),
        operation(modulo, queues.max(1).into()),
        operation(libc::BPF_RET | libc::BPF_A, 0),
        operation(libc::BPF_RET, 0),
    ]
}

/// Returns the program for a TUN device of `queues` queues, whose packets begin with their IP
/// header. A read beyond the packet's end ends the program with 0.
pub(crate) fn extended(queues: u16) -> [Instruction; 26] {
    let number = |code, to, value: u32| instruction(code, to, 0, 0, value);
    let unless = |value, beyond| instruction(JNE, R0, 0, beyond, value);
    [
        instruction(MOV_REGISTER, R6, R1, 0, 0),
        number(LOAD_BYTE, 0, 0),
        instruction(MOV_REGISTER, R7, R0, 0, 0),
        number(SHIFT_RIGHT, R0, 4),
        instruction(JEQ, R0, 0, 9, 6),
        unless(4, 18),
        number(AND, R7, 0xf),
        number(SHIFT_LEFT, R7, 2),
        number(LOAD_BYTE, 0, V4_PROTOCOL),
        unless(TCP, 14),
        number(LOAD_HALF, 0, V4_FRAGMENT),
        number(AND, R0, FRAGMENT_BITS),
        unless(0, 11),
        instruction(JA, 0, 0, 3, 0),
        number(LOAD_BYTE, 0, V6_PROTOCOL),
        unless(TCP, 8),
        number(MOV, R7, V6_HEADER),
        instruction(LOAD_HALF_BEHIND, 0, R7, 0, 0),
        instruction(MOV_REGISTER, R8, R0, 0, 0),
        instruction(LOAD_HALF_BEHIND, 0, R7, 0, 2),
        instruction(XOR_REGISTER, R0, R8, 0, 0),
        number(SHIFT_RIGHT, R0, 1),
        number(MODULO, R0, queues.max(1).into()),
        number(EXIT, 0, 0),
        number(MOV, R0, 0),
        number(EXIT, 0, 0),
    ]
}

const fn instruction(code: u8, to: u8, from: u8, offset: i16, value: u32) -> Instruction {
    Instruction { code, registers: from << 4 | to, offset, immediate: value.cast_signed() }
}

const TCP: u32 = 6;
const V4_FRAGMENT: u32 = 6;
const V4_PROTOCOL: u32 = 9;
/// The flag for more fragments, and the fragment's offset.
const FRAGMENT_BITS: u32 = 0x3fff;
const V6_PROTOCOL: u32 = 6;
const V6_HEADER: u32 = 40;

// RFC 9669 3: registers, and operations by class, source and kind. Loads from a packet take the
// context from register 6, return in 0, and change 1 to 5.
const R0: u8 = 0;
const R1: u8 = 1;
const R6: u8 = 6;
const R7: u8 = 7;
const R8: u8 = 8;
const LOAD_BYTE: u8 = 0x30;
const LOAD_HALF: u8 = 0x28;
const LOAD_HALF_BEHIND: u8 = 0x48;
const MOV: u8 = 0xb7;
const MOV_REGISTER: u8 = 0xbf;
const AND: u8 = 0x57;
const SHIFT_LEFT: u8 = 0x67;
const SHIFT_RIGHT: u8 = 0x77;
const XOR_REGISTER: u8 = 0xaf;
const MODULO: u8 = 0x97;
const JA: u8 = 0x05;
const JEQ: u8 = 0x15;
const JNE: u8 = 0x55;
const EXIT: u8 = 0x95;
