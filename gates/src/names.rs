//! Whatever the library's public items mention of ours, a program can name by the library.
//!
//! A type that stands in a signature, a public field or a variant, and in no public module, can be had and
//! not written down: no function takes it, no struct keeps it. Read are the files that
//! `rustdoc --output-format json` writes, one for each crate, in which an item is known by the path of
//! its definition.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::Failure;
use crate::finding::Finding;

mod shape;

/// Types that cannot be named, by the files in `folder`.
pub(crate) fn judge_folder(folder: &str) -> Result<Vec<Finding>, Failure> {
    let mut crates = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "json")
            && let Some(name) = path.file_stem().and_then(|it| it.to_str())
        {
            crates.insert(name.to_owned(), serde_json::from_slice(&std::fs::read(&path)?)?);
        }
    }
    judge(crates)
}

fn judge(crates: BTreeMap<String, Value>) -> Result<Vec<Finding>, Failure> {
    let library = crates.get(LIBRARY).ok_or("no whimbrel.json: see check_names in .ci/run")?;
    let root = Item { in_crate: LIBRARY.to_owned(), id: library["root"].to_string() };
    let house = House::new(&crates);
    let mut named = BTreeSet::new();
    house.name_module(&root, &mut named);
    let mut unnamed = BTreeMap::new();
    for path in &named {
        for (mentioned, place) in house.mentions(path) {
            if mentioned.starts_with(LIBRARY) && !named.contains(&mentioned) {
                unnamed.entry(mentioned).or_insert(place);
            }
        }
    }
    println!("{LIBRARY}: {} public items of ours can be named", named.len());
    let finding = |(path, place)| {
        let message = format!("`{place}` mentions `{path}`, which no path in `{LIBRARY}` names");
        Finding::of_file(LIBRARY_ROOT, message, "re-export it there, or hide the place")
    };
    let mut findings: Vec<_> = unnamed.into_iter().map(finding).collect();
    findings.extend(shape::judge(&house));
    Ok(findings)
}

/// An item by its crate and its number there.
struct Item {
    in_crate: String,
    id: String,
}

/// The crates, and where each path is defined.
struct House<'a> {
    crates: &'a BTreeMap<String, Value>,
    defined: BTreeMap<String, Item>,
}

impl<'a> House<'a> {
    fn new(crates: &'a BTreeMap<String, Value>) -> Self {
        let mut defined = BTreeMap::new();
        for (name, document) in crates {
            let paths = document["paths"].as_object().into_iter().flatten();
            // A macro may share its path with a module.
            let own = |summary: &Value| summary["crate_id"] == 0 && summary["kind"] != "macro";
            for (id, summary) in paths.filter(|(_, summary)| own(summary)) {
                let item = Item { in_crate: name.clone(), id: id.clone() };
                defined.insert(joined(&summary["path"]), item);
            }
        }
        Self { crates, defined }
    }

    fn item(&self, in_crate: &str, id: &Value) -> &'a Value {
        &self.crates[in_crate]["index"][id.to_string()]
    }

    fn path(&self, in_crate: &str, id: &Value) -> Option<String> {
        let summary = &self.crates[in_crate]["paths"][id.to_string()];
        summary.is_object().then(|| joined(&summary["path"]))
    }

    /// Adds what the public items of a module are, and of those within it.
    fn name_module(&self, module: &Item, named: &mut BTreeSet<String>) {
        let inner = &self.crates[&module.in_crate]["index"][&module.id]["inner"]["module"];
        for id in values(&inner["items"]) {
            let item = self.item(&module.in_crate, id);
            let used = &item["inner"]["use"]["id"];
            let id = if used.is_null() { id } else { used };
            let path = self.path(&module.in_crate, id);
            if let Some(path) = path.filter(|_| item["visibility"] == "public") {
                self.name(path, named);
            }
        }
    }

    fn name(&self, path: String, named: &mut BTreeSet<String>) {
        let Some(item) = self.defined.get(&path) else { return };
        let definition = &self.crates[&item.in_crate]["index"][&item.id]["inner"];
        if !named.insert(path) {
            return;
        }
        self.name_module(item, named);
        // Another name for a type names it.
        let alias = &definition["type_alias"]["type"]["resolved_path"]["id"];
        if let Some(path) = self.path(&item.in_crate, alias) {
            self.name(path, named);
        }
    }

    /// The names that the public side of a definition mentions, with their places.
    fn mentions(&self, path: &str) -> BTreeMap<String, String> {
        let item = &self.defined[path];
        let mut found = BTreeMap::new();
        let definition = &self.crates[&item.in_crate]["index"][&item.id]["inner"];
        for (kind, definition) in definition.as_object().into_iter().flatten() {
            let scope = Scope { house: self, in_crate: &item.in_crate };
            match kind.as_str() {
                "struct" => scope.fields(definition, path, &mut found),
                "enum" => scope.variants(definition, path, &mut found),
                "trait" => scope.members(&definition["items"], path, &mut found),
                "function" | "type_alias" | "constant" => scope.note(definition, path, &mut found),
                _ => {}
            }
            scope.methods(&definition["impls"], path, &mut found);
        }
        found
    }
}

/// Places of one crate, and what they mention.
struct Scope<'a> {
    house: &'a House<'a>,
    in_crate: &'a str,
}

type Found = BTreeMap<String, String>;

impl Scope<'_> {
    fn item(&self, id: &Value) -> &Value {
        self.house.item(self.in_crate, id)
    }

    fn fields(&self, definition: &Value, path: &str, found: &mut Found) {
        let kind = &definition["kind"];
        let ids = values(&kind["plain"]["fields"]).chain(values(&kind["tuple"]));
        for field in ids.map(|id| self.item(id)).filter(|it| it["visibility"] == "public") {
            self.note(&field["inner"], &within(path, field), found);
        }
    }

    fn variants(&self, definition: &Value, path: &str, found: &mut Found) {
        for variant in values(&definition["variants"]).map(|id| self.item(id)) {
            let kind = &variant["inner"]["variant"]["kind"];
            for id in values(&kind["struct"]["fields"]).chain(values(&kind["tuple"])) {
                self.note(&self.item(id)["inner"], &within(path, variant), found);
            }
        }
    }

    fn members(&self, ids: &Value, path: &str, found: &mut Found) {
        for member in values(ids).map(|id| self.item(id)) {
            self.note(&member["inner"], &within(path, member), found);
        }
    }

    /// Public methods, and of traits that are implemented their associated types.
    fn methods(&self, impls: &Value, path: &str, found: &mut Found) {
        for block in values(impls).map(|id| &self.item(id)["inner"]["impl"]) {
            if block["is_synthetic"] == true || !block["blanket_impl"].is_null() {
                continue;
            }
            for member in values(&block["items"]).map(|id| self.item(id)) {
                let is_shown = match &block["trait"] {
                    Value::Null => member["visibility"] == "public",
                    _ => !member["inner"]["assoc_type"].is_null(),
                };
                if is_shown {
                    self.note(&member["inner"], &within(path, member), found);
                }
            }
        }
    }

    /// Each path to a type in a value, however deep.
    fn note(&self, value: &Value, place: &str, found: &mut Found) {
        match value {
            Value::Object(members) => {
                let id = &value["resolved_path"]["id"];
                if let Some(path) = self.house.path(self.in_crate, id) {
                    found.entry(path).or_insert_with(|| place.to_owned());
                }
                members.values().for_each(|it| self.note(it, place, found));
            }
            Value::Array(list) => list.iter().for_each(|it| self.note(it, place, found)),
            _ => {}
        }
    }
}

fn within(path: &str, item: &Value) -> String {
    format!("{path}::{}", item["name"].as_str().unwrap_or_default())
}

fn joined(path: &Value) -> String {
    values(path).filter_map(Value::as_str).collect::<Vec<_>>().join("::")
}

fn values(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

const LIBRARY: &str = "whimbrel";
const LIBRARY_ROOT: &str = "crates/whimbrel/src/lib.rs";

#[cfg(test)]
mod tests;
