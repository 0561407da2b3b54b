//! Tunables of a running stack, read and set by its control socket.

use std::fmt::Write;

use serde_json::{Value, json};
use whimbrel_tcp::TUNABLES;

use super::{Arguments, is_known, is_of, unknown};
use crate::attach::Attached;
use crate::failure::Failure;
use crate::output;

/// True if the words are about a running stack: one has a value, or the first names a process.
pub(super) fn is_meant(words: &[String]) -> bool {
    words.iter().any(|word| word.contains('=')) || process(words).is_some()
}

/// The process that the first word names: a number, a path, or a command, even if tunables have its name within theirs.
fn process(words: &[String]) -> Option<&str> {
    let first = words.first().filter(|word| !word.contains('='))?;
    let is_number = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
    let is_command = COMMANDS.contains(&first.as_str());
    (is_number || is_command || first.contains('/')).then_some(first)
}

/// Sets and prints tunables.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let words = &arguments.patterns;
    let process = process(words);
    let words = words.get(usize::from(process.is_some())..).unwrap_or_default();
    if arguments.write && words.iter().all(|word| !word.contains('=')) {
        return Err(Failure::usage("--write", "give KEY=VALUE, as in net.ipv4.tcp_fin_timeout=30"));
    }
    for pattern in words.iter().filter(|word| !word.contains('=')) {
        if !is_known(pattern) {
            return Err(unknown("PATTERN", pattern));
        }
    }
    let mut attached = Attached::new(process, &arguments.host)?;
    let mut shown = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((name, value)) => {
                let set = json!({ "name": name.trim(), "value": value.trim() });
                let mut answer = attached.ask("sysctl", set)?;
                extend(&mut shown, answer["tunables"].take());
            }
            None => list(&mut attached, |name| is_named(word, name), &mut shown)?,
        }
    }
    if words.is_empty() {
        list(&mut attached, |_| true, &mut shown)?;
    }
    output::print(&match arguments.json {
        true => document(&attached, &shown),
        false => text(&shown),
    })
}

fn list(
    attached: &mut Attached,
    is_wanted: impl Fn(&str) -> bool,
    shown: &mut Vec<Value>,
) -> Result<(), Failure> {
    let mut answer = attached.ask("sysctl", json!({}))?;
    let before = shown.len();
    extend(shown, answer["tunables"].take());
    let wanted = shown.split_off(before).into_iter();
    shown.extend(wanted.filter(|it| is_wanted(it["name"].as_str().unwrap_or_default())));
    Ok(())
}

fn extend(shown: &mut Vec<Value>, tunables: Value) {
    if let Value::Array(tunables) = tunables {
        shown.extend(tunables);
    }
}

fn is_named(pattern: &str, name: &str) -> bool {
    TUNABLES.iter().any(|info| info.name.text == name && is_of(pattern, info))
}

fn text(shown: &[Value]) -> String {
    let mut text = String::new();
    for tunable in shown {
        let field = |name: &str| tunable[name].as_str().unwrap_or_default();
        let setting = format!("{} = {}", field("name"), field("value"));
        let _ = writeln!(text, "{setting:48}  # {}", field("origin"));
    }
    text
}

fn document(attached: &Attached, shown: &[Value]) -> String {
    let document = json!({
        "schema": "whimbrel.sysctl-running/1",
        "pid": attached.pid,
        "command": attached.command,
        "tunables": shown,
    });
    format!("{document:#}\n")
}

/// Commands with a control socket.
const COMMANDS: [&str; 5] = ["serve", "forward", "load", "crr", "bulk"];
