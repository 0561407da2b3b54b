//! Requirements of commands: named by errors, checked by `whimbrel doctor`.

macro_rules! needs {
    ($($(#[doc = $doc:literal])* $need:ident = $name:literal, privileged: $is_privileged:literal, $purpose:literal;)*) => {
        /// Something that a command needs, or is better with.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Need { $($(#[doc = $doc])* $need,)* }

        impl Need {
            /// All of them, the basic ones first.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$need,)*];

            /// The name of its line.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$need => $name,)* }
            }

            /// True if only root, or a capability, gives it.
            pub(crate) const fn is_privileged(self) -> bool {
                match self { $(Self::$need => $is_privileged,)* }
            }

            /// Its purpose.
            pub(crate) const fn purpose(self) -> &'static str {
                match self { $(Self::$need => $purpose,)* }
            }
        }
    };
}

needs! {
    /// The driver of TUN and TAP.
    Tun = "tun-device", privileged: true, "-w tun: and tap:, script run --against kernel";
    /// Interfaces may be made.
    NetAdmin = "net-admin", privileged: true, "-w tun: and tap:, script run --against kernel";
    /// Network namespaces may be made.
    Namespaces = "net-namespaces", privileged: true, "script run --against kernel, lab run --real";
    /// Users may make namespaces.
    UserNamespaces = "user-namespaces", privileged: true, "run";
    /// Ports below 1,024 may be listened at.
    LowPorts = "low-ports", privileged: true, "serve -w kernel: at ports below 1024";
    /// Raw frames may be had.
    NetRaw = "net-raw", privileged: true, "-w packet:";
    /// Sockets for raw frames.
    Packet = "af-packet", privileged: true, "-w packet:";
    /// Sockets may share an interface's frames.
    Fanout = "packet-fanout", privileged: true, "-w packet: on several shards";
    /// Addresses at which the kernel answers.
    KernelAddresses = "kernel-addresses", privileged: false, "-w packet:, whose addresses must be others";
    /// Checksums of frames that come by a veth.
    VethChecksums = "veth-checksums", privileged: false, "captures of -w packet: on a veth";
    /// Sockets for frames that pass the kernel by.
    Xdp = "af-xdp", privileged: false, "frames past the kernel; no wire uses it yet";
    /// Memory may be locked.
    LockedMemory = "locked-memory", privileged: false, "frames past the kernel; no wire uses it yet";
    /// Sockets between processes may be made somewhere.
    UnixSockets = "unix-sockets", privileged: false, "-w unix:";
    /// A socket is an open file.
    OpenFiles = "open-files", privileged: false, "connections over -w kernel:, one file each";
    /// The kernel's ephemeral ports.
    KernelPorts = "kernel-ports", privileged: false, "connections over -w kernel: to one server";
    /// The kernel's congestion control.
    KernelCongestion = "kernel-congestion", privileged: false, "comparing bulk with bulk -w kernel:";
    /// Programs of others that cases are measured with.
    Programs = "programs", privileged: false, "lab run --real";
}
