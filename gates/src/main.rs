//! The gates: what rustfmt and clippy cannot say about the house style of Whimbrel.
//!
//! `whimbrel-gates tree` judges the tracked files of the repository it is run in (and with
//! `WHIMBREL_BLESS=1` first writes the lists of scripts in `docs/rfc` anew),
//! `whimbrel-gates wasm FILE` a linked module. Each finding says where, the limit, the value and
//! the remedy. Exit code 1: there are findings; 2: the gates could not run.
#![forbid(unsafe_code)]

mod circles;
mod english;
mod finding;
mod foreign;
mod hosts;
mod layout;
mod lengths;
mod links;
mod names;
mod objects;
mod profiles;
mod purity;
mod requirements;
mod rooms;
mod self_calls;
mod signatures;
mod subcommands;
mod tree;
mod types;
mod wasm;
mod weight;

use std::error::Error;
use std::process::ExitCode;

use finding::Finding;
use tree::Tree;

/// Why the gates could not run, as opposed to what they found.
type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(findings) => report(&findings),
        Err(failure) => {
            eprintln!("the gates could not run: {failure}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<Vec<Finding>, Failure> {
    match arguments {
        [command] if command == "tree" => judge_tree(),
        [command, file] if command == "wasm" => wasm::judge_file(file),
        [command, folder] if command == "names" => names::judge_folder(folder),
        _ => Err("usage: whimbrel-gates tree | wasm FILE | names FOLDER".into()),
    }
}

fn report(findings: &[Finding]) -> ExitCode {
    for finding in findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => println!("gates: nothing found"),
        count => println!("gates: {count} found"),
    }
    ExitCode::from(u8::from(!findings.is_empty()))
}

fn judge_tree() -> Result<Vec<Finding>, Failure> {
    let mut tree = Tree::read()?;
    if std::env::var_os("WHIMBREL_BLESS").is_some() {
        for (name, text) in requirements::rewritten(&tree) {
            std::fs::write(name, text)?;
        }
        tree = Tree::read()?;
    }
    let packages = rooms::read_packages("Cargo.toml")?;
    let mut findings = rooms::judge(&packages);
    findings.extend(purity::judge_crates(&packages, &tree));
    findings.extend(purity::judge_probe(&packages, &tree));
    findings.extend(purity::judge_clippy_settings(&packages, &tree));
    findings.extend(circles::judge(&packages, &tree));
    findings.extend(subcommands::judge(&tree));
    findings.extend(objects::judge(&tree));
    findings.extend(self_calls::judge(&tree));
    findings.extend(weight::judge()?);
    findings.extend(signatures::judge(&tree));
    findings.extend(hosts::judge(&tree));
    findings.extend(profiles::judge(&tree));
    findings.extend(foreign::judge(&tree));
    findings.extend(links::judge(&tree));
    findings.extend(layout::judge(&tree));
    findings.extend(english::judge(&tree));
    let (counts, unmet) = requirements::judge(&tree);
    for table in &counts {
        println!("{table}");
    }
    findings.extend(unmet);
    let (census, long) = lengths::judge(&tree);
    println!("{census}");
    findings.extend(long);
    Ok(findings)
}
