use super::*;

#[test]
fn long_lines_wrap_with_indent() {
    let long = "word ".repeat(20);
    let wrapped = wrap(&format!("drops      {}\nshort  as  it  was\n", long.trim_end()), 11);
    let lines: Vec<_> = wrapped.lines().collect();
    assert!(lines.iter().all(|line| line.len() <= WIDTH), "{wrapped}");
    assert_eq!(lines.len(), 3);
    assert!(lines[1].starts_with("           word"), "{wrapped}");
    assert_eq!(lines[2], "short  as  it  was");
    assert!(wrapped.ends_with('\n'));
}

#[test]
fn a_word_without_a_blank_stays_whole() {
    let word = "x".repeat(100);
    assert_eq!(wrap(&word, 4), word);
    assert_eq!(wrap(&format!("a {word} b"), 4), format!("a\n    {word}\n    b"));
}

#[test]
fn first_clause_ends_at_sentence_or_clause_mark() {
    assert_eq!(first_clause("How it is. And why.", 40), "How it is");
    assert_eq!(first_clause("How it is.", 40), "How it is");
    assert_eq!(
        first_clause("How often a SYN is repeated: six times, or more", 40),
        "How often a SYN is repeated: six times"
    );
    assert_eq!(first_clause("one two three four five", 13), "one two three four five");
}
