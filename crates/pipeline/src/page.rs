//! Pages of a list: sizes, order, and tokens that are bound to the query they belong to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_authn::crypto::{hmac_sha256, sha256};
use bowline_core::{Error, FieldViolation, Micros, Reason, Result};
use serde_json::json;

use crate::call::{Context, Paged};

/// Default number of items on a page.
const DEFAULT_PAGE_SIZE: i32 = 50;
/// Maximum number of items on a page; more is served as this.
const MAX_PAGE_SIZE: i32 = 200;
/// How long a page token lives: 3 days, in microseconds.
const TOKEN_LIFETIME: Micros = 3 * 24 * 3600 * 1_000_000;

const VERSION: u8 = 1;
const TAG_LENGTH: usize = 16;

/// Which way a list is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Direction {
    Ascending,
    Descending,
}

/// The paging fields of a list request, as the caller sent them.
#[derive(Clone, Debug, Default)]
pub struct PageRequest {
    /// Wanted number of items.
    pub page_size: i32,
    /// Cursor of the page before.
    pub page_token: String,
    pub order_by: String,
    /// Items to leave out.
    pub skip: i32,
    /// The rest of the request, encoded: what a token is bound to.
    pub filter: Vec<u8>,
}

/// Where the last page ended: the sort key of its last row, and the row's UIDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Sort key, absent where the list is sorted by UIDP.
    pub key: Option<SortKey>,
    /// UIDP of the last row.
    pub uid: String,
    /// Items that `skip` left out so far.
    pub skipped: i64,
}

/// A value that rows are sorted by.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum SortKey {
    Text(String),
    Int(i64),
}

/// A checked page request.
#[derive(Clone, Debug)]
pub struct Page {
    /// Items on the page, 1 to 200.
    pub size: usize,
    /// Position in the list of order fields.
    pub order: usize,
    pub direction: Direction,
    /// Items to leave out from the cursor on.
    pub skip: i64,
    /// Where the page before ended.
    pub cursor: Option<Cursor>,
    binding: [u8; 32],
}

pub struct PageKey([u8; 32]);

impl PageKey {
    /// From 32 secret bytes.
    pub fn new(key: [u8; 32]) -> PageKey {
        PageKey(key)
    }
}

impl Page {
    /// Checks a page request. `orders` are the names that each order field goes by, the first one first;
    /// without `order_by` the field `default` in the given direction sorts.
    ///
    /// # Errors
    /// INVALID_ARGUMENT: negative numbers, an unknown field, a token that is damaged, expired or of another query.
    pub fn validate(
        call: &impl Paged,
        request: &PageRequest,
        orders: &[&[&str]],
        default: (usize, Direction),
    ) -> Result<Page> {
        let context = call.paging().context;
        let mut violations = Vec::new();
        for (field, value) in [("pageSize", request.page_size), ("skip", request.skip)] {
            if value < 0 {
                violations.push(FieldViolation { field: field.into(), description: "must not be negative".into() });
            }
        }
        let order = parse_order(&request.order_by, orders, default);
        if let Err(description) = &order {
            violations.push(FieldViolation { field: "orderBy".into(), description: description.clone() });
        }
        let Ok((order, direction)) = order else {
            return Err(Error::invalid(violations));
        };
        if !violations.is_empty() {
            return Err(Error::invalid(violations));
        }
        let size = match request.page_size {
            0 => DEFAULT_PAGE_SIZE,
            size => size.min(MAX_PAGE_SIZE),
        };
        let mut page = Page {
            size: size as usize,
            order,
            direction,
            skip: request.skip.into(),
            cursor: None,
            binding: binding(context, request, order, direction),
        };
        if !request.page_token.is_empty() {
            page.cursor = Some(open_token(&context.page_key, &request.page_token, &page.binding, context.now)?);
        }
        Ok(page)
    }

    /// The first page by UIDP, without filters: where whole lists begin.
    pub fn first(skip: i64) -> Page {
        Page { size: 0, order: 0, direction: Direction::Ascending, skip, cursor: None, binding: [0; 32] }
    }

    /// The page by UIDP that begins after this one.
    pub fn after(uid: &str) -> Page {
        Page { cursor: Some(Cursor { key: None, uid: uid.into(), skipped: 0 }), ..Page::first(0) }
    }

    /// Items that `skip` left out up to and with this page.
    pub fn skipped(&self) -> i64 {
        self.cursor.as_ref().map_or(0, |cursor| cursor.skipped) + self.skip
    }

    /// The token of the page that follows this cursor.
    pub fn next_token(&self, call: &impl Paged, key: Option<SortKey>, uid: String) -> String {
        let context = call.paging().context;
        let cursor = Cursor { key, uid, skipped: self.skipped() };
        seal_token(&context.page_key, &cursor, &self.binding, context.now)
    }
}

fn parse_order(
    text: &str,
    orders: &[&[&str]],
    default: (usize, Direction),
) -> std::result::Result<(usize, Direction), String> {
    let mut words = text.split_whitespace();
    let Some(field) = words.next() else { return Ok(default) };
    let direction = match words.next().map(str::to_ascii_lowercase).as_deref() {
        None | Some("asc") => Direction::Ascending,
        Some("desc") => Direction::Descending,
        Some(_) => return Err("the direction is asc or desc".into()),
    };
    if words.next().is_some() {
        return Err("one field, optionally followed by asc or desc".into());
    }
    let known = || orders.iter().filter_map(|names| names.first().copied()).collect::<Vec<_>>().join(", ");
    let order = orders.iter().position(|names| names.contains(&field));
    order
        .map(|order| (order, direction))
        .ok_or_else(|| format!("\"{field}\" is not a field to sort by; one of {}", known()))
}

/// What a token belongs to: the method, the caller, the filter and the order.
fn binding(context: &Context, request: &PageRequest, order: usize, direction: Direction) -> [u8; 32] {
    let mut text = Vec::new();
    for part in [context.info().full_name.as_bytes(), context.principal.subject().as_bytes(), &request.filter] {
        text.extend((part.len() as u64).to_be_bytes());
        text.extend(part);
    }
    text.push(order as u8);
    text.push(u8::from(direction == Direction::Descending));
    sha256(&text)
}

fn seal_token(key: &PageKey, cursor: &Cursor, binding: &[u8; 32], now: Micros) -> String {
    let (text, int) = match &cursor.key {
        None => (None, None),
        Some(SortKey::Text(text)) => (Some(text), None),
        Some(SortKey::Int(int)) => (None, Some(int)),
    };
    let body = json!([text, int, cursor.uid, cursor.skipped]).to_string();
    let mut token = vec![VERSION];
    token.extend(now.to_be_bytes());
    token.extend(body.as_bytes());
    let tag = tag(key, &token, binding);
    token.extend(&tag[..TAG_LENGTH]);
    URL_SAFE_NO_PAD.encode(token)
}

fn open_token(key: &PageKey, text: &str, binding: &[u8; 32], now: Micros) -> Result<Cursor> {
    let invalid = || {
        Error::new(
            Reason::PageTokenInvalid,
            "Invalid argument: page_token: the token is damaged or belongs to another query; start again without it",
        )
    };
    let token = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| invalid())?;
    let split = token.len().checked_sub(TAG_LENGTH).filter(|at| *at > 9).ok_or_else(invalid)?;
    let (body, given) = token.split_at(split);
    let expected = tag(key, body, binding);
    if !bowline_authn::crypto::constant_time_eq(&expected[..TAG_LENGTH], given) || body[0] != VERSION {
        return Err(invalid());
    }
    let issued = i64::from_be_bytes(std::array::from_fn(|i| body[1 + i]));
    if now - issued > TOKEN_LIFETIME {
        return Err(Error::new(
            Reason::PageTokenExpired,
            "Invalid argument: page_token: the token is older than 3 days; start again without it",
        ));
    }
    let value: serde_json::Value = serde_json::from_slice(&body[9..]).map_err(|_| invalid())?;
    let sort_key = match (value[0].as_str(), value[1].as_i64()) {
        (Some(text), _) => Some(SortKey::Text(text.into())),
        (None, Some(int)) => Some(SortKey::Int(int)),
        (None, None) => None,
    };
    Ok(Cursor {
        key: sort_key,
        uid: value[2].as_str().ok_or_else(invalid)?.into(),
        skipped: value[3].as_i64().ok_or_else(invalid)?,
    })
}

fn tag(key: &PageKey, body: &[u8], binding: &[u8; 32]) -> [u8; 32] {
    let mut message = Vec::with_capacity(body.len() + 32);
    message.extend(binding);
    message.extend(body);
    hmac_sha256(&key.0, &message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: PageKey = PageKey([7; 32]);

    fn cursor() -> Cursor {
        Cursor { key: Some(SortKey::Text("é\"x".into())), uid: "ab/cd".into(), skipped: 3 }
    }

    #[test]
    fn tokens_come_back() {
        for key in [None, Some(SortKey::Int(-5)), Some(SortKey::Text(String::new()))] {
            let cursor = Cursor { key, ..cursor() };
            let token = seal_token(&KEY, &cursor, &[1; 32], 1000);
            assert_eq!(open_token(&KEY, &token, &[1; 32], 1000).unwrap(), cursor);
        }
    }

    #[test]
    fn tokens_are_bound_and_age() {
        let token = seal_token(&KEY, &cursor(), &[1; 32], 1000);
        let reason = |result: Result<Cursor>| result.unwrap_err().reason();
        assert_eq!(reason(open_token(&KEY, &token, &[2; 32], 1000)), Reason::PageTokenInvalid);
        assert_eq!(reason(open_token(&PageKey([8; 32]), &token, &[1; 32], 1000)), Reason::PageTokenInvalid);
        assert_eq!(reason(open_token(&KEY, &token, &[1; 32], 1001 + TOKEN_LIFETIME)), Reason::PageTokenExpired);
    }

    #[test]
    fn orders() {
        let orders: &[&[&str]] = &[&["uid"], &["create_time", "created_at", "createTime"]];
        let parse = |text| parse_order(text, orders, (0, Direction::Ascending));
        assert_eq!(parse(""), Ok((0, Direction::Ascending)));
        assert_eq!(parse("created_at desc"), Ok((1, Direction::Descending)));
        assert_eq!(parse("createTime ASC"), Ok((1, Direction::Ascending)));
        for bad in ["nothing", "uid down", "uid asc desc", "uid, name"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn damage_is_noticed(at in 0usize..60, flip in 1u8..=255) {
            let token = seal_token(&KEY, &cursor(), &[1; 32], 1000);
            let mut bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert!(open_token(&KEY, &URL_SAFE_NO_PAD.encode(&bytes), &[1; 32], 1000).is_err());
        }

        #[test]
        fn noise_is_refused(text in ".{0,80}") {
            prop_assert!(open_token(&KEY, &text, &[1; 32], 1000).is_err());
        }
    }
}
