//! What is known of the versions of upstreams without asking them: what previews and explanations of policies are made of.

use std::collections::HashMap;

use bowline_core::{Micros, Result, Uidp};
use bowline_store::ReadTx;

use super::package::is_own;
use super::{documents, upstream_files, upstreams};
use crate::ecosystems::Language;

/// What the upstreams of an organization were last known to say of a version.
#[derive(Clone, Default)]
pub(crate) struct UpstreamFacts {
    /// The license that a fetched file of it declares; empty if none was fetched.
    pub(crate) license: String,
    /// When its first file became public, where that is known.
    pub(crate) published_at: Option<Micros>,
}

/// The facts of the versions of a package that comes from an upstream, by their sort keys; none if no document here has it, or
/// the name is the organization's own.
pub(crate) async fn upstream_facts(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
    name: &str,
) -> Result<HashMap<Vec<u8>, UpstreamFacts>> {
    let mut facts: HashMap<Vec<u8>, UpstreamFacts> = HashMap::new();
    if is_own(tx, organization, language, name).await? {
        return Ok(facts);
    }
    for row in upstreams::of_organization(tx, organization.as_str()).await? {
        if row.language != language {
            continue;
        }
        let document = documents::find(tx, &row.uid, name).await?;
        let stored_files = upstream_files::stored_files(tx, &row.uid, name).await?;
        if document.is_none() && stored_files.is_empty() {
            continue;
        }
        for file in document.iter().flat_map(|document| document.files(language)) {
            let known = facts.entry(file.sort_key).or_default();
            known.published_at = known.published_at.into_iter().chain(file.uploaded_at).min();
            known.license = file.license;
        }
        for stored in stored_files {
            let file = stored.file(language);
            let known = facts.entry(file.sort_key).or_default();
            known.published_at = known.published_at.into_iter().chain(file.uploaded_at).min();
            if !file.license.is_empty() {
                known.license = file.license;
            }
        }
        break;
    }
    Ok(facts)
}
