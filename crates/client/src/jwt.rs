use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer};

/// What a token says of itself. No one has verified it here; the server does.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Claims {
    #[serde(default)]
    pub iss: String,
    /// Whom it is about.
    #[serde(default)]
    pub sub: String,
    /// For whom it is: one audience or several.
    #[serde(default, deserialize_with = "one_or_many")]
    pub aud: Vec<String>,
    /// When it ends, unix seconds.
    #[serde(default)]
    pub exp: i64,
    /// E-mail address, of people.
    #[serde(default)]
    pub email: String,
}

fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audiences {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Audiences::deserialize(from)? {
        Audiences::One(one) => vec![one],
        Audiences::Many(many) => many,
    })
}

/// Reads the claims of a token without verifying it; absent if it does not parse.
pub fn claims(token: &str) -> Option<Claims> {
    let mut parts = token.trim().split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes = URL_SAFE_NO_PAD.decode(payload).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_a_token() {
        let payload = URL_SAFE_NO_PAD.encode(br#"{"iss":"i","sub":"s","exp":5,"aud":["x"]}"#);
        let read = claims(&format!("e30.{payload}.sig\n")).unwrap();
        assert_eq!((read.iss.as_str(), read.sub.as_str(), read.exp, read.aud), ("i", "s", 5, vec!["x".into()]));
        for text in ["", "a.b", "a.!.c", "a.e30"] {
            assert!(claims(text).is_none(), "{text}");
        }
    }
}
