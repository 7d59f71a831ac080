//! Signed statements about files of upstreams: requested when someone asks for them, and stored as pages of packages are.

use bowline_core::{Micros, Reason};
use bowline_store::ReadTx;

use super::documents::{self, Ask, UpstreamAccess};
use super::package::{Known, Located, locate_file, silent};
use super::package_file::PackageFile;
use super::protocols::Protocol;
use super::views::View;
use super::{Attestations, FileName, HostError, Hosting, Lookup, attestations};
use crate::ecosystems::Language;

/// What an upstream says about a file, which no one has compared with the file yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatements {
    /// Name of the upstream within the organization.
    pub upstream: String,
    /// Name and version of the package, and name of the file.
    pub package: String,
    pub version: String,
    pub file: String,
    /// Digest of the file that they must be about: its algorithm, a colon and hex.
    pub digest: String,
    /// The JSON that the upstream has.
    pub text: String,
    /// Microseconds since the upstream confirmed them, if that is too long ago and it could not be asked again.
    pub stale: Option<Micros>,
}

/// What the upstream of a package has about a file, if it names statements about that very file.
///
/// # Errors
/// There are none, or UNAVAILABLE if the upstream cannot be asked.
pub(super) async fn find<P: Protocol>(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    (package, version, named): (&str, &str, &FileName),
    now: Micros,
) -> std::result::Result<Lookup<Attestations>, HostError> {
    let absent = || attestations::absent(&named.name, package, version);
    if !matches!(P::LANGUAGE, Language::Python | Language::JavaScript) {
        return Err(absent().into());
    }
    let package = match locate_file(tx, hosting, view, (P::LANGUAGE, package), named, now).await {
        Ok(Located::Here(package)) => package,
        Ok(Located::Ask(ask)) => return Ok(Lookup::Ask(ask)),
        Ok(Located::Fetch(_)) => return Err(absent().into()),
        Err(error) if error.reason() == Reason::NotFound => return Err(absent().into()),
        Err(error) => return Err(error.into()),
    };
    let file = package
        .file(named)
        .filter(|file| P::LANGUAGE.is_same_version(&file.version, version) && file.is_of(view.moment));
    let (Some(file), Some(upstream)) = (file, &package.upstream) else { return Err(absent().into()) };
    let address = address(upstream, &package.name, file).ok_or_else(absent)?;
    let key = key(&package.name, &file.name);
    let document = documents::find(tx, &upstream.uid, &key).await?;
    let head = document.as_ref().map(|document| document.head.clone());
    let stale = match Known::of(hosting, &upstream.uid, &key, head, now) {
        Known::Fresh(_) => None,
        Known::Old(head) => Some(now.saturating_sub(head.fetched_at)),
        Known::Absent => return Err(absent().into()),
        Known::Silent => return Err(silent(upstream).into()),
        Known::Unasked(head) => {
            let ask = Ask::new(upstream.clone(), (P::LANGUAGE, &key), head);
            return Ok(Lookup::Ask(Box::new(Ask { statements: Some(address), ..ask })));
        }
    };
    let text = document.map(documents::DocumentRow::into_statements).filter(|text| !text.is_empty());
    Ok(Lookup::Here(Attestations::Upstream(UpstreamStatements {
        upstream: upstream.name.clone(),
        package: package.name.clone(),
        version: file.version.clone(),
        file: file.name.clone(),
        digest: file.digest.clone(),
        text: text.ok_or_else(absent)?,
        stale,
    })))
}

/// Where the statements about a file are at its upstream; absent if that names none. Of npm, the address that a document names
/// is not followed: registries behind a proxy name others, and each has the statements below itself.
fn address(upstream: &UpstreamAccess, package: &str, file: &PackageFile) -> Option<String> {
    if file.provenance_type.is_empty() {
        return Some(file.provenance_url.clone()).filter(|url| !url.is_empty());
    }
    let (base, package) = (upstream.url.trim_end_matches('/'), package.replace('/', "%2f"));
    Some(format!("{base}/-/npm/v1/attestations/{package}@{}", file.version))
}

/// What statements about a file are stored by, beside the pages of packages. No name of a package has a space.
fn key(package: &str, file: &str) -> String {
    format!("{package} {file}")
}
