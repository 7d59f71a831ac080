//! What goes in and out of signing in.

use std::fmt;

use bowline_core::{Micros, Uidp};
use serde::{Deserialize, Serialize};

/// Where a provider comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The operator offers it to everyone.
    Operator { id: String },
    /// A group's own; the organization is the root of its UIDP.
    Organization { uid: Uidp },
}

/// A provider that people sign in with.
#[derive(Clone)]
pub struct Provider {
    /// Where it comes from.
    pub source: Source,
    /// What the page shows.
    pub label: String,
    pub issuer: String,
    /// Client id of this server at the provider.
    pub client_id: String,
    /// Absent for a public client.
    pub(crate) client_secret: Option<String>,
    /// Scopes to request besides `openid`.
    pub scopes: Vec<String>,
    /// Whether the organization wants PKCE to be required; it is used always.
    pub pkce: bool,
    /// The claim that lists the person's groups; empty for none.
    pub groups_claim: String,
    /// Which claim the organization's directory knows the person by.
    pub correlation_rule: i32,
}

impl fmt::Debug for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Provider")
            .field("source", &self.source)
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// A provider of the operator as it is configured.
#[derive(Clone)]
pub struct ConfiguredProvider {
    pub id: String,
    /// What the page shows.
    pub label: String,
    pub issuer: String,
    /// Client id of this server at the provider.
    pub client_id: String,
    /// Absent for a public client.
    pub client_secret: Option<String>,
    /// Scopes to request besides `openid`.
    pub scopes: Vec<String>,
}

impl fmt::Debug for ConfiguredProvider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConfiguredProvider")
            .field("id", &self.id)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

/// How a caller names a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One of the operator's, by its short name.
    Operator(String),
    /// The first one of a verified organization, by its name.
    Organization(String),
    /// An organization's, by its UIDP.
    Provider(Uidp),
}

/// What the authorization request carries.
#[derive(Clone, Copy, Debug)]
pub struct AuthorizationRequest<'a> {
    /// Where the browser comes back to.
    pub redirect_uri: &'a str,
    pub state: &'a str,
    /// Comes back inside the id token.
    pub nonce: &'a str,
    /// Challenge of PKCE, method S256.
    pub code_challenge: &'a str,
    /// Whom the page should expect.
    pub login_hint: Option<&'a str>,
    /// Which page to begin with.
    pub screen_hint: Option<&'a str>,
}

/// What the browser brought back.
#[derive(Clone, Copy)]
pub struct Redemption<'a> {
    pub code: &'a str,
    /// The one of the authorization request.
    pub redirect_uri: &'a str,
    /// PKCE: what the challenge was made of.
    pub code_verifier: &'a str,
    /// The one of the authorization request.
    pub nonce: &'a str,
    /// The response's issuer (RFC 9207), where there was one.
    pub iss: Option<&'a str>,
}

/// Who the provider says has signed in. It waits sealed until the person confirms.
#[derive(Clone, Serialize, Deserialize)]
pub struct Upstream {
    /// The provider's issuer URL.
    pub issuer: String,
    pub subject: String,
    /// Our name at the provider when its word was verified: what it says is worth no more than what it says to
    /// that client.
    pub client_id: String,
    /// Address, verified or not.
    pub email: Option<String>,
    /// Whether the provider says that it verified the address.
    pub email_verified: bool,
    pub name: Option<String>,
    pub given_name: Option<String>,
    pub family_name: Option<String>,
    /// Address of a picture.
    pub picture: Option<String>,
    /// Values of the provider's groups claim.
    pub groups: Vec<String>,
    /// The object id that some directories know people by.
    pub oid: Option<String>,
    /// The verified id token itself.
    pub id_token: String,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Upstream").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// Code of an invitation to redeem.
    pub invite: Option<String>,
    /// Whether an unknown person is registered.
    pub may_register: bool,
    /// The browser's session secret, which is stored hashed; absent where no browser keeps one.
    pub cookie: Option<[u8; 32]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Id of the session.
    pub session: String,
    pub identity: Uidp,
    /// Whether they are new here.
    pub is_new: bool,
}

/// The requested tokens and their limits.
#[derive(Clone, Debug, Default)]
pub struct TokenParams {
    /// Audiences; at least one.
    pub audiences: Vec<String>,
    /// An identity to assume with the upstream token instead.
    pub identity: Option<Uidp>,
    /// Groups to narrow the token to.
    pub scopes: Vec<String>,
    /// Capabilities to narrow the token to.
    pub capabilities: Vec<String>,
    /// Whether a refresh token is wanted, too.
    pub refresh: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    pub token: String,
    /// When it ends, in seconds since the Unix epoch.
    pub expires_at: i64,
    /// The refresh token, if it was requested and the session allows one.
    pub refresh_token: Option<String>,
}

impl fmt::Debug for Issued {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Issued").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// Who is signed in with a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    pub identity: Uidp,
    /// Id of the session.
    pub session: String,
    /// Name or address, to show.
    pub name: String,
    /// Verified address; empty if there is none.
    pub email: String,
    /// Whether it is the operator.
    pub is_operator: bool,
}

/// What every step knows of the request that it is part of.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub now: Micros,
    /// Id of the request, for the audit log.
    pub request_id: &'a str,
    /// Random bytes, other ones at each asking.
    pub draw: &'a (dyn Fn() -> [u8; 32] + Sync),
    /// What was called, for the audit log.
    pub method: &'static str,
}
