//! Small formats that more than one crate reads or writes, each in one place: package URLs, percent signs, archives.
//!
//! A format belongs here when a second crate needs it. Times are in `bowline_core::rfc3339`, because everything has
//! times. What a domain makes of a format (the ecosystem that a package URL means, the files of a wheel) stays there.

pub mod archive;
pub mod percent;
pub mod purl;
