//! JSON objects of others, read with bounds: a short text can have millions of members, each of which takes memory.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Bytes of a text that is read.
const TEXT: usize = 1024;

/// An object with at most so many members; more are an error.
pub(super) struct Few<T, const MOST: usize>(pub(super) BTreeMap<String, T>);

impl<T, const MOST: usize> Default for Few<T, MOST> {
    fn default() -> Few<T, MOST> {
        Few(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Few<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Few<T, MOST>, D::Error> {
        struct Reader<T, const MOST: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Reader<T, MOST> {
            type Value = Few<T, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object of at most {MOST} members")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Few<T, MOST>, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    members.insert(name, value);
                    if members.len() > MOST {
                        return Err(A::Error::custom(format!("an object has more than {MOST} members")));
                    }
                }
                Ok(Few(members))
            }
        }

        deserializer.deserialize_map(Reader(PhantomData))
    }
}

/// The texts of an object, up to so many; what is no short text is empty, and further members are passed over.
#[derive(Default)]
pub(super) struct Texts<const MOST: usize>(pub(super) BTreeMap<String, String>);

impl<'de, const MOST: usize> Deserialize<'de> for Texts<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Texts<MOST>, D::Error> {
        struct Reader<const MOST: usize>;

        impl<'de, const MOST: usize> Visitor<'de> for Reader<MOST> {
            type Value = Texts<MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Texts<MOST>, A::Error> {
                let mut texts = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if texts.len() >= MOST || name.len() > TEXT {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    }
                    let value = map.next_value::<&RawValue>()?.get();
                    let text = if value.len() <= TEXT { serde_json::from_str(value).ok() } else { None };
                    texts.insert(name, text.unwrap_or_default());
                }
                Ok(Texts(texts))
            }
        }

        deserializer.deserialize_map(Reader::<MOST>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_few_members() {
        let read = |text: &str| serde_json::from_str::<Few<u8, 2>>(text).map(|few| few.0.len());
        assert_eq!((read("{}").ok(), read("{\"a\":1,\"b\":2}").ok()), (Some(0), Some(2)));
        let refused = read("{\"a\":1,\"b\":2,\"c\":3}").expect_err("too many").to_string();
        assert!(refused.contains("more than 2 members"), "{refused}");
        assert!(read("[]").is_err() && read("{\"a\":\"x\"}").is_err());
    }

    #[test]
    fn texts_are_read_and_others_passed_over() {
        let long = "x".repeat(TEXT);
        let text = format!("{{\"a\":\"A\",\"b\":[[0]],\"c\":\"{long}\",\"d\":\"D\"}}");
        let texts = serde_json::from_slice::<Texts<3>>(text.as_bytes()).expect("an object").0;
        let found: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(found, [("a", "A"), ("b", ""), ("c", "")]);
        assert!(serde_json::from_str::<Texts<3>>("7").is_err());
    }
}
