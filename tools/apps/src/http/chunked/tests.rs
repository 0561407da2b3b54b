use alloc::vec::Vec;

use super::*;

fn decode(stream: &'static [u8]) -> Result<Option<Vec<u8>>, Fault> {
    let mut input = Bytes::from_static(stream);
    let (mut decoder, mut body) = (Decoder::new(), Vec::new());
    loop {
        match decoder.next(&mut input, 1 << 20)? {
            BodyPart::Data(bytes) => body.extend_from_slice(&bytes),
            BodyPart::More => return Ok(None),
            BodyPart::End => {
                assert!(input.is_empty(), "nothing follows in these tests");
                return Ok(Some(body));
            }
        }
    }
}

#[test]
fn chunks_extensions_and_trailers_are_read() {
    assert_eq!(decode(b"0\r\n\r\n"), Ok(Some(Vec::new())));
    assert_eq!(decode(b"3\r\nabc\r\n0\r\n\r\n"), Ok(Some(b"abc".to_vec())));
    assert_eq!(
        decode(b"00A;q=\"r\"\r\n0123456789\r\n0\r\nX: y\r\n\r\n").unwrap().unwrap().len(),
        10
    );
    assert_eq!(decode(b"3\r\nab"), Ok(None));
}

#[test]
fn body_that_could_be_read_in_two_ways_is_refused() {
    let broken: &[&[u8]] = &[
        b"\r\n",
        b"x\r\n",
        b" 3\r\nabc\r\n",
        b"-1\r\n",
        b"3\nabc\r\n0\r\n\r\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"3\r\nabc\n0\r\n\r\n",
        b"3\r\nabc\rx0\r\n\r\n",
        b"3;a\nb\r\nabc\r\n",
        b"0\r\nX: y\n\r\n",
        b"0\r\n\rx",
    ];
    for stream in broken {
        let fault = decode(stream).unwrap_err();
        assert!(matches!(fault, Fault::Malformed(_)), "{stream:?}: {fault:?}");
    }
}

#[test]
fn neither_sizes_nor_extensions_are_without_end() {
    assert_eq!(decode(b"00000000000000001\r\n"), Err(Fault::BodyTooLarge));
    assert_eq!(decode(b"100001\r\n"), Err(Fault::BodyTooLarge));
    let mut input = Bytes::from([b"1;".as_slice(), &[b'x'; MAX_EXTRA]].concat());
    assert_eq!(Decoder::new().next(&mut input, 9), Err(Fault::HeadTooLarge));
}
