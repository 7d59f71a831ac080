//! What an image is made of: configs of images, kept beside the manifests from the push on.

use bowline_core::Result;
use bowline_store::{Value, WriteTx};
use serde_json::Value as Json;

/// Keeps what the config of an image says of its platform and of how it is run. Called at the push of an image
/// manifest, with the bytes of the config blob; what is no config of an image is left alone.
pub(crate) async fn put_image_config(tx: &mut WriteTx, manifest_digest: &str, config_json: &[u8]) -> Result<()> {
    let Some(platform) = serde_json::from_slice::<Json>(config_json).ok().filter(Json::is_object) else {
        return Ok(());
    };
    let text = |member: &str| platform[member].as_str().unwrap_or_default().to_owned();
    let (os, architecture, variant) = (text("os"), text("architecture"), text("variant"));
    let run = platform["config"].as_object().map_or_else(|| "{}".to_owned(), |run| Json::from(run.clone()).to_string());
    // PostgreSQL holds no NUL in a text.
    if [&os, &architecture, &variant].iter().any(|text| text.contains('\0')) || run.contains("\\u0000") {
        return Ok(());
    }
    let sql = "INSERT INTO image_configs (manifest, os, architecture, variant, config) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT DO NOTHING";
    let params = [
        Value::from(manifest_digest),
        Value::from(&os),
        Value::from(&architecture),
        Value::from(&variant),
        Value::from(&run),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
