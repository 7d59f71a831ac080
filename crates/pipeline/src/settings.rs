use bowline_core::{Micros, TermsDocument, Uidp};

use crate::streams::StreamLimits;

/// Who may create an organization (a root group).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OrganizationCreators {
    #[default]
    Operator,
    /// Any signed-in caller, who becomes its owner.
    Anyone,
}

/// What open uploads to the registry may take up.
#[derive(Clone, Copy, Debug)]
pub struct UploadLimits {
    /// Uploads that one identity may have open.
    pub per_identity: u32,
    /// Uploads that may be open in one organization.
    pub per_organization: u32,
    /// An upload that has not grown for this long ends.
    pub idle: Micros,
}

/// What the operator configured and handlers need to know. Immutable while the server runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Public address of the API, without a final slash.
    pub base_url: String,
    /// Public address of the token exchange: the issuer of this server.
    pub auth_url: String,
    /// Audience of API tokens.
    pub api_audience: String,
    /// Audience of registry tokens: the registry host.
    pub registry_audience: String,
    /// Audience of library tokens: the libraries URL.
    pub libraries_audience: String,
    /// Public address of the host that serves the OSV query API alone, if there is one.
    pub osv_url: Option<String>,
    /// Issuers of the operator's providers in the configuration file: their people may be named operators.
    pub operator_issuers: Vec<String>,
    /// Who may create organizations.
    pub organizations: OrganizationCreators,
    /// Documents that organizations can accept.
    pub terms: Vec<TermsDocument>,
    /// Whether an organization must accept them all before anything in it is changed.
    pub terms_required: bool,
    /// Whether an organization needs an entitlement for each ecosystem whose packages it uses.
    pub entitlements_required: bool,
    /// Domains of e-mail providers that anyone has an address at, in lower case: they stand for no organization.
    pub blocked_email_domains: Vec<String>,
    /// Whether a mail relay is configured.
    pub sends_mail: bool,
    /// Whether the data is generated, as `bowline serve --demo` makes it.
    pub is_demo: bool,
    /// Prefix of the public identifiers of this server's advisories.
    pub advisory_prefix: String,
    /// The group whose repositories are the catalogue of community charts, if there is one.
    pub community_charts: Option<Uidp>,
    /// The same for the other catalogue of charts that the contract names.
    pub iamguarded_charts: Option<Uidp>,
    /// What open uploads may take up.
    pub uploads: UploadLimits,
    /// Streams that may be open.
    pub streams: StreamLimits,
}

impl Settings {
    /// The audiences that a token may be requested for.
    pub fn audiences(&self) -> [&str; 3] {
        [&self.api_audience, &self.registry_audience, &self.libraries_audience]
    }
}
