use super::*;

fn wanted(reins: &Reins, of: u32) -> Vec<u32> {
    (0..of).map(|number| reins.wanted(Part { number, of }).connections).collect()
}

#[test]
fn parts_share_what_is_wanted_and_each_has_one_at_least() {
    let reins = Reins::new(7, 3);
    assert_eq!(wanted(&reins, 3), [3, 2, 2]);
    reins.set_connections(8);
    assert_eq!(wanted(&reins, 3), [3, 3, 2]);
    reins.set_connections(0);
    assert_eq!((wanted(&reins, 3), reins.connections()), (vec![1, 1, 1], 3));
    reins.set_connections(u32::MAX);
    assert_eq!(reins.connections(), 1_000_000);
}

#[test]
fn a_pause_lasts_until_it_is_asked_for_again() {
    let (reins, part) = (Reins::new(1, 1), Part::WHOLE);
    reins.pause_or_go_on();
    assert_eq!(reins.wanted(part), Wanted { connections: 1, motion: Motion::Paused });
    reins.pause_or_go_on();
    assert_eq!((reins.motion(), reins.has_ended()), (Motion::Running, false));
    reins.end();
    assert!(reins.has_ended());
}
