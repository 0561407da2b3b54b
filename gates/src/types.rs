//! The types of each crate, by the files that give them methods.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::layout::holds_tests;
use crate::tree::Tree;

/// The crate's folder and the type's name. Types of one name in one crate count as one.
pub(crate) type TypeName = (String, String);

/// One method that an `impl` block without a trait defines.
pub(crate) struct Method {
    /// Its file, from the root of the repository.
    pub(crate) file: String,
    /// The line of its name.
    pub(crate) line: usize,
    /// Its name.
    pub(crate) name: String,
    /// True if its body is one call of a method of one field.
    pub(crate) delegates: bool,
    /// The names of the methods that it calls on `self` or `Self`.
    pub(crate) self_calls: BTreeSet<String>,
}

/// The methods of each type, tests aside.
pub(crate) fn methods(tree: &Tree) -> BTreeMap<TypeName, Vec<Method>> {
    let mut types = BTreeMap::new();
    for (file, text) in tree.files_ending(".rs").filter(|(file, _)| !holds_tests(file)) {
        let Some((folder, _)) = file.split_once("/src/") else { continue };
        // The lengths gate reports what does not parse.
        let Ok(parsed) = syn::parse_file(text) else { continue };
        Impls { folder, file, types: &mut types }.visit_file(&parsed);
    }
    types
}

struct Impls<'a> {
    folder: &'a str,
    file: &'a str,
    types: &'a mut BTreeMap<TypeName, Vec<Method>>,
}

impl<'ast> Visit<'ast> for Impls<'_> {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let syn::Type::Path(path) = &*item.self_ty else { return };
        let (None, Some(name)) = (&item.trait_, path.path.segments.last()) else { return };
        let functions = item.items.iter().filter_map(|item| match item {
            syn::ImplItem::Fn(function) if function.sig.receiver().is_some() => Some(function),
            _ => None,
        });
        let methods = functions.map(|function| method(self.file, function));
        let name = (self.folder.to_owned(), name.ident.to_string());
        self.types.entry(name).or_default().extend(methods);
    }
}

fn method(file: &str, function: &syn::ImplItemFn) -> Method {
    let mut calls = SelfCalls::default();
    calls.visit_block(&function.block);
    let name = &function.sig.ident;
    Method {
        file: file.to_owned(),
        line: name.span().start().line,
        name: name.to_string(),
        delegates: delegates(&function.block),
        self_calls: calls.names,
    }
}

fn delegates(body: &syn::Block) -> bool {
    let [syn::Stmt::Expr(syn::Expr::MethodCall(call), _)] = body.stmts.as_slice() else {
        return false;
    };
    is_part(&call.receiver)
}

/// True for `self.part`, and for a part of a part.
fn is_part(receiver: &syn::Expr) -> bool {
    let syn::Expr::Field(field) = receiver else { return false };
    is_self(&field.base) || is_part(&field.base)
}

fn is_self(value: &syn::Expr) -> bool {
    matches!(value, syn::Expr::Path(path) if path.path.is_ident("self"))
}

#[derive(Default)]
struct SelfCalls {
    names: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for SelfCalls {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if is_self(&call.receiver) {
            self.names.insert(call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let [first, last] = path.segments.iter().collect::<Vec<_>>().as_slice()
            && first.ident == "Self"
        {
            self.names.insert(last.ident.to_string());
        }
        visit::visit_path(self, path);
    }
}
