//! Catalogues of charts: groups of repositories that the operator named as such.

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::ChartCatalog;
use bowline_contract::v1::registry::rpc::charts::FindChart;
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::kinds::CHART;
use bowline_store::ReadTx;

use crate::repos;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<FindChart>(handler!(find))
}

/// The caller need not see the catalogue; pulling from it is another matter.
async fn find(tx: &mut ReadTx, call: &Authorized<v1::FindChartRequest>) -> Result<v1::FindChartResponse> {
    let request = call.request();
    let settings = call.settings();
    let (catalog, option) = match request.catalog() {
        ChartCatalog::Unspecified | ChartCatalog::Community => (&settings.community_charts, "community-charts"),
        ChartCatalog::Iamguarded => (&settings.iamguarded_charts, "iamguarded-charts"),
    };
    let Some(catalog) = catalog else {
        let description = format!("this server has no such catalogue: the operator names its group with --{option}");
        return Err(Error::precondition("NO_CATALOG", request.catalog().as_str_name(), description));
    };
    let found = repos::find_by_name(tx, catalog, &request.name).await?;
    let found = found.ok_or_else(|| Error::not_found(CHART, &request.name))?;
    Ok(v1::FindChartResponse { source_repo_id: found.uid, name: found.name })
}
