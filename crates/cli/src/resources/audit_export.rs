use bowline_client::{Api, ClientError};
use bowline_contract::MethodInfo;
use bowline_contract::bowline::audit::v1 as audit;
use bowline_contract::bowline::audit::v1::rpc::audit::GetCheckpoints;
use serde_json::{Map, Value};

use crate::error::CliError;
use crate::{dynamic, print};

/// Writes every entry up to the current last one, as one JSON document per line. Pruned entries are absent; the
/// remaining ones are chained to them by the hash that `bowline audit checkpoints` shows.
pub(super) async fn run(api: &Api, watch: &MethodInfo, mut request: Map<String, Value>) -> Result<(), CliError> {
    let organization = request.get("organization").and_then(Value::as_str).unwrap_or_default().to_owned();
    let ends = api.call::<GetCheckpoints>(&audit::GetCheckpointsRequest { organization: organization.clone() }).await?;
    let after = match request.get("after").and_then(Value::as_str) {
        Some(text) => text.parse().map_err(|_| ClientError::Usage(format!("--after {text}: must be a number")))?,
        None => ends.pruned_sequence,
    };
    if after >= ends.sequence {
        return Ok(());
    }
    request.insert("after".into(), after.to_string().into());
    let mut entries = api.watch(watch, &dynamic::encoded(&watch.input, &request)?).await?;
    while let Some(entry) = entries.next().await? {
        let json = dynamic::to_json(&watch.output, &entry)?;
        print(&format!("{json}\n"))?;
        // The operator's whole log has numbers of its own.
        let member = if organization.is_empty() { "globalSequence" } else { "sequence" };
        let number = json.get(member).and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok());
        if number.is_none_or(|number| number >= ends.sequence) {
            break;
        }
    }
    Ok(())
}
