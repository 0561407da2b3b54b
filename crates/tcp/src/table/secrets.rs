//! The keys of one stack: independent, so that what one use reveals tells nothing of another.

/// A key of SipHash: 128 bits.
#[derive(Clone, Copy)]
pub struct Key(pub [u8; 16]);

/// Every key. From the system's entropy, or from a seed where runs must repeat; equal on machines
/// of a group that complete each other's handshakes.
#[derive(Clone, Copy)]
pub struct Secrets {
    /// Initial sequence numbers (RFC 6528).
    pub isn: Key,
    /// Ephemeral ports (RFC 6056).
    pub ports: Key,
    /// Timestamp offsets (RFC 7323 7.1).
    pub timestamps: Key,
    /// SYN cookies (RFC 4987 3.6).
    pub cookies: Key,
    /// Fast Open cookies (RFC 7413).
    pub fast_open: Key,
    /// The flow table, so that nobody outside can choose colliding flows.
    pub flows: Key,
}
