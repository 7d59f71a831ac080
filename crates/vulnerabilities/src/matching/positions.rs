//! Places in the order of all matches.

use bowline_core::{Error, Result, UidRange};
use bowline_pipeline::Cursor;
use bowline_registry::components::InRepo;

/// Comes after every digest, and after every UIDP.
const AFTER_ALL: &str = "~";

/// Place of a match: the members decide in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    /// The package that is searched; empty if SBOMs are read one after the other.
    pub(super) package: String,
    pub(super) repo: String,
    pub(super) sbom: Vec<u8>,
    /// Number of the component in its SBOM.
    pub(super) number: i64,
    pub(super) image: String,
    pub(super) record: String,
}

impl Position {
    pub(super) fn of(cursor: Option<&Cursor>) -> Result<Position> {
        let Some(cursor) = cursor else { return Ok(Position::default()) };
        let (package, repo, sbom, number, image, record) =
            serde_json::from_str(&cursor.uid).map_err(Error::internal)?;
        Ok(Position { package, repo, sbom, number, image, record })
    }

    pub(super) fn text(&self) -> String {
        let Position { package, repo, sbom, number, image, record } = self;
        serde_json::json!([package, repo, sbom, number, image, record]).to_string()
    }

    /// Before all matches of the package.
    pub(super) fn of_package(package: &str) -> Position {
        Position { package: package.into(), ..Position::default() }
    }

    /// This place, or the beginning of a range that begins after it.
    pub(super) fn within(&self, range: &UidRange) -> Position {
        if self.repo >= range.lower {
            return self.clone();
        }
        Position { package: self.package.clone(), repo: range.lower.clone(), ..Position::default() }
    }

    /// After all matches of the component.
    pub(super) fn after_component(&self) -> Position {
        Position { image: AFTER_ALL.into(), record: String::new(), ..self.clone() }
    }

    /// After all matches of the SBOM.
    pub(super) fn after_sbom(&self) -> Position {
        Position { number: i64::MAX, ..self.after_component() }
    }

    /// After all matches of the package.
    pub(super) fn after_package(package: &str) -> Position {
        Position { repo: AFTER_ALL.into(), ..Position::of_package(package) }
    }

    pub(super) fn image(&self) -> InRepo {
        (self.repo.clone(), self.image.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_back_from_their_text_and_are_in_order() {
        let position = Position {
            package: "npm/a".into(),
            repo: "o/r".into(),
            sbom: vec![0, 255],
            number: 7,
            image: "sha256:1".into(),
            record: "A-1".into(),
        };
        let cursor = Cursor { key: None, uid: position.text(), skipped: 0 };
        assert_eq!(Position::of(Some(&cursor)).unwrap(), position);
        assert!(Position::of_package("npm/a") < position && position < position.after_component());
        assert!(position.after_component() < position.after_sbom());
        let range = UidRange { lower: "p".into(), upper: "q".into() };
        assert_eq!((position.within(&range).repo, position.within(&range).sbom), ("p".to_owned(), vec![]));
    }
}
