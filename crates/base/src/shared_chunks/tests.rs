use alloc::vec::Vec;

use super::SharedChunks;

type ShortTexts = SharedChunks<2048>;

/// Fills so many chunks and drops all texts but `held`; returns where each chunk began.
fn fill(texts: &mut ShortTexts, chunks: usize, held: impl Fn(usize) -> bool) -> Vec<*const u8> {
    let mut kept = Vec::new();
    let mut begins = Vec::new();
    for chunk in 0..chunks {
        for at in 0..ShortTexts::CHUNK / ShortTexts::MOST {
            let text = texts.keep(&[chunk as u8; ShortTexts::MOST]);
            if at == 0 {
                begins.push(text.as_ptr());
            }
            if held(chunk) {
                kept.push((chunk, text));
            }
        }
    }
    assert!(kept.iter().all(|(chunk, text)| text.iter().all(|byte| *byte == *chunk as u8)));
    begins
}

#[test]
fn a_chunk_is_used_again_once_all_its_texts_are_gone() {
    let begins = fill(&mut ShortTexts::default(), 10, |_| false);
    assert!(begins.iter().all(|begin| *begin == begins[0]), "{begins:?}");
}

#[test]
fn a_text_that_somebody_holds_stays_as_it_is() {
    let mut texts = ShortTexts::default();
    fill(&mut texts, 5 * ShortTexts::FILLED, |chunk| chunk % 7 == 0);
    assert!(texts.filled.len() <= ShortTexts::FILLED);
}
