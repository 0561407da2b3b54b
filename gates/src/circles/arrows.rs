//! Which module of a crate names what of which other, and where.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::modules::{self, Modules, Path};

/// Something in one module, or in one within it, names something in another of the same parent.
pub(crate) struct Arrow {
    pub(crate) from: String,
    pub(crate) to: String,
    /// The files and lines that do.
    pub(crate) places: BTreeSet<(String, usize)>,
}

/// Every arrow between modules of one parent.
pub(crate) fn of(modules: &Modules) -> Vec<Arrow> {
    let mut arrows = BTreeMap::new();
    for (path, module) in modules.iter() {
        let mut names = Names { found: Vec::new() };
        module.items.iter().for_each(|item| names.visit_item(item));
        for (line, named) in names.found {
            let ends = modules.defining(path, &named).and_then(|to| siblings(path, &to));
            if let Some(ends) = ends {
                let places = arrows.entry(ends).or_insert_with(BTreeSet::new);
                places.insert((module.file.clone(), line));
            }
        }
    }
    arrows.into_iter().map(|((from, to), places)| Arrow { from, to, places }).collect()
}

/// The neighbouring modules where two paths part; `None` if one lies within the other.
fn siblings(from: &Path, to: &Path) -> Option<(String, String)> {
    let common = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    let upto = |path: &Path| path.get(..=common).map(|path| path.join("::"));
    upto(from).zip(upto(to))
}

/// The paths of several segments, with their lines.
struct Names {
    found: Vec<(usize, Path)>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !modules::is_for_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        self.visit_leaves(&import.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Path = path.segments.iter().map(|it| it.ident.to_string()).collect();
        if path.leading_colon.is_none() && segments.len() > 1 {
            self.found.push((path.span().start().line, segments));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_tokens(call.tokens.clone());
    }
}

impl Names {
    /// Each leaf of an import, at its own line.
    fn visit_leaves(&mut self, tree: &syn::UseTree, prefix: &mut Path) {
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.visit_leaves(&path.tree, prefix);
                prefix.pop();
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.visit_leaves(tree, prefix));
            }
            leaf => {
                let mut leaves = Vec::new();
                modules::flatten(leaf, prefix, &mut leaves);
                let line = leaf.span().start().line;
                self.found.extend(leaves.into_iter().map(|(_, path)| (line, path)));
            }
        }
    }

    /// Visits possible paths among the tokens of a macro's call or definition.
    fn visit_tokens(&mut self, tokens: TokenStream) {
        let mut path: Path = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) if colons == 2 && !path.is_empty() => {
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Ident(name) => {
                    self.end_path(line, &mut path);
                    line = name.span().start().line;
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.end_path(line, &mut path);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.visit_tokens(group.stream());
                    }
                }
            }
        }
        self.end_path(line, &mut path);
    }

    fn end_path(&mut self, line: usize, path: &mut Path) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.found.push((line, path));
        }
    }
}
