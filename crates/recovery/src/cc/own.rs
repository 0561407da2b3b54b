//! Code generated from the table of the stack's own algorithms.
//!
//! Its rows are in `cc.rs`, next to the `mod` of each. Their numbers, names and state are generated from
//! the rows here.

/// Declares, from a row for each algorithm (its constant, the type of its state and its name):
/// [`CongestionAlgorithm`](super::CongestionAlgorithm), the constants of
/// [`Algorithm`](super::Algorithm) and [`Algorithm::OURS`](super::Algorithm::OURS), and `Kept`, which has
/// the state of one of them in place, so that it takes no allocation and no call through a pointer.
macro_rules! own_algorithms {
    ($(
        $(#[doc = $doc:literal])+
        $number:ident: $state:ident = $name:literal,
    )+) => {
        whimbrel_base::policies! {
            /// By which algorithm the congestion window of a connection grows and shrinks.
            CongestionAlgorithm {
                $($(#[doc = $doc])+ $state = $name,)+
            }
        }

        impl Algorithm {
            $(
                $(#[doc = $doc])+
                pub const $number: Self = Self::of_number(CongestionAlgorithm::$state as u8);
            )+

            /// Those of this crate, and their names, which are Linux's.
            pub const OURS: [(Self, &'static str); CongestionAlgorithm::ALL.len()] =
                [$((Self::$number, $name),)+];
        }

        /// The state of the algorithm that a connection has.
        #[derive(Debug)]
        enum Kept {
            $($state($state),)+
            Added(Box<dyn CongestionControl>),
        }

        impl Kept {
            /// The state that a connection begins with.
            #[inline]
            fn new(algorithm: Algorithm) -> Self {
                match algorithm {
                    $(Algorithm::$number => Self::$state($state::default()),)+
                    // What its user added is made beforehand, unless that was in another shard.
                    _ => Self::Reno(Reno::default()),
                }
            }

            /// As [`CongestionControl::on_ack`], which of ours is called by its name: it is what the path
            /// of every acknowledgment leads through.
            #[inline]
            fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
                match self {
                    $(Self::$state(own) => own.on_ack(window, ack),)+
                    Self::Added(added) => {
                        added.on_ack(window, ack);
                        window.bound(ack.mss);
                    }
                }
            }

            /// Tells of an event; afterwards one of the user's has left a window of at least `least`.
            fn dispatch(
                &mut self,
                window: &mut Window,
                least: u32,
                what: impl FnOnce(&mut dyn CongestionControl, &mut Window),
            ) {
                match self {
                    $(Self::$state(own) => what(own, window),)+
                    Self::Added(added) => {
                        what(&mut **added, window);
                        window.bound(least);
                    }
                }
            }
        }
    };
}
