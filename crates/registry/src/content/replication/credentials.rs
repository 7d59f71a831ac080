//! Accounts at other registries: which password a policy's upstream keeps when it changes, and how it is stored.
//!
//! The password lies sealed beside the policy. Nothing but the client that asks the upstream opens it.

use std::fmt;

use bowline_contract::bowline::registry::v1::Upstream;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::Vault;
use bowline_store::{ReadTx, Value};

/// An account at another registry.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Its name, without a colon.
    pub username: String,
    /// Its password or token, never empty.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// What becomes of the stored password.
#[derive(Debug, PartialEq, Eq)]
pub enum Password {
    Unchanged,
    /// The upstream has no password any more.
    Gone,
    /// This password replaces it.
    Given(String),
}

/// What a password is good for.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    /// Address of the upstream.
    pub url: &'a str,
    /// Empty for anonymous requests.
    pub username: &'a str,
}

/// Why an upstream cannot be set with this account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongAccount {
    /// A password without a user name.
    NoUsername,
    /// A user name, and no password is stored.
    NoPassword,
    /// The stored password is for another address or user name.
    Other,
}

/// What becomes of the password of an upstream, whose account was `before` if it has one, and for which `given` comes with the
/// change, empty for none. The stored password stays only with the same address and user name. With another address it would
/// be sent to whatever host that is, at the request of a caller who does not know it.
///
/// # Errors
/// Why the change cannot be made.
pub fn change(
    before: Option<Account<'_>>,
    after: Account<'_>,
    given: String,
) -> std::result::Result<Password, WrongAccount> {
    match (after.username.is_empty(), given.is_empty()) {
        (true, true) => Ok(Password::Gone),
        (true, false) => Err(WrongAccount::NoUsername),
        (false, false) => Ok(Password::Given(given)),
        (false, true) => {
            let before = before.ok_or(WrongAccount::NoPassword)?;
            let is_same = before.url.trim_end_matches('/') == after.url.trim_end_matches('/');
            let is_same = is_same && before.username == after.username;
            if is_same { Ok(Password::Unchanged) } else { Err(WrongAccount::Other) }
        }
    }
}

/// Takes the password out of an upstream that is to be stored, and sets whether it has one.
///
/// # Errors
/// INVALID_ARGUMENT for an account that cannot be: see [`change`].
pub(crate) fn settle(before: Option<&Upstream>, after: Option<&mut Upstream>) -> Result<Password> {
    let Some(after) = after else { return Ok(Password::Gone) };
    let given = std::mem::take(&mut after.password);
    after.has_password = !after.username.is_empty();
    let before = before.filter(|before| before.has_password).map(account);
    change(before, account(after), given).map_err(|wrong| match wrong {
        WrongAccount::NoUsername => Error::invalid_field(USERNAME, NO_USERNAME),
        WrongAccount::NoPassword => Error::invalid_field(PASSWORD, NO_PASSWORD),
        WrongAccount::Other => Error::invalid_field(PASSWORD, OTHER_ACCOUNT),
    })
}

const USERNAME: &str = "upstream.username";
const PASSWORD: &str = "upstream.password";
const NO_USERNAME: &str = "upstream.username must be given together with upstream.password";
const NO_PASSWORD: &str = "upstream.password must be given together with upstream.username; leave both out to ask the \
                           upstream as everybody may";
const OTHER_ACCOUNT: &str = "upstream.password must be given again together with another upstream.url or \
                             upstream.username: the stored one is for the address and the user name of before";

fn account(upstream: &Upstream) -> Account<'_> {
    Account { url: &upstream.url, username: &upstream.username }
}

/// The sealed password of the upstream of a group's or repository's policy; empty without one.
pub(crate) async fn sealed(tx: &mut ReadTx, place: &str) -> Result<Vec<u8>> {
    let sql = "SELECT upstream_password FROM registry_policies WHERE place = $1";
    let found = tx.query_opt(sql, &[Value::from(place)], |row| row.bytes(0).map_err(Error::from)).await?;
    Ok(found.unwrap_or_default())
}

/// The sealed password that replaces `before`.
pub(crate) fn seal(vault: &Vault, place: &Uidp, password: &Password, before: Vec<u8>) -> Vec<u8> {
    match password {
        Password::Unchanged => before,
        Password::Gone => Vec::new(),
        Password::Given(password) => vault.seal(&context(place.as_str()), password.as_bytes()),
    }
}

/// The account of the upstream of a group's or repository's policy; absent if it has none.
pub(crate) async fn of(
    tx: &mut ReadTx,
    vault: &Vault,
    place: &str,
    upstream: &Upstream,
) -> Result<Option<Credentials>> {
    if upstream.username.is_empty() {
        return Ok(None);
    }
    let context = context(place);
    let plain = vault.open(&context, &sealed(tx, place).await?)?;
    let password = String::from_utf8(plain);
    let password = password.map_err(|_| Error::internal(format!("{context}: the password is no text")))?;
    Ok(Some(Credentials { username: upstream.username.clone(), password }))
}

/// The context for which the password of a policy's upstream is sealed.
pub fn context(place: &str) -> String {
    format!("upstream of {place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(url: &str, username: &str, password: &str) -> Upstream {
        let (url, username, password) = (url.into(), username.into(), password.into());
        Upstream { url, username, password, ..Upstream::default() }
    }

    #[test]
    fn a_password_stays_with_what_it_was_given_for() {
        let stored = Upstream { has_password: true, ..upstream("https://a.example/x", "me", "") };
        let settled = |before: Option<&Upstream>, mut given: Upstream| {
            let password = settle(before, Some(&mut given)).ok()?;
            assert_eq!(given.password, "");
            Some((password, given.has_password))
        };
        let with = |url: &str, username: &str, password: &str| {
            settled(Some(&stored), Upstream { has_password: true, ..upstream(url, username, password) })
        };
        assert_eq!(with("https://a.example/x", "me", ""), Some((Password::Unchanged, true)));
        assert_eq!(with("https://a.example/x/", "me", ""), Some((Password::Unchanged, true)));
        assert_eq!(with("https://b.example/x", "me", "new"), Some((Password::Given("new".into()), true)));
        assert_eq!(with("https://b.example/x", "", ""), Some((Password::Gone, false)));
        for (url, username, password) in [
            ("https://b.example/x", "me", ""),
            ("https://a.example:444/x", "me", ""),
            ("https://a.example/y", "me", ""),
            ("https://a.example/x", "you", ""),
            ("https://a.example/x", "", "password"),
        ] {
            assert_eq!(with(url, username, password), None, "{url} {username}");
        }
        assert_eq!(settled(None, upstream("https://a.example/x", "me", "")), None);
        assert_eq!(settle(Some(&stored), None).unwrap(), Password::Gone);
    }

    #[test]
    fn debug_output_has_no_password() {
        let credentials = Credentials { username: "me".into(), password: "hush".into() };
        assert_eq!(format!("{credentials:?}"), "Credentials { username: \"me\", .. }");
    }
}
