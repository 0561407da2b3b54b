//! The modules of one crate: their files, what is defined in each, and what each imports.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, UseTree};

use crate::tree::Tree;

/// A path as segments, from the root of the crate on.
pub(super) type Path = Vec<String>;

/// Every module of a crate that is not for tests alone.
#[derive(Default)]
pub(crate) struct Modules {
    by_path: BTreeMap<Path, Module>,
}

/// One module.
pub(super) struct Module {
    /// Its file. Modules written within another's file share that.
    pub(super) file: String,
    /// Its own items, without those of modules within.
    pub(super) items: Vec<Item>,
    /// The names it defines.
    defined: BTreeSet<String>,
    /// The names it imports, with the paths as they are written.
    imports: BTreeMap<String, Path>,
    /// Modules whose contents it imports with `*`.
    globs: Vec<Path>,
}

impl Modules {
    /// The modules of the crate whose root is the file `root`.
    pub(crate) fn read(root: &str, tree: &Tree) -> Self {
        let mut reader = Reader { tree, modules: Self::default() };
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        reader.read_file(root, folder, Vec::new());
        reader.modules
    }

    /// Every module with its path.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &Module)> {
        self.by_path.iter()
    }

    /// The module that defines what `path`, written in the module `from`, names; `None` if that is
    /// another crate's, or nothing.
    pub(super) fn defining(&self, from: &Path, path: &[String]) -> Option<Path> {
        self.resolve(from, path, MOST_HOPS)
    }

    /// Resolves a path through at most `hops` re-exports.
    fn resolve(&self, from: &Path, path: &[String], hops: usize) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.walk(Vec::new(), rest, hops),
            "self" => self.walk(from.clone(), rest, hops),
            "super" => {
                let mut parent = from.clone();
                parent.pop()?;
                self.resolve_from(parent, rest, hops)
            }
            name => {
                let module = self.by_path.get(from)?;
                let is_here = module.imports.contains_key(name)
                    || self.by_path.contains_key(&child(from, name));
                if is_here { self.walk(from.clone(), path, hops) } else { None }
            }
        }
    }

    /// Resolves a path after one `super`, which others may follow.
    fn resolve_from(&self, at: Path, path: &[String], hops: usize) -> Option<Path> {
        match path.first().map(String::as_str) {
            Some("super") => self.resolve(&at, path, hops),
            _ => self.walk(at, path, hops),
        }
    }

    /// Walks `path` down from the module `at`.
    fn walk(&self, at: Path, path: &[String], hops: usize) -> Option<Path> {
        let module = self.by_path.get(&at)?;
        let Some((name, rest)) = path.split_first() else { return Some(at) };
        let below = child(&at, name);
        if self.by_path.contains_key(&below) {
            return self.walk(below, rest, hops);
        }
        if module.defined.contains(name) {
            return Some(at);
        }
        let hops = hops.checked_sub(1)?;
        if let Some(import) = module.imports.get(name) {
            return self.resolve(&at, &[&import[..], rest].concat(), hops);
        }
        let through = |glob: &Path| {
            let found = self.resolve(&at, &[&glob[..], path].concat(), hops)?;
            self.by_path.get(&found)?.defined.contains(path.last()?).then_some(found)
        };
        // What a macro defines is seen nowhere: it is taken to be where it is sought.
        Some(module.globs.iter().find_map(through).unwrap_or(at))
    }
}

/// Reads one file after the other.
struct Reader<'a> {
    tree: &'a Tree,
    modules: Modules,
}

impl Reader<'_> {
    fn read_file(&mut self, file: &str, folder: &str, path: Path) {
        let Some(Ok(parsed)) = self.tree.text(file).map(syn::parse_file) else { return };
        self.add(file, folder, path, parsed.items);
    }

    fn add(&mut self, file: &str, folder: &str, path: Path, items: Vec<Item>) {
        let mut module = Module {
            file: file.to_owned(),
            items: Vec::new(),
            defined: BTreeSet::new(),
            imports: BTreeMap::new(),
            globs: Vec::new(),
        };
        for item in items.into_iter().filter(|item| !is_for_tests(item)) {
            if let Item::Mod(child) = item {
                let name = child.ident.to_string();
                let (folder, path) = (format!("{folder}/{name}"), [&path[..], &[name]].concat());
                match child.content {
                    Some((_, items)) => self.add(file, &folder, path, items),
                    None => {
                        let nested = format!("{folder}/mod.rs");
                        let flat = format!("{folder}.rs");
                        let file = if self.tree.text(&flat).is_some() { flat } else { nested };
                        self.read_file(&file, &folder, path);
                    }
                }
                continue;
            }
            module.note(&item);
            module.items.push(item);
        }
        self.modules.by_path.insert(path, module);
    }
}

impl Module {
    /// Notes what `item` defines or imports.
    fn note(&mut self, item: &Item) {
        let name = match item {
            Item::Use(import) => {
                let mut leaves = Vec::new();
                flatten(&import.tree, &mut Vec::new(), &mut leaves);
                for (name, path) in leaves {
                    match name {
                        Some(name) => drop(self.imports.insert(name, path)),
                        None => self.globs.push(path),
                    }
                }
                return;
            }
            Item::Const(item) => &item.ident,
            Item::Enum(item) => &item.ident,
            Item::Fn(item) => &item.sig.ident,
            Item::Static(item) => &item.ident,
            Item::Struct(item) => &item.ident,
            Item::Trait(item) => &item.ident,
            Item::Type(item) => &item.ident,
            Item::Union(item) => &item.ident,
            Item::Macro(item) => match &item.ident {
                Some(name) => name,
                None => return,
            },
            _ => return,
        };
        self.defined.insert(name.to_string());
    }
}

/// Every leaf of a tree of imports: the name that it gets here (`None` for everything), and its path.
pub(super) fn flatten(tree: &UseTree, prefix: &mut Path, leaves: &mut Vec<(Option<String>, Path)>) {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, leaves);
            prefix.pop();
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| flatten(tree, prefix, leaves));
        }
        UseTree::Glob(_) => leaves.push((None, prefix.clone())),
        UseTree::Name(leaf) if leaf.ident == "self" => {
            leaves.push((prefix.last().cloned(), prefix.clone()));
        }
        UseTree::Name(leaf) => {
            let name = leaf.ident.to_string();
            leaves.push((Some(name.clone()), child(prefix, &name)));
        }
        UseTree::Rename(leaf) => {
            let path = match leaf.ident == "self" {
                true => prefix.clone(),
                false => child(prefix, &leaf.ident.to_string()),
            };
            leaves.push((Some(leaf.rename.to_string()), path));
        }
    }
}

fn child(path: &[String], name: &str) -> Path {
    [path, &[name.to_owned()]].concat()
}

/// True if an item is compiled for tests alone.
pub(super) fn is_for_tests(item: &Item) -> bool {
    let attributes = match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

/// Limit of re-exports of re-exports.
const MOST_HOPS: usize = 16;
