//! Relays that carry a GiB; the same tests with less are `run::programs` and `forward`.

#[test]
#[cfg_attr(debug_assertions, ignore = "6 GiB take minutes in a debug build: give --release")]
fn run_loads_a_gib_by_each_kind_of_device() {
    crate::run::programs::loads(1 << 30);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "4 GiB take minutes in a debug build: give --release")]
fn run_loads_a_gib_by_the_stacks_own_tcp() {
    crate::run::wire::loads(1 << 30);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "2 GiB take a minute in a debug build: give --release")]
fn forward_passes_a_gib_each_way_on_after_sigterm() {
    crate::forward::expect_all_after_sigterm(1 << 10);
}
