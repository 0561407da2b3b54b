use super::*;

fn found(file: &str, line: &str) -> Vec<String> {
    let text = format!("fn f() {{\n{line}\n}}\n");
    judge(&Tree::of(&[(file, &text)])).iter().map(ToString::to_string).collect()
}

#[test]
fn code_printing_around_foreign_is_found() {
    for line in [
        "    let _ = writeln!(io::stderr(), \"{name}\");",
        "    anstream::stdout().lock()",
        "    println!(\"{reason}\");",
        "    eprintln!(\"{reason}\");",
        "    let text = String::from_utf8_lossy(&bytes);",
        "    let path = path.display();",
        "    name.to_string_lossy()",
        "    let name = document[\"name\"].as_str();",
        "    value.get(\"name\").and_then(Value::as_str)",
        "    text += name.verbatim();",
        "    names.iter().map(Foreign::verbatim)",
    ] {
        let findings = found("tools/cli/src/serving/files.rs", line);
        assert!(findings.len() == 1 && findings[0].contains("files.rs:2"), "{line}: {findings:?}");
    }
    assert_eq!(found("crates/io/src/pcap.rs", "format!(\"{}\", path.display())").len(), 1);
}

#[test]
fn excused_code_is_not_found() {
    for (file, line) in [
        ("tools/cli/src/output.rs", "anstream::stderr().write_all(bytes)"),
        ("tools/cli/src/report.rs", "anstream::stdout().lock()"),
        ("tools/cli/src/runs/screen/terminal.rs", "execute!(io::stdout(), Hide)"),
        ("tools/cli/src/pcap.rs", "if std::io::stdout().is_terminal() {"),
        ("tools/cli/src/pcap.rs", "/// As `path.display()` shows it."),
        ("tools/cli/src/pcap.rs", "    word.as_str()"),
        ("tools/cli/src/compare/part.rs", "case[\"name\"].as_str()"),
        ("tools/cli/src/pcap/tests.rs", "println!(\"{}\", path.display())"),
        ("tools/cli/tests/whimbrel/pcap.rs", "println!(\"{}\", path.display())"),
        ("crates/tcp/src/conn.rs", "name.verbatim()"),
        ("bench/src/main.rs", "println!(\"{}\", path.display())"),
    ] {
        assert_eq!(found(file, line), [""; 0], "{file}: {line}");
    }
}

#[test]
fn file_is_not_excused_by_another_whose_name_begins_alike() {
    assert_eq!(found("tools/cli/src/output_of_others.rs", "io::stdout()").len(), 1);
}
