//! Methods of features that this server does not have. They return what lets clients continue: nothing is
//! sold here, so nothing is limited; no images are built here.

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::{entitlements, registry};
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::kinds::CHART;
use bowline_store::ReadTx;

use super::{images, settings};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<entitlements::ListEntitlements>(|_, _| Box::pin(async { Ok(v1::EntitlementList::default()) }))
        .read::<entitlements::ListEntitlementImages>(|_, _| {
            Box::pin(async { Ok(v1::EntitlementImagesList::default()) })
        })
        .read::<entitlements::ListEntitlementCatalogImages>(|_, _| {
            Box::pin(async { Ok(v1::EntitlementImagesList::default()) })
        })
        .read::<entitlements::Summary>(|_, _| Box::pin(async { Ok(v1::EntitlementSummaryResponse::default()) }))
        .read::<entitlements::GetEffectiveEntitlements>(|_, _| Box::pin(async { Ok(everything()) }))
        .read::<entitlements::GetFeatures>(handler!(features))
        .read::<registry::ListBuildReports>(|_, call| {
            Box::pin(async { no_page(call.request().page_size, v1::BuildReportList::default()) })
        })
        .read::<registry::GetBuildStatus>(|_, call| {
            Box::pin(async { no_page(call.request().page_size, v1::BuildStatus::default()) })
        })
        .read::<registry::GetHelm>(handler!(helm))
}

/// The empty response to a request for a page of nothing.
fn no_page<T>(page_size: i32, empty: T) -> Result<T> {
    if page_size < 0 { Err(Error::invalid_field("pageSize", "must not be negative")) } else { Ok(empty) }
}

/// No limit, as clients write it.
const UNLIMITED: i32 = -1;

fn everything() -> v1::GetEffectiveEntitlementsResponse {
    let tiers = [
        v1::CatalogTier::Application,
        v1::CatalogTier::Base,
        v1::CatalogTier::Fips,
        v1::CatalogTier::Ai,
        v1::CatalogTier::Devtools,
        v1::CatalogTier::Commercial,
    ];
    v1::GetEffectiveEntitlementsResponse {
        plan: v1::Plan::Catalog as i32,
        active_tiers: tiers.map(|tier| tier as i32).into(),
        max_total_images: UNLIMITED,
        swap_quota: UNLIMITED,
        ..v1::GetEffectiveEntitlementsResponse::default()
    }
}

async fn features(tx: &mut ReadTx, call: &Authorized<v1::GetFeaturesRequest>) -> Result<v1::GetFeaturesResponse> {
    let settings = settings::of(tx, call.require_scope()?.root_str()).await?;
    Ok(v1::GetFeaturesResponse { custom_assembly: false, unique_tags: settings.unique_tags })
}

/// Nothing ties an image that is there to a chart.
async fn helm(tx: &mut ReadTx, call: &Authorized<v1::HelmRequest>) -> Result<v1::Helm> {
    let digest = &call.request().digest;
    images::require(tx, call.require_scope()?, digest).await?;
    Err(Error::not_found(CHART, digest))
}
