//! Subcommands of `whimbrel` do not name each other: what several of them need stands in a module that is none.
//!
//! The variants of `enum Tool` say which modules are subcommands.

use std::collections::BTreeSet;

use syn::{Fields, Item, Type};

use crate::circles::arrows::{self, Arrow};
use crate::circles::modules::Modules;
use crate::finding::Finding;
use crate::tree::Tree;

/// Subcommands that name another.
pub(crate) fn judge(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(ROOT) else { return Vec::new() };
    let subcommands = subcommands(text);
    if subcommands.is_empty() {
        let message = format!("`enum {TOOL}` names the modules of subcommands, and has none here");
        return vec![Finding::of_file(ROOT, message, "name it anew in gates/src/subcommands.rs")];
    }
    let between =
        |arrow: &Arrow| [&arrow.from, &arrow.to].into_iter().all(|end| subcommands.contains(end));
    let arrows = arrows::of(&Modules::read(ROOT, tree)).into_iter().filter(between);
    arrows.flat_map(|arrow| describe(&arrow)).collect()
}

fn describe(arrow: &Arrow) -> Vec<Finding> {
    let Arrow { from, to, places } = arrow;
    let message = format!("subcommands do not name each other, and `{from}` names `{to}`");
    places.iter().map(|(file, line)| Finding::at(file, *line, message.clone(), REMEDY)).collect()
}

/// The modules that have the arguments of a variant.
fn subcommands(text: &str) -> BTreeSet<String> {
    let items = syn::parse_file(text).map(|file| file.items).unwrap_or_default();
    let tool = items.into_iter().find_map(|item| match item {
        Item::Enum(item) if item.ident == TOOL => Some(item.variants),
        _ => None,
    });
    let fields = tool.into_iter().flatten().filter_map(|variant| match variant.fields {
        Fields::Unnamed(fields) => fields.unnamed.into_iter().next(),
        _ => None,
    });
    fields.filter_map(|field| module_of(&field.ty)).collect()
}

/// `serve` of `serve::Arguments`.
fn module_of(of: &Type) -> Option<String> {
    let Type::Path(path) = of else { return None };
    let segments = &path.path.segments;
    (segments.len() > 1).then(|| segments[0].ident.to_string())
}

const ROOT: &str = "tools/cli/src/main.rs";
const TOOL: &str = "Tool";
const REMEDY: &str = "move what both need into a module of its own, which is no subcommand";

#[cfg(test)]
mod tests;
