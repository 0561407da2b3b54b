//! `whimbrel netstat -s`: the counters of a running stack, as netstat of several systems words them.

use std::fmt::Write;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use styles::{FREEBSD, LINUX, SOLARIS};

use crate::attach::{Attached, HostOption};
use crate::failure::Failure;
use crate::output;

mod styles;

/// Command line of `whimbrel netstat`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The process, by its number, its command or the path of its control socket [default: the only one
    /// that runs].
    #[arg(value_name = "PROCESS")]
    process: Option<String>,
    #[command(flatten)]
    host: HostOption,
    /// Counters, which is all that there is: `whimbrel ss` lists sockets.
    #[arg(short, long, required = true)]
    statistics: bool,
    /// The system whose names are used; a counter without a true equal there is left out.
    #[arg(long, value_enum, value_name = "SYSTEM", default_value_t = Style::Linux)]
    style: Style,
}

/// A system.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Style {
    /// net-tools.
    Linux,
    /// FreeBSD.
    Freebsd,
    /// Solaris and illumos.
    Solaris,
}

/// Prints the counters.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut attached = Attached::new(arguments.process.as_deref(), &arguments.host)?;
    let counters = Counted(attached.counters()?);
    output::print(&match arguments.style {
        Style::Linux => counters.linux(),
        Style::Freebsd => counters.freebsd(),
        Style::Solaris => counters.solaris(),
    })
}

struct Counted(Map<String, Value>);

impl Counted {
    fn value(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or(0)
    }

    /// Groups of sentences; of TcpExt and IpExt, counters without a sentence follow by name, unless 0.
    fn linux(&self) -> String {
        let mut text = String::new();
        for group in ["Ip", "Icmp", "Tcp", "Udp", "TcpExt", "IpExt", "Whimbrel"] {
            let _ = writeln!(text, "{group}:");
            for (name, value) in &self.0 {
                let Some(rest) = name.strip_prefix(group) else { continue };
                let is_of_longer = group != "TcpExt" && name.starts_with("TcpExt")
                    || group != "IpExt" && name.starts_with("IpExt");
                let value = value.as_u64().unwrap_or(0);
                if is_of_longer {
                    continue;
                }
                let sentence = LINUX.iter().find(|(counter, _)| counter == name);
                let _ = match sentence {
                    Some((_, sentence)) => writeln!(text, "    {value} {sentence}"),
                    None if value > 0 => writeln!(text, "    {rest}: {value}"),
                    None => Ok(()),
                };
            }
        }
        text
    }

    fn freebsd(&self) -> String {
        let mut text = String::new();
        for (protocol, lines) in FREEBSD {
            let _ = writeln!(text, "{protocol}:");
            for (counter, words) in *lines {
                let _ = writeln!(text, "\t{} {words}", self.value(counter));
            }
        }
        text + &self.left_out(FREEBSD.iter().flat_map(|(_, lines)| lines.iter().map(|it| it.0)))
    }

    fn solaris(&self) -> String {
        let mut text = String::new();
        for (protocol, lines) in SOLARIS {
            let _ = writeln!(text, "\n{protocol}");
            for (counter, name) in *lines {
                let _ = writeln!(text, "\t{name:<20}={:>6}", self.value(counter));
            }
        }
        text + &self.left_out(SOLARIS.iter().flat_map(|(_, lines)| lines.iter().map(|it| it.0)))
    }

    /// Says how many counters have no equal.
    fn left_out<'n>(&self, shown: impl Iterator<Item = &'n str>) -> String {
        let shown: Vec<_> = shown.collect();
        let rest =
            self.0.iter().filter(|(name, value)| **value != 0 && !shown.contains(&name.as_str()));
        format!(
            "\n{} other counters have no equal there: whimbrel nstat prints them\n",
            rest.count()
        )
    }
}
