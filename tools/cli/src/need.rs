//! Requirements of commands: named by errors, checked by `whimbrel doctor`.

/// Something that a command needs, or is better with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// The driver of TUN and TAP.
    Tun,
    /// Interfaces may be made.
    NetAdmin,
    /// Network namespaces may be made.
    Namespaces,
    /// Ports below 1,024 may be listened at.
    LowPorts,
    /// Raw frames may be had.
    NetRaw,
    /// Sockets for raw frames.
    Packet,
    /// Sockets may share an interface's frames.
    Fanout,
    /// Checksums of frames that come by a veth.
    VethChecksums,
    /// Sockets for frames that pass the kernel by.
    Xdp,
    /// Memory may be locked.
    LockedMemory,
    /// Addresses at which the kernel answers.
    KernelAddresses,
    /// Sockets between processes may be made somewhere.
    UnixSockets,
    /// A socket is an open file.
    OpenFiles,
    /// The kernel's ephemeral ports.
    KernelPorts,
    /// The kernel's congestion control.
    KernelCongestion,
    /// Programs of others that cases are measured with.
    Programs,
}

impl Need {
    /// All of them, the basic ones first.
    pub(crate) const ALL: [Self; 16] = [
        Self::Tun,
        Self::NetAdmin,
        Self::Namespaces,
        Self::LowPorts,
        Self::NetRaw,
        Self::Packet,
        Self::Fanout,
        Self::KernelAddresses,
        Self::VethChecksums,
        Self::Xdp,
        Self::LockedMemory,
        Self::UnixSockets,
        Self::OpenFiles,
        Self::KernelPorts,
        Self::KernelCongestion,
        Self::Programs,
    ];

    /// The name of its line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tun => "tun-device",
            Self::NetAdmin => "net-admin",
            Self::Namespaces => "net-namespaces",
            Self::LowPorts => "low-ports",
            Self::NetRaw => "net-raw",
            Self::Packet => "af-packet",
            Self::Fanout => "packet-fanout",
            Self::VethChecksums => "veth-checksums",
            Self::Xdp => "af-xdp",
            Self::LockedMemory => "locked-memory",
            Self::KernelAddresses => "kernel-addresses",
            Self::UnixSockets => "unix-sockets",
            Self::OpenFiles => "open-files",
            Self::KernelPorts => "kernel-ports",
            Self::KernelCongestion => "kernel-congestion",
            Self::Programs => "programs",
        }
    }

    /// True if only root, or a capability, gives it.
    pub(crate) const fn is_privileged(self) -> bool {
        matches!(
            self,
            Self::Tun
                | Self::NetAdmin
                | Self::Namespaces
                | Self::LowPorts
                | Self::NetRaw
                | Self::Packet
                | Self::Fanout
        )
    }

    /// Its purpose.
    pub(crate) const fn purpose(self) -> &'static str {
        match self {
            Self::Tun | Self::NetAdmin => "-w tun: and tap:, script run --against kernel",
            Self::Namespaces => "script run --against kernel, lab run --real",
            Self::LowPorts => "serve -w kernel: at ports below 1024",
            Self::NetRaw | Self::Packet => "-w packet:",
            Self::Fanout => "-w packet: on several shards",
            Self::VethChecksums => "captures of -w packet: on a veth",
            Self::KernelAddresses => "-w packet:, whose addresses must be others",
            Self::Xdp | Self::LockedMemory => "frames past the kernel; no wire uses it yet",
            Self::UnixSockets => "-w unix:",
            Self::OpenFiles => "connections over -w kernel:, one file each",
            Self::KernelPorts => "connections over -w kernel: to one server",
            Self::KernelCongestion => "comparing bulk with bulk -w kernel:",
            Self::Programs => "lab run --real",
        }
    }
}
