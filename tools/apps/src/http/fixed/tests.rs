use super::*;
use crate::http::head::{self, field_room};

fn get(site: &mut FixedBody, fields: &str) -> Response {
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let mut room = field_room();
    match site.respond(&head::parse(head.as_bytes(), &mut room).unwrap()) {
        SiteResponse::Response(response) => response,
        SiteResponse::Upload(_) | SiteResponse::Long(_) => {
            panic!("GET uploads nothing, and is at hand")
        }
    }
}

fn read(body: Body) -> Vec<u8> {
    match body {
        Body::Bytes(bytes) => bytes.to_vec(),
        Body::Source { length, mut source } => {
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < length {
                let piece = source.read(10_000).unwrap();
                assert!(!piece.is_empty() && piece.len() <= 10_000);
                bytes.extend_from_slice(&piece);
            }
            bytes
        }
    }
}

#[test]
fn bodies_of_every_size_have_their_length() {
    for length in [0, 1, 63, 64, 65, 128, BLOCK as u64 - 1, BLOCK as u64, BLOCK as u64 * 2 + 77] {
        let response = get(&mut FixedBody::new(length), "");
        assert_eq!((response.status, response.body.length()), (Status::OK, length));
        assert_eq!(read(response.body).len() as u64, length);
    }
}

#[test]
fn part_is_cut_from_the_whole() {
    let mut site = FixedBody::new(BLOCK as u64 + 1_000);
    let whole = read(get(&mut site, "").body);
    for (first, last) in [(0, 0), (100, 200), (BLOCK - 10, BLOCK + 10), (5, BLOCK + 999)] {
        let response = get(&mut site, &format!("Range: bytes={first}-{last}\r\n"));
        assert_eq!(response.status, Status::PARTIAL_CONTENT);
        assert_eq!(read(response.body), whole[first..=last]);
    }
    let beyond = get(&mut site, "Range: bytes=9999999-\r\n");
    assert_eq!(beyond.status, Status::RANGE_NOT_SATISFIABLE);
}
