use super::*;

#[test]
fn lines_that_are_too_long_go_on_in_the_next_and_are_indented() {
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
fn a_first_clause_is_a_sentence_or_ends_where_one_could() {
    assert_eq!(first_clause("How it is. And why.", 40), "How it is");
    assert_eq!(first_clause("How it is.", 40), "How it is");
    assert_eq!(
        first_clause("How often a SYN is repeated: six times, or more", 40),
        "How often a SYN is repeated: six times"
    );
    assert_eq!(first_clause("one two three four five", 13), "one two three four five");
}
