use super::is_like;

#[test]
fn star_matches_anything() {
    for (pattern, name, is) in [
        ("a*c", "abc", true),
        ("a*c", "ac", true),
        ("a*c", "acb", false),
        ("*b*", "abc", true),
        ("a*a", "a", false),
        ("a*b*c", "abbc", true),
        ("*", "", true),
    ] {
        assert_eq!(is_like(pattern, name), is, "{pattern} {name}");
    }
}
