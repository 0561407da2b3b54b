use super::*;

fn part(first: u64, last: u64) -> RangeOutcome {
    RangeOutcome::Part(ByteRange { first, last })
}

#[test]
fn range_is_cut_to_the_length() {
    assert_eq!(judge(b"bytes=0-0", 10), part(0, 0));
    assert_eq!(judge(b"bytes=3-", 10), part(3, 9));
    assert_eq!(judge(b"Bytes = 3-99", 10), part(3, 9));
    assert_eq!(judge(b"bytes=-4", 10), part(6, 9));
    assert_eq!(judge(b"bytes=-40", 10), part(0, 9));
    assert_eq!(judge(b"bytes=0-18446744073709551615", u64::MAX), part(0, u64::MAX - 1));
}

#[test]
fn range_beyond_the_end_cannot_be_satisfied() {
    for field in [b"bytes=10-".as_slice(), b"bytes=10-12", b"bytes=-0"] {
        assert_eq!(judge(field, 10), RangeOutcome::Unsatisfiable, "{field:?}");
    }
    assert_eq!(judge(b"bytes=0-", 0), RangeOutcome::Unsatisfiable);
    assert_eq!(judge(b"bytes=-1", 0), RangeOutcome::Unsatisfiable);
}

#[test]
fn invalid_range_is_ignored() {
    for field in [
        b"".as_slice(),
        b"bytes",
        b"bytes=",
        b"bytes=-",
        b"bytes=5-3",
        b"bytes=+1-2",
        b"bytes=0-1,3-4",
        b"lines=0-1",
        b"bytes=99999999999999999999-",
        b"\xff=0-1",
    ] {
        assert_eq!(judge(field, 10), RangeOutcome::Whole, "{field:?}");
    }
}
