use super::*;
use crate::http::head::{field_room, parse};
use crate::http::{ByteRange, HttpDate};

/// Monday, 2026-11-23 00:00 UTC.
const NOW: u64 = 1_795_392_000;
const CHANGED: u64 = NOW - 100;

fn strong() -> Validators {
    Validators { tag: EntityTag::strong("a,1".into()), modified: CHANGED, now: NOW }
}

fn weak() -> Validators {
    Validators { tag: EntityTag::weak("a,1".into()), ..strong() }
}

/// The judgment of a request with these fields.
fn judged(method: &str, fields: &[&str], now: Option<&Validators>) -> Judgment {
    with_request(method, fields, |request| judge(request, now))
}

fn with_request<T>(method: &str, fields: &[&str], act: impl FnOnce(&Request<'_>) -> T) -> T {
    let length = if method == "PUT" { "Content-Length: 0\r\n" } else { "" };
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let head = format!("{method} / HTTP/1.1\r\nHost: a\r\n{length}{fields}\r\n");
    let mut room = field_room();
    act(&parse(head.as_bytes(), &mut room).unwrap())
}

fn date(seconds: u64) -> String {
    String::from(HttpDate::from_unix_seconds(seconds).as_str())
}

#[test]
fn fresh_copy_of_client_gets_304() {
    for listed in ["\"a,1\"", "W/\"a,1\"", "\"b\", W/\"c\" , \"a,1\"", "*"] {
        let field = format!("If-None-Match: {listed}");
        for now in [strong(), weak()] {
            assert_eq!(judged("GET", &[&field], Some(&now)), Judgment::NotModified, "{listed}");
            assert_eq!(judged("HEAD", &[&field], Some(&now)), Judgment::NotModified, "{listed}");
            assert_eq!(judged("PUT", &[&field], Some(&now)), Judgment::Failed, "{listed}");
        }
        assert_eq!(judged("PUT", &[&field], None), Judgment::Holds, "{listed}: nothing is there");
    }
    for listed in ["\"a\"", "\"1\"", "a,1", "\"a,1", "\"A,1\"", ""] {
        let field = format!("If-None-Match: {listed}");
        assert_eq!(judged("GET", &[&field], Some(&strong())), Judgment::Holds, "{listed}");
    }
}

#[test]
fn date_validates_without_a_tag() {
    for (since, expected) in [
        (CHANGED - 1, Judgment::Holds),
        (CHANGED, Judgment::NotModified),
        (NOW, Judgment::NotModified),
    ] {
        let field = format!("If-Modified-Since: {}", date(since));
        assert_eq!(judged("GET", &[&field], Some(&strong())), expected, "{field}");
        assert_eq!(judged("PUT", &[&field], Some(&strong())), Judgment::Holds, "{field}");
        // RFC 9110 13.1.3: "A recipient MUST ignore If-Modified-Since if the request contains an
        // If-None-Match header field"
        let both = [field.as_str(), "If-None-Match: \"b\""];
        assert_eq!(judged("GET", &both, Some(&strong())), Judgment::Holds, "{field}");
        let twice = [field.as_str(), field.as_str()];
        assert_eq!(judged("GET", &twice, Some(&strong())), Judgment::Holds, "{field}");
    }
    let nonsense = "If-Modified-Since: yesterday";
    assert_eq!(judged("GET", &[nonsense], Some(&strong())), Judgment::Holds);
}

#[test]
fn failed_condition_prevents_change() {
    let is = "If-Match: \"b\", \"a,1\"";
    assert_eq!(judged("PUT", &[is], Some(&strong())), Judgment::Holds);
    assert_eq!(
        judged("PUT", &[is], Some(&weak())),
        Judgment::Failed,
        "weak tags match nothing here"
    );
    assert_eq!(judged("PUT", &[is], None), Judgment::Failed);
    assert_eq!(judged("PUT", &["If-Match: W/\"a,1\""], Some(&strong())), Judgment::Failed);
    assert_eq!(judged("PUT", &["If-Match: *"], Some(&weak())), Judgment::Holds);
    assert_eq!(judged("PUT", &["If-Match: *"], None), Judgment::Failed);
    let since = |seconds| format!("If-Unmodified-Since: {}", date(seconds));
    assert_eq!(judged("PUT", &[&since(CHANGED)], Some(&strong())), Judgment::Holds);
    assert_eq!(judged("PUT", &[&since(CHANGED - 1)], Some(&strong())), Judgment::Failed);
    // If-Match comes before it, and it before If-None-Match.
    let tags = [is, &since(CHANGED - 1)];
    assert_eq!(judged("GET", &tags, Some(&strong())), Judgment::Holds);
    let tags = ["If-None-Match: *", &since(CHANGED - 1)];
    assert_eq!(judged("GET", &tags, Some(&strong())), Judgment::Failed);
}

#[test]
fn part_is_sent_if_the_others_are_of_the_same_version() {
    let part = RangeOutcome::Part(ByteRange { first: 2, last: 4 });
    let asked = |condition: &str, now: &Validators| {
        let fields = ["Range: bytes=2-4", condition];
        with_request("GET", &fields, |request| range(request, 9, now))
    };
    assert_eq!(asked("X: y", &strong()), part);
    assert_eq!(asked("If-Range: \"a,1\"", &strong()), part);
    for (condition, now) in [
        ("If-Range: \"a,1\"", weak()),
        ("If-Range: W/\"a,1\"", strong()),
        ("If-Range: W/\"a,1\"", weak()),
        ("If-Range: \"b\"", strong()),
        ("If-Range: Sun, 22 Nov 2026 23:58:20 GMT", strong()),
    ] {
        assert_eq!(asked(condition, &now), RangeOutcome::Whole, "{condition} {now:?}");
    }
    let head = with_request("HEAD", &["Range: bytes=2-4"], |request| range(request, 9, &strong()));
    assert_eq!(head, RangeOutcome::Whole);
}

#[test]
fn last_modified_is_not_after_date() {
    let now = Validators { modified: NOW + 50, ..weak() };
    let field = format!("If-Modified-Since: {}", date(NOW));
    assert_eq!(judged("GET", &[&field], Some(&now)), Judgment::NotModified);
    let marked = now.mark(Response::bare(Status::OK));
    let fields: Vec<_> = marked.fields.iter().map(|it| (it.name, it.value.as_ref())).collect();
    let expected = [("Last-Modified", "Mon, 23 Nov 2026 00:00:00 GMT"), ("ETag", "W/\"a,1\"")];
    assert_eq!(fields, expected);
}
