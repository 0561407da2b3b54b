use alloc::string::ToString;

use proptest::prelude::*;

use super::*;

#[test]
fn path_is_split_and_then_decoded() {
    let path = PathNames::parse("/a%20b//./%c3%a4.txt").unwrap();
    assert_eq!(path.names, ["a b", "ä.txt"]);
    assert!(!path.directory);
    assert_eq!(path.encode(), "/a%20b/%C3%A4.txt");
    assert!(PathNames::parse("/").unwrap().directory);
    assert!(PathNames::parse("/a/").unwrap().directory);
    assert!(PathNames::parse("/.a/b").unwrap().is_hidden());
}

#[test]
fn path_that_leads_upward_or_hides_a_separator_is_refused() {
    for path in ["/..", "/a/../b", "/%2e%2e/etc", "/a%2fb", "/a%00", "/.%2e"] {
        assert_eq!(PathNames::parse(path), Err(PathFault::Escape), "{path}");
    }
    for path in ["/%", "/%2", "/%zz", "/%+1"] {
        assert_eq!(PathNames::parse(path), Err(PathFault::Percent), "{path}");
    }
    assert_eq!(PathNames::parse("/%ff"), Err(PathFault::Encoding));
}

proptest! {
    #[test]
    fn any_path_gives_safe_names(path in "[/.%a2ef0-5]{0,24}") {
        if let Ok(parsed) = PathNames::parse(&path) {
            for name in &parsed.names {
                prop_assert!(!matches!(name.as_str(), "" | "." | ".."));
                prop_assert!(!name.contains(['/', '\0']));
            }
        }
    }

    #[test]
    fn encoding_is_reversible(name in "[^/\0]{1,12}") {
        prop_assume!(name != "." && name != "..");
        let mut path = "/".to_string();
        encode_name(&name, &mut path);
        prop_assert_eq!(PathNames::parse(&path).unwrap().names, [name]);
    }
}
