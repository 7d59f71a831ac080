//! `GetPackageVersionMetadata`: the versions of a package, from the release cycles of its product.

use bowline_contract::bowline::registry::v1::ReleaseCycle;
use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::GetPackageVersionMetadata;
use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::kinds::PACKAGE;
use bowline_store::ReadTx;

use super::cycles::{GRACE_MONTHS, day, has_ended};
use super::stored::{self, StoredProduct};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<GetPackageVersionMetadata>(handler!(get))
}

async fn get(
    tx: &mut ReadTx,
    call: &Authorized<v1::PackageVersionMetadataRequest>,
) -> Result<v1::PackageVersionMetadata> {
    let package = call.request().package.as_str();
    let found = stored::of_packages(tx, std::iter::once(package)).await?.remove(package);
    let StoredProduct { product, imported_at } = found.ok_or_else(|| Error::not_found(PACKAGE, package))?;
    let today = day(call.now());
    let (ended, supported): (Vec<&ReleaseCycle>, Vec<&ReleaseCycle>) =
        product.cycles.iter().partition(|cycle| has_ended(cycle, &today));
    let is_fips = is_fips(package);
    let versions = |cycles: &[&ReleaseCycle]| cycles.iter().map(|cycle| version(cycle, is_fips)).collect();
    Ok(v1::PackageVersionMetadata {
        eol_versions: versions(&ended),
        versions: versions(&supported),
        latest_version: supported.first().map(|cycle| cycle.latest_version.clone()).unwrap_or_default(),
        last_updated_timestamp: rfc3339::text(imported_at, Digits::Fewest),
        grace_period_months: i32::try_from(GRACE_MONTHS).unwrap_or(i32::MAX),
    })
}

/// Whether a package or repository is a FIPS build, by its name.
pub(super) fn is_fips(package: &str) -> bool {
    package.ends_with("-fips")
}

/// A cycle as a version of a package. Every cycle exists: a product that is known was released.
pub(super) fn version(cycle: &ReleaseCycle, fips: bool) -> v1::PackageVersion {
    v1::PackageVersion {
        version: cycle.name.clone(),
        latest_version: cycle.latest_version.clone(),
        release_date: cycle.release_date.clone(),
        eol_date: cycle.end_date.clone(),
        lts: cycle.lts,
        exists: true,
        fips,
        ..v1::PackageVersion::default()
    }
}
