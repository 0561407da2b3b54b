//! Random streams: the responses depend only on the bytes.

use proptest::prelude::*;

use super::*;

/// Parts of which streams are made: whole requests, broken ones, and noise.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nGET /x?y HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
        "DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
        "\r\n",
        "0\r\n\r\n",
    ]);
    prop_oneof![
        8 => known.prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

fn small() -> ServerSettings {
    let limits = Limits { head: 120, body: 64, discard: 8, ..Limits::default() };
    ServerSettings { limits, ..ServerSettings::default() }
}

proptest! {
    #[test]
    fn responses_do_not_depend_on_how_the_stream_is_split(
        parts in prop::collection::vec(part(), 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream = parts.concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.push(stream.len());
        cuts.sort_unstable();
        let mut from = 0;
        let pieces: Vec<&[u8]> = cuts
            .iter()
            .map(|to| &stream[core::mem::replace(&mut from, *to)..*to])
            .collect();
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        let whole = converse(&mut FixedBody::new(9), &small(), &[&stream]);
        let split = converse(&mut FixedBody::new(9), &small(), &pieces);
        let single = converse(&mut FixedBody::new(9), &small(), &bytes);
        prop_assert_eq!(whole.text(), split.text());
        prop_assert_eq!(whole.text(), single.text());
    }

    #[test]
    fn no_bytes_make_it_panic(stream in prop::collection::vec(any::<u8>(), 0..300)) {
        converse(&mut FixedBody::new(9), &small(), &[&stream]);
    }

    #[test]
    fn upload_arrives_unchanged(
        body in prop::collection::vec(any::<u8>(), 0..200),
        chunk in 1_usize..50,
        piece in 1_usize..50,
    ) {
        let mut stream =
            b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        let body: Vec<u8> = body.iter().map(|byte| byte | 0x80).collect();
        for part in body.chunks(chunk) {
            stream.extend_from_slice(alloc::format!("{:x}\r\n", part.len()).as_bytes());
            stream.extend_from_slice(part);
            stream.extend_from_slice(b"\r\n");
        }
        stream.extend_from_slice(b"0\r\n\r\n");
        let pieces: Vec<&[u8]> = stream.chunks(piece).collect();
        let mut site = odd(0, vec![]);
        let outcome = converse(&mut site, &ServerSettings::default(), &pieces);
        prop_assert_eq!(outcome.statuses(), [201]);
        prop_assert_eq!(&*site.received.lock().unwrap(), &body);
    }
}
