//! V1 of the metadata of vulnerabilities.

use std::sync::Arc;

use bowline_contract::v1::advisory as v1;
use bowline_contract::v1::advisory::rpc::security_advisory::ListVulnerabilityMetadata;
use bowline_core::Result;
use bowline_osv::{Facts, Link, Rated};
use bowline_pipeline::{Handlers, Open, PageRequest};
use bowline_store::ReadTx;
use prost::Message as _;

use super::metadata::{Totals, VersionQuery, page_of};

pub(super) fn register(handlers: Handlers, totals: &Arc<Totals>) -> Handlers {
    let totals = totals.clone();
    handlers.open_read::<ListVulnerabilityMetadata>(move |tx, call| {
        let totals = totals.clone();
        Box::pin(async move { list(tx, call, &totals).await })
    })
}

async fn list(
    tx: &mut ReadTx,
    call: &Open<v1::VulnerabilityMetadataFilter>,
    totals: &Totals,
) -> Result<v1::VulnerabilityMetadataList> {
    let request = call.request().clone();
    let filter =
        v1::VulnerabilityMetadataFilter { id: request.id.clone(), ids: request.ids.clone(), ..Default::default() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token,
        order_by: request.order_by,
        skip: request.skip,
        filter: filter.encode_to_vec(),
    };
    let listing = page_of(tx, call, VersionQuery { id: request.id, ids: request.ids, page }, totals, to_v1).await?;
    Ok(v1::VulnerabilityMetadataList {
        items: listing.items,
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

fn to_v1(id: &str, facts: Facts<'_>) -> v1::VulnerabilityMetadata {
    let severity = |rated: &Rated<'_>| {
        // The schema writes the distribution's name as people do.
        let kind = v1::severity::Type::from_str_name(&rated.kind.to_ascii_uppercase())?;
        Some(v1::Severity { r#type: kind.into(), score: rated.score.to_string() })
    };
    let reference = |link: Link<'_>| {
        let kind = v1::reference::Type::from_str_name(&link.kind).unwrap_or_default();
        v1::Reference { r#type: kind.into(), url: link.url.into_owned() }
    };
    v1::VulnerabilityMetadata {
        id: id.to_owned(),
        severity: facts.severities().into_iter().filter_map(severity).collect(),
        references: facts.references.into_iter().map(reference).collect(),
        summary: facts.summary.into_owned(),
        details: facts.details.into_owned(),
    }
}
