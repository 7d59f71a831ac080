use std::fmt;

/// How a digest is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    Sha256,
    Sha512,
}

impl Algorithm {
    /// As it is written before the colon.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        }
    }

    fn characters(self) -> usize {
        match self {
            Algorithm::Sha256 => 64,
            Algorithm::Sha512 => 128,
        }
    }
}

/// A digest in its one spelling: algorithm, colon, lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest {
    text: String,
    algorithm: Algorithm,
}

/// A text is no digest that this registry knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be sha256:<64 lower-case hexadecimal characters> or sha512:<128 of them>")]
pub struct DigestError;

impl Digest {
    /// Reads a digest.
    ///
    /// # Errors
    /// Another algorithm, length or spelling.
    pub fn parse(text: &str) -> Result<Digest, DigestError> {
        let (name, hex) = text.split_once(':').ok_or(DigestError)?;
        let algorithm = match name {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            _ => return Err(DigestError),
        };
        let is_hex = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if hex.len() != algorithm.characters() || !is_hex {
            return Err(DigestError);
        }
        Ok(Digest { text: text.to_owned(), algorithm })
    }

    pub(crate) fn of_bytes(algorithm: Algorithm, bytes: &[u8]) -> Digest {
        let hex: String = bowline_core::hex(bytes);
        Digest { text: format!("{}:{hex}", algorithm.as_str()), algorithm }
    }

    /// The digest of these bytes.
    pub fn of(algorithm: Algorithm, data: &[u8]) -> Digest {
        let mut hasher = crate::hasher::Hasher::new(algorithm);
        hasher.update(data);
        hasher.finish()
    }

    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part after the colon.
    pub fn hex(&self) -> &str {
        &self.text[self.algorithm.as_str().len() + 1..]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_only() {
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let digest = Digest::parse(&format!("sha256:{hex}")).unwrap();
        assert_eq!((digest.hex(), digest.algorithm()), (hex, Algorithm::Sha256));
        assert_eq!(Digest::of(Algorithm::Sha256, b""), digest);
        assert_eq!(Digest::parse(Digest::of(Algorithm::Sha512, b"x").as_str()).unwrap().hex().len(), 128);
        let upper = hex.to_uppercase();
        for wrong in [
            "",
            hex,
            "sha256:",
            &format!("sha256:{upper}"),
            &format!("sha512:{hex}"),
            &format!("md5:{hex}"),
            &format!("sha256:{hex}0"),
            &format!("sha256:../{}", &hex[3..]),
        ] {
            assert!(Digest::parse(wrong).is_err(), "{wrong}");
        }
    }
}
