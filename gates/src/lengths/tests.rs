use super::{Census, Function, functions_in, judge, judge_functions};
use crate::tree::Tree;

/// `fn f() {`, filler, `}`: `lines` lines in all.
fn function_of(lines: usize) -> String {
    format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
}

fn functions_of(lengths: &[usize]) -> Vec<Function> {
    let function = |lines: &usize| Function {
        file: "a.rs".to_owned(),
        name: "f".to_owned(),
        line: 1,
        lines: *lines,
    };
    lengths.iter().map(function).collect()
}

fn messages_for(lengths: &[usize]) -> Vec<String> {
    let functions = functions_of(lengths);
    let findings = judge_functions(&functions, &Census::of(&functions));
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_function_counts_from_its_signature_to_its_brace() {
    let text = "/// Doc.\n#[inline]\npub fn f(\n    a: u8,\n) {\n    g(a);\n}\n";
    let found = functions_in("a.rs", text).unwrap();
    assert_eq!((found[0].name.as_str(), found[0].line, found[0].lines), ("f", 3, 5));
}

#[test]
fn methods_default_methods_and_nested_functions_count() {
    let text = "impl A {\n fn a() {\n fn b() {}\n }\n}\ntrait T {\n fn c() {}\n fn d();\n}\n";
    let found = functions_in("a.rs", text).unwrap();
    let names: Vec<_> = found.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn a_file_of_801_lines_is_found_and_one_of_800_is_not() {
    let (good, bad) = ("//\n".repeat(800), "//\n".repeat(801));
    let (_, findings) = judge(&Tree::of(&[("bad.rs", &bad), ("good.rs", &good)]));
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].file.as_str(), findings[0].line), ("bad.rs", 801));
    assert!(findings[0].message.contains("800 lines, this one 801"));
}

#[test]
fn a_function_of_101_lines_is_found_however_many_are_short() {
    let text = function_of(3).repeat(500) + &function_of(101);
    let (_, findings) = judge(&Tree::of(&[("a.rs", text.as_str())]));
    assert!(findings.iter().any(|finding| finding.line == 1501), "{findings:?}");
    assert!(messages_for(&[3; 500]).is_empty());
}

#[test]
fn one_function_in_a_hundred_may_exceed_60_lines() {
    let mut lengths = vec![3; 99];
    lengths.push(61);
    assert!(messages_for(&lengths).is_empty());
    lengths[0] = 100;
    assert_eq!(messages_for(&lengths).len(), 2);
}

#[test]
fn nine_functions_in_ten_have_fewer_than_30_lines() {
    let mut lengths = vec![29; 9];
    lengths.push(30);
    assert!(messages_for(&lengths).is_empty());
    lengths[0] = 30;
    assert!(messages_for(&lengths)[0].contains("now 8 of 10 (80.0 %)"));
}

#[test]
fn an_empty_tree_passes() {
    let (census, findings) = judge(&Tree::default());
    assert!(findings.is_empty());
    assert!(census.to_string().contains("0 functions"));
}

#[test]
fn what_is_not_rust_is_found() {
    let (_, findings) = judge(&Tree::of(&[("a.rs", "fn f() {\n    let = 1;\n}\n")]));
    assert_eq!((findings.len(), findings[0].line), (1, 2));
}

#[test]
fn the_census_sorts_every_function_into_one_row() {
    let census = Census::of(&functions_of(&[1, 9, 10, 29, 30, 60, 61, 100, 101]));
    let printed = census.to_string();
    let rows: Vec<_> = printed.lines().skip(1).take(6).map(str::trim).collect();
    let counts: Vec<_> = rows.iter().map(|row| row.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(counts, ["2", "1", "1", "2", "2", "1"]);
}
