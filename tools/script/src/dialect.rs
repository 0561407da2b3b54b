//! Dialects of script files: they differ in defaults, and in the branch of `#ifdef`.
//!
//! A dialect belongs to the file, not to the stack under test: any file can run under any profile.
//! Most files show it by the features they use; a file that does not is in ours.

use alloc::borrow::Cow;
use alloc::string::String;

/// Dialect of a script file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// Tolerances of 12.5 %; the MTU is 1,520 on IPv6, which makes the MSS 1,460; `STANDARD` and
    /// `Linux` are defined.
    Linux,
    /// Tolerances of 5 %; the MTU is 1,500 on both families; `FreeBSD` is defined.
    FreeBsd,
    /// Tolerances of 12.5 %; the MTU is 1,500 on both families; `STANDARD` is defined.
    #[default]
    Whimbrel,
}

impl Dialect {
    /// Every dialect, in the order of the help.
    pub const ALL: [Self; 3] = [Self::Linux, Self::FreeBsd, Self::Whimbrel];

    /// Its name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::FreeBsd => "freebsd",
            Self::Whimbrel => "whimbrel",
        }
    }

    /// The dialect of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Names that `#ifdef` finds defined.
    pub const fn defined(self) -> &'static [&'static str] {
        match self {
            Self::Linux => &["STANDARD", "Linux"],
            Self::FreeBsd => &["FreeBSD"],
            Self::Whimbrel => &["STANDARD"],
        }
    }

    /// Dialect of a script's text; `None` if nothing in it shows one.
    ///
    /// A first line `#!… --dialect NAME` decides, then a line `// Profiles: …`, which our scripts
    /// have. Otherwise the first line decides with a word that only one system has: a kernel
    /// variable, a program, a constant. Text between `#ifdef` and `#endif`, in comments and in
    /// quotation marks is ignored. If no line has such a word, the MSS of the host's SYN on IPv6
    /// shows the MTU, and so the dialect.
    pub fn of(text: &str) -> Option<Self> {
        let lines = || Code::new(text);
        by_shebang(text)
            .or_else(|| by_profiles(text))
            .or_else(|| lines().find_map(|line| by_words(&line)))
            .or_else(|| by_mtu(lines))
    }
}

/// `#!/usr/bin/env -S whimbrel script run --dialect freebsd`. A profile name is no dialect.
fn by_shebang(text: &str) -> Option<Dialect> {
    let mut words = text.lines().next()?.strip_prefix("#!")?.split([' ', '\t', '=']);
    words.find(|word| *word == "--dialect")?;
    Dialect::by_name(words.next()?)
}

fn by_profiles(text: &str) -> Option<Dialect> {
    let is_ours = text.lines().take(FIRST_LINES).any(|line| line.starts_with("// Profiles: "));
    is_ours.then_some(Dialect::Whimbrel)
}

fn by_words(line: &str) -> Option<Dialect> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    line.split(|c| !is_part(c)).filter(|word| !word.is_empty()).find_map(by_word)
}

fn by_word(word: &str) -> Option<Dialect> {
    let has = |words: &[&str]| {
        words.iter().any(|known| match known.strip_suffix('*') {
            Some(prefix) => word.starts_with(prefix),
            None => *known == word || word.rsplit('/').next() == Some(*known),
        })
    };
    // Both systems use the same names for TCP options in `tcpi_options`.
    if word.starts_with("TCPI_OPT_") {
        return None;
    }
    match () {
        () if has(FREEBSD) => Some(Dialect::FreeBsd),
        () if has(LINUX) => Some(Dialect::Linux),
        () => None,
    }
}

/// Linux' scripts run on IPv6 with an MTU of 1,520, or with the MSS that it gives.
fn by_mtu<'a, I: Iterator<Item = Cow<'a, str>>>(lines: impl Fn() -> I) -> Option<Dialect> {
    if !lines().any(|line| line.contains("--ip_version=ipv6")) {
        return None;
    }
    let is_mtu = |line: &str| line.contains("--mtu=");
    if let Some(line) = lines().find(|line| is_mtu(line)) {
        return line.contains("--mtu=1520").then_some(Dialect::Linux);
    }
    let is_syn = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != ">").skip(1);
        words.next().is_some_and(|flags| flags.starts_with('S'))
    };
    let syn = lines().find(|line| is_syn(line) && line.contains("mss "))?;
    syn.contains("mss 1460").then_some(Dialect::Linux)
}

/// Lines of a script that may show its dialect.
struct Code<'a> {
    lines: core::str::Lines<'a>,
    in_comment: bool,
    conditionals: u32,
}

impl<'a> Code<'a> {
    fn new(text: &'a str) -> Self {
        Self { lines: text.lines(), in_comment: false, conditionals: 0 }
    }

    /// The line without its comments and quotations.
    fn plain(&mut self, mut line: &'a str) -> Cow<'a, str> {
        let mut plain = String::new();
        loop {
            if self.in_comment {
                let Some((_, rest)) = line.split_once("*/") else { return plain.into() };
                (line, self.in_comment) = (rest, false);
            }
            let Some(at) = line.find(['/', '"', '#']) else {
                return if plain.is_empty() { line.into() } else { (plain + line).into() };
            };
            let (before, rest) = line.split_at(at);
            plain += before;
            if rest.starts_with("//") || rest.starts_with('#') && plain.trim().is_empty() {
                return plain.into();
            }
            if let Some(rest) = rest.strip_prefix("/*") {
                (line, self.in_comment) = (rest, true);
                continue;
            }
            let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
            let (kept, behind) = quoted.map_or_else(|| rest.split_at(1), |(_, rest)| ("", rest));
            plain += kept;
            line = behind;
        }
    }
}

impl<'a> Iterator for Code<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.lines.next()?;
            match line.split_whitespace().next() {
                Some("#ifdef" | "#ifndef") => self.conditionals += 1,
                Some("#endif") => self.conditionals = self.conditionals.saturating_sub(1),
                _ if self.conditionals == 0 => return Some(self.plain(line)),
                _ => {}
            }
        }
    }
}

/// `// Profiles:` must stand within these first lines.
const FIRST_LINES: usize = 5;

/// Names that only FreeBSD has; `*` ends a prefix. FreeBSD's script runner calls the states
/// `TCPI_ESTABLISHED` and so on.
const FREEBSD: &[&str] = &[
    "net.inet.*",
    "net.inet6.*",
    "kern.*",
    "kldload",
    "kldstat",
    "kldunload",
    "sockstat",
    "tcpdrop",
    "ifconfig",
    "FIONWRITE",
    "FIONSPACE",
    "SO_NOSIGPIPE",
    "TCP_FUNCTION_BLK",
    "TCP_REMOTE_UDP_ENCAPS_PORT",
    "TCPS_*",
    "TCPI_*",
];

/// Names that only Linux has.
const LINUX: &[&str] = &[
    "net.ipv4.*",
    "net.ipv6.*",
    "net.core.*",
    "/proc/sys/*",
    "defaults.sh",
    "set_sysctls.py",
    "ethtool",
    "nstat",
    "ss",
    "tc",
    "SIOCINQ",
    "SIOCOUTQ",
    "SIOCOUTQNSD",
    "epoll_*",
    "EPOLL*",
    "MSG_MORE",
    "MSG_ZEROCOPY",
    "MSG_FASTOPEN",
    "MSG_ERRQUEUE",
    "SO_ZEROCOPY",
    "SO_MAX_PACING_RATE",
    "TCP_CORK",
    "TCP_QUICKACK",
    "TCP_DEFER_ACCEPT",
    "TCP_USER_TIMEOUT",
    "TCP_LINGER2",
    "TCP_SYNCNT",
    "TCP_WINDOW_CLAMP",
    "TCP_NOTSENT_LOWAT",
    "TCP_FASTOPEN_CONNECT",
    "TCP_FASTOPEN_NO_COOKIE",
    "TCP_SAVE_SYN",
    "TCP_INQ",
    "TCP_CM_INQ",
    "TCP_ESTABLISHED",
    "TCP_CLOSE_WAIT",
    "TCP_CA_*",
    "tcpi_ca_state",
    "tcpi_unacked",
    "tcpi_sacked",
    "tcpi_lost",
    "tcpi_retrans",
    "tcpi_reordering",
];

#[cfg(test)]
mod tests;
