use super::*;

#[test]
fn parts_of_a_count_add_up_and_differ_by_one_at_most() {
    for count in [0, 1, 7, 64, 1_000_003] {
        for of in 1..9 {
            let shares = (0..of).map(|number| Part { number, of }.share(count));
            assert_eq!(shares.clone().sum::<u64>(), count);
            assert!(shares.clone().max().unwrap() - shares.min().unwrap() <= 1);
        }
    }
    assert_eq!(Part::WHOLE.share(5), 5);
}
