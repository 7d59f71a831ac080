//! Bounded types for parsing JSON: they keep the beginnings of texts and lists.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

/// The beginning of a text, whole characters.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// The first `MAX` bytes of a text.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Text<const MAX: usize>(pub(super) String);

impl<'de, const MAX: usize> Deserialize<'de> for Text<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<MAX>, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor<const MAX: usize>;

impl<const MAX: usize> Visitor<'_> for TextVisitor<MAX> {
    type Value = Text<MAX>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<MAX>, E> {
        Ok(Text(cut(text, MAX).to_owned()))
    }
}

/// The first `MAX` elements of a list; none where it is null.
pub(super) struct Few<T, const MAX: usize>(pub(super) Vec<T>);

impl<T, const MAX: usize> Default for Few<T, MAX> {
    fn default() -> Few<T, MAX> {
        Few(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Few<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Few<T, MAX>, D::Error> {
        deserializer.deserialize_any(FewVisitor(PhantomData))
    }
}

struct FewVisitor<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for FewVisitor<T, MAX> {
    type Value = Few<T, MAX>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Few<T, MAX>, E> {
        Ok(Few::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<T, MAX>, A::Error> {
        let mut few = Few::default();
        while few.0.len() < MAX {
            match list.next_element()? {
                Some(element) => few.0.push(element),
                None => return Ok(few),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(few)
    }
}

#[cfg(test)]
mod tests {
    use super::{Few, Text, cut};

    #[test]
    fn texts_are_cut_between_characters_and_lists_after_their_first() {
        assert_eq!((cut("aé", 2), cut("aé", 3), cut("aé", 9), cut("", 1)), ("a", "aé", "aé", ""));
        let text: Text<2> = serde_json::from_str(r#""\u0061\u00e9""#).expect("a text");
        assert_eq!(text.0, "a");
        let few: Few<u8, 2> = serde_json::from_str("[1,2,\"no number\",{}]").expect("a list");
        assert_eq!(few.0, [1, 2]);
        assert!(serde_json::from_str::<Few<u8, 2>>("null").is_ok_and(|few| few.0.is_empty()));
        assert!(serde_json::from_str::<Few<u8, 2>>("[1").is_err());
    }
}
