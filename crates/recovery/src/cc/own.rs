//! Code generated from the table of the stack's own algorithms.
//!
//! Its rows are in `cc.rs`, next to the `mod` of each. Their numbers, names and state are generated from
//! the rows here.

/// Declares, from a row for each algorithm (its constant, the type of its state and its name):
/// [`CongestionAlgorithm`](super::CongestionAlgorithm), the constants of
/// [`Algorithm`](super::Algorithm) and [`Algorithm::OURS`](super::Algorithm::OURS), and `Kept`, which has
/// the state of one of them in place, so that it takes no allocation and no call through a pointer. A
/// large state is boxed: its row stands behind `boxed`, and its algorithm hears all, as a user's does.
macro_rules! own_algorithms {
    ($(
        $(#[doc = $doc:literal])+
        $number:ident: $state:ident = $name:literal,
    )+
    boxed: $(
        $(#[doc = $boxed_doc:literal])+
        $boxed_number:ident: $boxed_state:ident = $boxed_name:literal,
    )+) => {
        whimbrel_base::policies! {
            /// By which algorithm the congestion window of a connection grows and shrinks.
            CongestionAlgorithm {
                $($(#[doc = $doc])+ $state = $name,)+
                $($(#[doc = $boxed_doc])+ $boxed_state = $boxed_name,)+
            }
        }

        impl Algorithm {
            $(
                $(#[doc = $doc])+
                pub const $number: Self = Self::of_number(CongestionAlgorithm::$state as u8);
            )+
            $(
                $(#[doc = $boxed_doc])+
                pub const $boxed_number: Self =
                    Self::of_number(CongestionAlgorithm::$boxed_state as u8);
            )+

            /// The number of those, the first, whose state is in place.
            const IN_PLACE: usize = [$(Self::$number),+].len();

            /// Those of this crate, and their names, which are Linux's.
            pub const OURS: [(Self, &'static str); CongestionAlgorithm::ALL.len()] =
                [$((Self::$number, $name),)+ $((Self::$boxed_number, $boxed_name),)+];

            /// The state of one of ours that is boxed, for one connection.
            fn make(self) -> Option<Box<dyn CongestionControl>> {
                match self {
                    $(Self::$boxed_number => Some(Box::new($boxed_state::default())),)+
                    _ => None,
                }
            }
        }

        /// The state of the algorithm that a connection has.
        #[derive(Debug)]
        enum Kept {
            $($state($state),)+
            Boxed(Box<dyn CongestionControl>),
        }

        impl Kept {
            /// The state that a connection begins with.
            #[inline]
            fn new(algorithm: Algorithm) -> Self {
                match algorithm {
                    $(Algorithm::$number => Self::$state($state::default()),)+
                    // A boxed one is made beforehand, unless its user added it to another shard.
                    _ => Self::Reno(Reno::default()),
                }
            }

            /// As [`CongestionControl::on_ack`], which of ours is called by its name: it is what the path
            /// of every acknowledgment leads through.
            #[inline]
            fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
                match self {
                    $(Self::$state(own) => own.on_ack(window, ack),)+
                    Self::Boxed(boxed) => {
                        boxed.on_ack(window, ack);
                        window.bound(ack.mss);
                    }
                }
            }

            /// Tells of an event; afterwards a boxed one has left a window of at least `least`.
            fn dispatch(
                &mut self,
                window: &mut Window,
                least: u32,
                what: impl FnOnce(&mut dyn CongestionControl, &mut Window),
            ) {
                match self {
                    $(Self::$state(own) => what(own, window),)+
                    Self::Boxed(boxed) => {
                        what(&mut **boxed, window);
                        window.bound(least);
                    }
                }
            }
        }
    };
}
