//! Stack.
