//! The pages, as Markdown.

use std::fmt::Write as _;

use whimbrel_base::counters::Origin;
use whimbrel_base::tunables::{Name, Reading, Sharing, TunableGroup, Unit};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::counters::Counters;
use whimbrel_tcp::tunables::{TUNABLE_GROUPS, TUNABLES, TunableInfo};
use whimbrel_tcp::verdict::DropReason;

/// `docs/reference/tunables.md`.
pub(crate) fn tunables() -> String {
    let mut page = String::from(TUNABLES_HEAD);
    for info in TUNABLES {
        let default = info.value(&Tunables::default());
        let names = format!("[`{}`](#{})", info.name.text, anchor(info));
        writeln!(page, "| {names} | `{default}` | {} |", values(info)).unwrap();
    }
    for info in TUNABLES {
        page.push_str(&section(info));
    }
    page.push_str(GROUPS_HEAD);
    for group in TUNABLE_GROUPS {
        page.push_str(&group_line(group));
    }
    page
}

/// `docs/reference/counters.md`.
pub(crate) fn counters() -> String {
    let mut page = String::from(COUNTERS_HEAD);
    for (name, help, _) in Counters::default().iter() {
        writeln!(page, "| `{name}` | {help} |").unwrap();
    }
    page.push_str(DROPS_HEAD);
    for reason in DropReason::ALL {
        let origin = if reason.origin() == Origin::Linux { "Linux" } else { "" };
        writeln!(page, "| `{}` | {origin} | {} |", reason.name(), reason.help()).unwrap();
    }
    page
}

fn section(info: &TunableInfo) -> String {
    let mut text = format!("\n## {}\n\n{}\n\n", info.name.text, info.help);
    let mut line = |what: &str, value: String| {
        if !value.is_empty() {
            writeln!(text, "- {what}: {value}").unwrap();
        }
    };
    line("field", format!("`{}`", info.field));
    line("default", format!("`{}`", info.value(&Tunables::default())));
    line("values", values(info));
    line("without a unit", bare(&info.name).to_owned());
    let aliases: Vec<_> = info.aliases.iter().map(alias).collect();
    line("also", aliases.join(", "));
    line("source", info.rfc.to_owned());
    let (low, high) = match info.unit {
        Unit::Switch => ("off", "on"),
        Unit::Schedule => ("too short", "too long"),
        Unit::Ports => ("too few", "too many"),
        _ => ("too low", "too high"),
    };
    line(low, info.too_low.to_owned());
    line(high, info.too_high.to_owned());
    if let Unit::Choice(choices) = info.unit {
        text.push_str("\n| value | what it does |\n|---|---|\n");
        for choice in choices {
            writeln!(text, "| `{}` | {} |", choice.name, choice.help).unwrap();
        }
    }
    text
}

fn values(info: &TunableInfo) -> String {
    let range = info.range().map(|(least, most)| format!("`{least}` to `{most}`"));
    let range = range.unwrap_or_default();
    match info.unit {
        Unit::Bytes => format!("{range} bytes"),
        Unit::Time | Unit::Nanos | Unit::Port => range,
        Unit::Count(of) => format!("{range} {of}"),
        Unit::Ports => "up to 16 ports or stretches, as `8080,9000-9010`; or `none`".into(),
        Unit::Switch => "`on`, `off`".into(),
        Unit::Choice(choices) => {
            let names: Vec<_> = choices.iter().map(|choice| format!("`{}`", choice.name)).collect();
            names.join(", ")
        }
        Unit::Schedule => "a factor, `x1` to `x10`; or a list, as `1s,1s,2s`".into(),
    }
}

/// The meaning of a value without a unit, where it may be without.
fn bare(name: &Name) -> &'static str {
    match name.reading {
        Reading::Seconds => "seconds",
        Reading::Millis => "milliseconds",
        Reading::Micros => "microseconds",
        Reading::MillisAndEighth => "milliseconds, to which an eighth is added",
        Reading::TwiceMillis => "milliseconds, and twice as many",
        Reading::Twice => "twice as much",
        Reading::Same | Reading::Words(_) => "",
    }
}

fn alias(name: &Name) -> String {
    let note = match name.reading {
        Reading::Words(words) => {
            let words: Vec<_> =
                words.iter().map(|(theirs, ours)| format!("`{theirs}`: `{ours}`")).collect();
            words.join(", ")
        }
        _ => bare(name).to_owned(),
    };
    if note.is_empty() { format!("`{}`", name.text) } else { format!("`{}` ({note})", name.text) }
}

fn group_line(group: &TunableGroup) -> String {
    let names: Vec<_> = group.names.iter().map(alias).collect();
    let members: Vec<_> =
        group.members::<Tunables>().map(|info| format!("`{}`", info.name.text)).collect();
    let how = match group.sharing {
        Sharing::Each => "a value for each",
        Sharing::Same | Sharing::Words(_) => "one value for all",
        Sharing::Ascending => "three that do not fall; the last of them",
        Sharing::Bits(_) => "a number, a bit for each",
    };
    format!("| {} | {} | {how} | {} |\n", names.join(", "), members.join(", "), group.help)
}

/// As GitHub makes it of a heading.
fn anchor(info: &TunableInfo) -> String {
    info.name.text.replace('.', "")
}

const TUNABLES_HEAD: &str = "\
# Tunables

The rules of a stack, generated from the table in `crates/tcp/src/tunables/table`: mend it there, and
write this page anew by `WHIMBREL_BLESS=1 cargo test -p whimbrel-tcp reference`.

Set one by `whimbrel serve --set NAME=VALUE`, or as a field of `whimbrel_tcp::Tunables`. A name is
Linux' where Linux has one for the same thing, and `net.ipv4.` may be left out; the field's name and
the names of other systems work too, each with the unit that it has there. Times are typed as `60s`,
`200ms`, `1.125s`, `4us`, `256ns`, `2min` or `1h`; bytes as `65536`, `64k`, `1M` or `1G` (powers of
1,024); switches as `on` or `off`, `1` or `0`.

| name | default | values |
|---|---|---|
";

const GROUPS_HEAD: &str = "
## Groups

One name for several tunables.

| name | tunables | value | |
|---|---|---|---|
";

const COUNTERS_HEAD: &str = "\
# Counters

What a shard counts, generated from the tables in `crates/tcp/src/counters.rs` and `verdict.rs`: mend
it there, and write this page anew by `WHIMBREL_BLESS=1 cargo test -p whimbrel-tcp reference`.

`Counters::iter` yields name, text and value of each; `Counters::drops` each reason with its count.
Segments received are those accepted and those dropped: `TcpInSegs` is `WhimbrelInAccepted` and the
sum of the drops.

## Events

`Tcp…` and `TcpExt…` are the names of Linux' MIB (`nstat`, `/proc/net/snmp`, `/proc/net/netstat`) for
what Linux counts too; `Whimbrel…` is what it does not.

| name | what it counts |
|---|---|
";

const DROPS_HEAD: &str = "
## Segments dropped, by reason

Each segment that is not accepted is counted under one of these. Names marked are those of Linux'
`enum skb_drop_reason` for the same reason.

| name | | why |
|---|---|---|
";
