use bowline_client::Api;
use bowline_contract::MethodInfo;
use serde_json::{Map, Value};

use crate::error::CliError;
use crate::{dynamic, print};

/// Writes every entry up to the current last one, one JSON document per line. Pruned entries are absent; the
/// remaining ones are chained to them by the hash that `bowline audit checkpoints` shows.
pub(super) async fn run(api: &Api, export: &MethodInfo, request: &Map<String, Value>) -> Result<(), CliError> {
    let mut entries = api.watch(export, &dynamic::encoded(&export.input, request)?).await?;
    while let Some(entry) = entries.next().await? {
        print(&format!("{}\n", dynamic::to_json(&export.output, &entry)?))?;
    }
    Ok(())
}
