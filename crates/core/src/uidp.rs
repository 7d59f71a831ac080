use std::fmt;

/// Characters of a root segment: 20 random bytes in lower-case hex.
pub const ROOT_LENGTH: usize = 40;
/// Characters of every further segment: 8 random bytes in lower-case hex.
pub const SEGMENT_LENGTH: usize = 16;

/// Maximum number of levels below the root; longer texts are rejected before they are looked at.
pub const MAX_LEVELS: usize = 64;

const MAX_LENGTH: usize = ROOT_LENGTH + MAX_LEVELS * (SEGMENT_LENGTH + 1);

/// The path-like identifier of a resource: `<40 hex>(/<16 hex>)*`.
///
/// A resource's ancestors are the prefixes of its UIDP, so a permission decision needs no look-up.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uidp(Box<str>);

/// The text is not a UIDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UidpError;

impl fmt::Display for UidpError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("must be a UIDP: 40 lower-case hexadecimal characters, then / and 16 more per level")
    }
}

impl std::error::Error for UidpError {}

impl Uidp {
    /// Reads a UIDP.
    ///
    /// # Errors
    /// The text does not have the shape of one.
    pub fn parse(text: &str) -> Result<Uidp, UidpError> {
        if Uidp::is_valid(text) { Ok(Uidp(text.into())) } else { Err(UidpError) }
    }

    /// Whether the text has the shape of a UIDP.
    pub fn is_valid(text: &str) -> bool {
        if text.len() > MAX_LENGTH {
            return false;
        }
        let mut segments = text.split('/');
        let root_is_valid = segments.next().is_some_and(|root| is_hex(root, ROOT_LENGTH));
        root_is_valid && segments.all(|segment| is_hex(segment, SEGMENT_LENGTH))
    }

    /// The UIDP of a root resource made of 20 bytes.
    pub fn root_from(bytes: [u8; ROOT_LENGTH / 2]) -> Uidp {
        Uidp(hex(&bytes).into())
    }

    /// The UIDP of a child of this one made of 8 bytes.
    pub fn child_from(&self, bytes: [u8; SEGMENT_LENGTH / 2]) -> Uidp {
        Uidp(format!("{}/{}", self.0, hex(&bytes)).into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The UIDP above, absent for a root.
    pub fn parent(&self) -> Option<Uidp> {
        self.0.rsplit_once('/').map(|(parent, _)| Uidp(parent.into()))
    }

    /// Text of the UIDP above, empty for a root: the form that stored `parent` columns have.
    pub fn parent_str(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(parent, _)| parent)
    }

    /// The first segment: the organization, the person or the built-in role.
    pub fn root_str(&self) -> &str {
        self.0.split('/').next().unwrap_or(&self.0)
    }

    /// The first segment as a UIDP.
    pub fn root(&self) -> Uidp {
        Uidp(self.root_str().into())
    }

    /// Whether this is a root.
    pub fn is_root(&self) -> bool {
        self.0.len() == ROOT_LENGTH
    }

    /// Whether this is `other` or an ancestor of it.
    pub fn contains(&self, other: &str) -> bool {
        match other.strip_prefix(&*self.0) {
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// Number of levels below the root; 0 for a root.
    pub fn levels(&self) -> usize {
        (self.0.len() - ROOT_LENGTH) / (SEGMENT_LENGTH + 1)
    }

    /// This UIDP, then its parent, up to the root.
    pub fn self_and_ancestors(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(self.as_str()), |text| text.rsplit_once('/').map(|(parent, _)| parent))
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

impl fmt::Display for Uidp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Uidp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Uidp({})", self.0)
    }
}

impl AsRef<str> for Uidp {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Uidp {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<Uidp> for String {
    fn from(uidp: Uidp) -> String {
        uidp.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROOT: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn shapes() {
        assert!(Uidp::is_valid(ROOT));
        assert!(Uidp::is_valid(&format!("{ROOT}/0123456789abcdef")));
        for wrong in [
            "",
            "/",
            "0123",
            &ROOT.to_uppercase(),
            &format!("{ROOT}/"),
            &format!("{ROOT}/012345678"),
            &format!("{ROOT}//0123456789abcdef"),
            &format!("/{ROOT}"),
            &format!("{ROOT} "),
        ] {
            assert_eq!(Uidp::parse(wrong), Err(UidpError), "{wrong:?}");
        }
    }

    #[test]
    fn no_longer_than_its_levels() {
        let deepest = format!("{ROOT}{}", "/0123456789abcdef".repeat(MAX_LEVELS));
        assert!(Uidp::is_valid(&deepest));
        assert!(!Uidp::is_valid(&format!("{deepest}/0123456789abcdef")));
    }

    #[test]
    fn hierarchy() {
        let root = Uidp::parse(ROOT).unwrap();
        let child = root.child_from([1; 8]);
        let grandchild = child.child_from([2; 8]);
        assert_eq!(grandchild.parent().as_ref(), Some(&child));
        assert_eq!(root.parent(), None);
        assert_eq!(grandchild.root(), root);
        assert!(root.contains(grandchild.as_str()) && root.contains(root.as_str()));
        assert!(!child.contains(root.as_str()));
        assert!(!root.contains(&format!("{ROOT}0")));
        let chain: Vec<_> = grandchild.self_and_ancestors().collect();
        assert_eq!(chain, [grandchild.as_str(), child.as_str(), root.as_str()]);
    }

    proptest! {
        #[test]
        fn made_ones_are_valid(root: [u8; 20], levels in proptest::collection::vec(any::<[u8; 8]>(), 0..=MAX_LEVELS)) {
            let mut uidp = Uidp::root_from(root);
            for level in levels {
                uidp = uidp.child_from(level);
            }
            prop_assert!(Uidp::is_valid(uidp.as_str()));
            prop_assert_eq!(uidp.levels(), uidp.as_str().matches('/').count());
        }
    }
}
