//! Pages of results: one file that needs no other file, no network and no script, light or dark as the
//! reader's browser is, and fit for paper. The only source of a page is a JSON document of `--json`;
//! each figure names its place in it.

use serde_json::Value;

mod bars;
mod curves;
mod distribution;
mod drawn;
mod figure;
mod full_grid;
mod glance;
mod heat;
mod hue;
mod lab;
mod loads;
mod markup;
mod narrative;
mod node;
mod outcome;
mod page;
mod rules;
mod scale;
mod sequence;
mod table;
mod timeline;
mod waits;

use node::Node;

/// The page of a document of `lab run`, `load`, `crr`, `bulk` or `sim grid`.
pub(crate) fn page(document: &Value) -> String {
    let root = Node::root(document);
    match root.at("schema").text() {
        "whimbrel.lab/1" => lab::page(&root),
        "whimbrel.grid/1" | "whimbrel.paths/1" => heat::page(&root),
        "whimbrel.full-grid/1" => full_grid::page(&root),
        "whimbrel.bulk/1" => loads::bulk(&root),
        _ => loads::load(&root),
    }
}
