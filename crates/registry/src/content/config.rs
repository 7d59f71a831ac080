//! The config that a manifest names: the facts to store are read before the transaction that stores them.

use bowline_store::{Value, WriteTx};
use serde_json::Value as Json;

use super::manifest::{Kind, Manifest};
use crate::charts;
use crate::charts::images::ChartImages;
use crate::images::{self, ImageConfig};

/// The stored facts of the config of an image or a chart.
#[derive(Clone, Debug)]
pub struct Config {
    /// Absent if it is no config of an image.
    image: Option<ImageConfig>,
    /// Present for a chart alone.
    chart: Option<ChartImages>,
}

impl Config {
    /// Reads the bytes of the config that the manifest names.
    pub fn read(manifest: &Manifest, bytes: &[u8]) -> Config {
        let is_chart = manifest.named.iter().any(|one| one.kind == Kind::Config && one.media_type == charts::METADATA);
        Config { image: image(bytes), chart: is_chart.then(|| ChartImages::read(bytes)) }
    }

    /// Keeps it, with the first push that has it: an earlier one may have come without.
    pub(super) async fn keep(&self, tx: &mut WriteTx, manifest: &str) -> bowline_core::Result<()> {
        if let Some(chart) = &self.chart {
            charts::images::put(tx, manifest, chart).await?;
        }
        let Some(image) = &self.image else { return Ok(()) };
        images::put_image_config(tx, manifest, image).await?;
        if image.os.is_empty() && image.architecture.is_empty() && image.variant.is_empty() {
            return Ok(());
        }
        let sql = "UPDATE manifest_references SET os = $1, architecture = $2, variant = $3
                   WHERE manifest = $4 AND kind = $5 AND os = '' AND architecture = '' AND variant = ''";
        let params = [
            Value::from(&image.os),
            Value::from(&image.architecture),
            Value::from(&image.variant),
            Value::from(manifest),
            Value::Int(Kind::Config as i64),
        ];
        tx.execute(sql, &params).await?;
        Ok(())
    }
}

/// What the config of an image says of its platform and of how it is run; a text that no platform has is left out.
fn image(bytes: &[u8]) -> Option<ImageConfig> {
    const LONGEST: usize = 255;
    let config = serde_json::from_slice::<Json>(bytes).ok().filter(Json::is_object)?;
    let text = |member: &str| {
        let text = config[member].as_str().unwrap_or_default();
        // PostgreSQL holds no NUL in a text; in JSON it is escaped.
        if text.len() <= LONGEST && !text.contains('\0') { text.to_owned() } else { String::new() }
    };
    let run = config["config"].as_object().map_or_else(|| "{}".to_owned(), |run| Json::from(run.clone()).to_string());
    Some(ImageConfig { os: text("os"), architecture: text("architecture"), variant: text("variant"), run })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_is_what_the_config_says_of_it() {
        let read = |text: &str| image(text.as_bytes()).map(|image| (image.os, image.architecture, image.run));
        let expected = |os: &str, architecture: &str, run: &str| Some((os.into(), architecture.into(), run.to_owned()));
        let config = r#"{"os":"linux","architecture":"arm64","config":{"User":"a\u0000"}}"#;
        assert_eq!(read(config), expected("linux", "arm64", r#"{"User":"a\u0000"}"#));
        let long = format!(r#"{{"os":"{}","architecture":"a\u0000","config":1}}"#, "x".repeat(256));
        assert_eq!(read(&long), expected("", "", "{}"));
        assert_eq!(read("{}"), expected("", "", "{}"));
        assert_eq!(read("[]"), None);
        assert_eq!(read("{"), None);
    }
}
