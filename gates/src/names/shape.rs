//! A struct can gain a field without breaking programs, and an async function says what a dropped future does.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{House, Item, LIBRARY, LIBRARY_ROOT, joined, values, within};
use crate::finding::Finding;

/// Open structs and undocumented futures among what programs use.
pub(super) fn judge(house: &House<'_>) -> Vec<Finding> {
    let root = Item { in_crate: LIBRARY.to_owned(), id: house.crates[LIBRARY]["root"].to_string() };
    // `parts` is the crates below, for what the rest mentions.
    let mut named = BTreeSet::from([format!("{LIBRARY}::parts")]);
    house.name_module(&root, &mut named);
    let mut findings = Vec::new();
    for path in named.iter().filter(|path| house.defined.contains_key(*path)) {
        let item = &house.defined[path];
        let definition = &house.crates[&item.in_crate]["index"][&item.id];
        if is_open(house, &item.in_crate, definition) && !CLOSED.contains(&path.as_str()) {
            let message = format!("`{path}` has only public fields and is not `#[non_exhaustive]`");
            findings.push(Finding::of_file(LIBRARY_ROOT, message, CLOSE));
        }
        if item.in_crate == LIBRARY {
            let undocumented = futures(house, path, definition);
            findings.extend(undocumented.into_iter().map(|place| {
                let message = format!("the docs of `{place}` have no `{CANCEL_SAFETY}`");
                Finding::of_file(LIBRARY_ROOT, message, SAY)
            }));
        }
    }
    findings
}

fn is_open(house: &House<'_>, in_crate: &str, definition: &Value) -> bool {
    let plain = &definition["inner"]["struct"]["kind"]["plain"];
    let mut fields = values(&plain["fields"]).map(|id| house.item(in_crate, id)).peekable();
    fields.peek().is_some()
        && plain["has_stripped_fields"] != true
        && fields.all(|field| field["visibility"] == "public")
        && !definition["attrs"].to_string().contains("non_exhaustive")
}

/// Public functions of an item that return a future, without the section.
fn futures(house: &House<'_>, path: &str, definition: &Value) -> Vec<String> {
    let inner = &definition["inner"];
    let mut found = Vec::new();
    if is_undocumented(house, definition) {
        found.push(path.to_owned());
    }
    for kind in ["struct", "enum"] {
        for block in values(&inner[kind]["impls"]).map(|id| house.item(LIBRARY, id)) {
            let block = &block["inner"]["impl"];
            if !block["trait"].is_null() {
                continue;
            }
            let methods = values(&block["items"]).map(|id| house.item(LIBRARY, id));
            let public = methods.filter(|it| it["visibility"] == "public");
            let undocumented = public.filter(|it| is_undocumented(house, it));
            found.extend(undocumented.map(|method| within(path, method)));
        }
    }
    found
}

fn is_undocumented(house: &House<'_>, item: &Value) -> bool {
    let function = &item["inner"]["function"];
    let output = &function["sig"]["output"];
    let returns = values(&output["impl_trait"]).any(|bound| {
        let id = &bound["trait_bound"]["trait"]["id"];
        let path = &house.crates[LIBRARY]["paths"][id.to_string()]["path"];
        joined(path).ends_with("::Future")
    });
    let is_future = function["header"]["is_async"] == true || returns;
    is_future && !item["docs"].as_str().unwrap_or_default().contains(CANCEL_SAFETY)
}

const CANCEL_SAFETY: &str = "# Cancel safety";
const CLOSE: &str = "add the attribute and a constructor, or a line to CLOSED with the reason";
const SAY: &str = "say there what happens if the future is dropped";

/// Structs with all the fields that they will ever have, or that programs make anew.
const CLOSED: [&str; 20] = [
    // A pair by definition.
    "whimbrel_stack::config::InterfaceAddress",
    "whimbrel_wire::flow::Endpoint",
    "whimbrel_tcp::buffer_size::SizeRange",
    "whimbrel_recovery::cc::state::Control",
    // The values of one key of a link, as they are typed.
    "whimbrel_link::config::BurstLoss",
    "whimbrel_link::config::Policing",
    "whimbrel_link::config::Reorder",
    "whimbrel_link::config::Step",
    "whimbrel_link::config::TargetedDrop",
    // The macro `tunables!` makes one for each tunable, in any crate.
    "whimbrel_base::tunables::info::TunableInfo",
    // A device makes one for each frame.
    "whimbrel_base::packet::SegMeta",
    "whimbrel_stack::frame::RxFrame",
    // The tests of a program's own congestion control make them.
    "whimbrel_recovery::cc::event::Ack",
    "whimbrel_recovery::cc::event::Loss",
    "whimbrel_recovery::cc::event::LostText",
    "whimbrel_recovery::cc::event::Rate",
    "whimbrel_recovery::cc::event::Sent",
    "whimbrel_recovery::cc::event::SlowStart",
    "whimbrel_recovery::cc::event::Timeout",
    // `Tunables { sack: false, ..Tunables::default() }` stays right with each new tunable.
    "whimbrel_tcp::tunables::Tunables",
];
