//! The reference pages of `docs/reference` are those of the tables, and the names that the tables
//! call Linux' are Linux'.
#![forbid(unsafe_code)]

#[cfg(test)]
mod pages;
#[cfg(test)]
mod tests;
