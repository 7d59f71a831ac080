//! Images by digest through the API, in both versions.

use std::collections::BTreeMap;

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry as methods1;
use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::rpc::images_service as methods2;
use bowline_core::{Error, Result, UidRange};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_store::{ReadTx, Value};
use serde_json::Value as Json;

use super::{images, repos};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<methods2::GetArchitectures>(handler!(architectures_v2))
        .read::<methods2::GetSize>(handler!(size_v2))
        .read::<methods1::GetArchs>(handler!(architectures_v1))
        .read::<methods1::GetSize>(handler!(size_v1))
        .read::<methods1::GetImageConfig>(handler!(config))
        .read::<methods1::GetManifestDigestCount>(handler!(digest_count))
}

async fn architectures_v2(
    tx: &mut ReadTx,
    call: &Authorized<v2::GetArchitecturesRequest>,
) -> Result<v2::Architectures> {
    let architectures = images::architectures(tx, call.require_scope()?, &call.request().digest).await?;
    Ok(v2::Architectures { architectures })
}

async fn architectures_v1(tx: &mut ReadTx, call: &Authorized<v1::ArchRequest>) -> Result<v1::Archs> {
    Ok(v1::Archs { archs: images::architectures(tx, call.require_scope()?, &call.request().digest).await? })
}

async fn size_v2(tx: &mut ReadTx, call: &Authorized<v2::GetSizeRequest>) -> Result<v2::Size> {
    let request = call.request();
    let found = images::for_architecture(tx, call.require_scope()?, &request.digest, &request.architecture).await?;
    let (manifest, architecture) = found;
    Ok(v2::Size { size: manifest.total_size, architecture })
}

async fn size_v1(tx: &mut ReadTx, call: &Authorized<v1::SizeRequest>) -> Result<v1::Size> {
    let request = call.request();
    let (manifest, arch) = images::for_architecture(tx, call.require_scope()?, &request.digest, &request.arch).await?;
    Ok(v1::Size { size: manifest.total_size, arch })
}

async fn config(tx: &mut ReadTx, call: &Authorized<v1::ImageConfigRequest>) -> Result<v1::ImageConfig> {
    let request = call.request();
    let (manifest, _) = images::for_architecture(tx, call.require_scope()?, &request.digest, &request.arch).await?;
    Ok(image_config(&images::run_config(tx, &manifest.digest).await?))
}

/// The run part of a config; members of other types than the specification gives them are left out.
fn image_config(run: &Json) -> v1::ImageConfig {
    let text = |member: &str| run[member].as_str().unwrap_or_default().to_owned();
    let texts = |member: &str| -> Vec<String> {
        let items = run[member].as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(Json::as_str).map(String::from).collect()
    };
    let keys = |member: &str| -> Vec<String> {
        run[member].as_object().map(|members| members.keys().cloned().collect()).unwrap_or_default()
    };
    let labels = run["Labels"].as_object().into_iter().flatten();
    v1::ImageConfig {
        user: text("User"),
        exposed_ports: keys("ExposedPorts").into_iter().map(|key| (key, v1::image_config::ExposedPort {})).collect(),
        env: texts("Env"),
        entrypoint: texts("Entrypoint"),
        cmd: texts("Cmd"),
        volumes: keys("Volumes").into_iter().map(|key| (key, v1::image_config::Volume {})).collect(),
        working_dir: text("WorkingDir"),
        labels: labels
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect::<BTreeMap<_, _>>(),
        stop_signal: text("StopSignal"),
    }
}

async fn digest_count(
    tx: &mut ReadTx,
    call: &Authorized<v1::ManifestDigestCountFilter>,
) -> Result<v1::ManifestDigestCount> {
    let scope = call.require_scope()?;
    repos::require_repo_or_group(tx, scope).await?;
    let range = UidRange::of(scope);
    let sql = "SELECT count(DISTINCT digest) FROM repo_manifests WHERE repo >= $1 AND repo < $2";
    let params = [Value::from(&range.lower), Value::from(&range.upper)];
    let count = tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?;
    Ok(v1::ManifestDigestCount { count: count.unwrap_or(0) })
}
