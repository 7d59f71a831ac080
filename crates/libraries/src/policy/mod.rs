//! What policies say, without the database: package URLs, licences, and the decision.

pub mod age;
pub mod decide;
pub(super) mod license;
pub(super) mod purl;
