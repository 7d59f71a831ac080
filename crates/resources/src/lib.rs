//! What every resource is made with: lists with their pages and counts, the search of names, kinds, checks of parents,
//! name patterns, and what belongs to a group.
//!
//! A list of a new resource is a [`list::Table`] and a [`list::Listed`] row; see [`list`]. A domain whose rows belong to
//! a group says so with a [`groups::GroupContents`].

pub mod days;
pub mod groups;
pub mod kinds;
pub mod list;
pub mod names;
pub mod patterns;
pub mod references;
