use alloc::collections::VecDeque;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::InlineQueue;

#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    Pop,
    Truncate(usize),
    Clear,
    Shrink(usize),
    ChangeEnds,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Push),
        4 => Just(Step::Pop),
        1 => (0..6usize).prop_map(Step::Truncate),
        1 => Just(Step::Clear),
        1 => (0..6usize).prop_map(Step::Shrink),
        1 => Just(Step::ChangeEnds),
    ]
}

proptest! {
    #[test]
    fn queue_does_what_a_deque_does(steps in prop::collection::vec(step(), 0..60)) {
        let (mut queue, mut deque) = (InlineQueue::new(), VecDeque::new());
        for (number, step) in (0u32..).zip(steps) {
            match step {
                Step::Push => {
                    queue.push_back(number);
                    deque.push_back(number);
                }
                Step::Pop => prop_assert_eq!(queue.pop_front(), deque.pop_front()),
                Step::Truncate(len) => {
                    queue.truncate(len);
                    deque.truncate(len);
                }
                Step::Clear => {
                    queue.clear();
                    deque.clear();
                }
                Step::Shrink(places) => queue.shrink_to(places),
                // Distinct still, and in order.
                Step::ChangeEnds => {
                    for end in [queue.front_mut(), deque.front_mut()].into_iter().flatten() {
                        *end = 0;
                    }
                    for end in [queue.back_mut(), deque.back_mut()].into_iter().flatten() {
                        *end = number;
                    }
                }
            }
            prop_assert_eq!(queue.len(), deque.len());
            prop_assert_eq!(queue.is_empty(), deque.is_empty());
            prop_assert_eq!(queue.only(), deque.front().filter(|_| deque.len() == 1));
            prop_assert_eq!((queue.front(), queue.back()), (deque.front(), deque.back()));
            prop_assert!(queue.iter().eq(&deque) && queue.iter().rev().eq(deque.iter().rev()));
            for place in 0..=deque.len() {
                prop_assert_eq!(queue.get(place), deque.get(place));
                let behind: Vec<_> = deque.iter().skip(place).collect();
                prop_assert_eq!(queue.iter_from(place).collect::<Vec<_>>(), behind);
            }
            for bound in 0..=number {
                let is_before = |element: &u32| *element < bound;
                prop_assert_eq!(queue.partition_point(is_before), deque.partition_point(is_before));
            }
        }
    }
}

#[test]
fn one_element_allocates_nothing() {
    let mut queue = InlineQueue::new();
    for _ in 0..3 {
        queue.push_back(1);
        assert_eq!((queue.capacity(), queue.pop_front()), (0, Some(1)));
    }
    queue.push_back(1);
    queue.push_back(2);
    assert!(queue.capacity() > 0);
}
