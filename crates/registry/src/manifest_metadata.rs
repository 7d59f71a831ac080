//! Metadata of a repository's images: the packages of their SBOMs.

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::manifest_metadata_filter_entry::Filter;
use bowline_contract::v1::registry::rpc::registry::ListManifestMetadata;
use bowline_contract::v1::tenant::Package2;
use bowline_core::{Error, Reason, Result, Uidp};
use bowline_pipeline::{Authorized, Handlers};
use bowline_store::{ReadTx, Value};

use super::attached::Documents;
use super::sboms::{self, Candidates};
use super::{images, repos};

pub(crate) fn register(handlers: Handlers, documents: &Documents) -> Handlers {
    let documents = documents.clone();
    handlers.read_then::<ListManifestMetadata, _>(
        |tx, call| Box::pin(requested(tx, call)),
        move |images| {
            let documents = documents.clone();
            Box::pin(async move { described(&documents, images).await })
        },
    )
}

/// Maximum number of images of one response.
const MAX_IMAGES: i64 = 10_000;
/// Maximum number of images with packages in one response.
const MAX_DESCRIBED: usize = 20;

/// Maximum number of packages of one response.
const MAX_PACKAGES: usize = 200_000;

/// Images by digest, with the candidates for their SBOMs if those are requested.
type Images = Vec<(String, Option<Candidates>)>;

/// The images that are named and that the repository has; where none is named, all of them without their packages.
async fn requested(tx: &mut ReadTx, call: &Authorized<v1::ManifestMetadataFilter>) -> Result<Images> {
    let repo = call.require_scope()?;
    repos::require(tx, repo).await?;
    let items = &call.request().items;
    if items.is_empty() {
        return Ok(all(tx, repo).await?.into_iter().map(|digest| (digest, None)).collect());
    }
    if items.len() > MAX_DESCRIBED {
        let description = format!("has {} elements; {MAX_DESCRIBED} are the most", items.len());
        return Err(Error::invalid_field("items", description));
    }
    let mut images = Images::new();
    for entry in items {
        if let Some(digest) = named(tx, repo, entry.filter.as_ref()).await? {
            let sources = sboms::sources(tx, repo, &digest).await?;
            images.push((digest, sources));
        }
    }
    Ok(images)
}

async fn named(tx: &mut ReadTx, repo: &Uidp, filter: Option<&Filter>) -> Result<Option<String>> {
    let found = match filter {
        Some(Filter::ImageDigest(digest)) => {
            return Ok(images::find(tx, repo, digest).await?.map(|image| image.digest));
        }
        Some(Filter::IndexFilter(wanted)) => images::for_architecture(tx, repo, &wanted.digest, &wanted.arch).await,
        None => return Ok(None),
    };
    match found {
        Ok((image, _)) => Ok(Some(image.digest)),
        Err(error) if error.reason() == Reason::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

async fn all(tx: &mut ReadTx, repo: &Uidp) -> Result<Vec<String>> {
    let sql = "SELECT r.digest FROM repo_manifests r JOIN manifests m ON m.digest = r.digest
               WHERE r.repo = $1 AND m.shape = 1 ORDER BY r.digest LIMIT $2";
    let params = [Value::from(repo.as_str()), Value::Int(MAX_IMAGES + 1)];
    let digests: Vec<String> = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    if digests.len() as i64 > MAX_IMAGES {
        let message = format!("The repository has more than {MAX_IMAGES} images: name the digests to describe");
        return Err(Error::new(Reason::RequestTooLarge, message));
    }
    Ok(digests)
}

async fn described(documents: &Documents, images: Images) -> Result<v1::ManifestMetadataList> {
    let mut items = Vec::with_capacity(images.len());
    let mut left = MAX_PACKAGES;
    for (digest, sources) in images {
        let packages = match sources {
            Some(sources) => documents.packages(sources).await?,
            None => Vec::new(),
        };
        left = left.checked_sub(packages.len()).ok_or_else(|| {
            let message = format!("The images have more than {MAX_PACKAGES} packages: name fewer of them");
            Error::new(Reason::RequestTooLarge, message)
        })?;
        items.push(v1::ManifestMetadata { digest, pkg_metadata: packages.into_iter().map(metadata).collect() });
    }
    Ok(v1::ManifestMetadataList { items })
}

/// SBOMs know neither when a package was built nor how long it is maintained.
fn metadata(package: Package2) -> v1::PkgMetadata {
    let origin_purl = origin_purl(&package.purl).unwrap_or_default();
    v1::PkgMetadata { purl: package.purl, origin_purl, license: package.license, eol_date: None, build_timestamp: None }
}

/// The purl of the package that an operating system's package was built from, in the same version.
fn origin_purl(purl: &str) -> Option<String> {
    let origin = sboms::origin(purl)?;
    let (path, _) = purl.split_once('?')?;
    let (place, name) = path.rsplit_once('/')?;
    let version = name.split_once('@').map(|(_, version)| format!("@{version}")).unwrap_or_default();
    Some(format!("{place}/{origin}{version}"))
}

#[cfg(test)]
mod tests {
    use super::origin_purl;

    #[test]
    fn an_origin_has_the_version_of_its_package() {
        let is = |purl: &str, wanted: Option<&str>| assert_eq!(origin_purl(purl).as_deref(), wanted, "{purl}");
        is("pkg:apk/wolfi/libssl3@3.1-r0?arch=x86_64&origin=openssl", Some("pkg:apk/wolfi/openssl@3.1-r0"));
        is("pkg:apk/wolfi/libssl3?origin=openssl", Some("pkg:apk/wolfi/openssl"));
        is("pkg:apk/wolfi/libssl3@3.1-r0", None);
        is("pkg:pypi/jinja2@3?origin=", None);
        is("", None);
    }
}
