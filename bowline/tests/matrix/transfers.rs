//! Whole batches of advisories.

use bowline_contract::bowline::advisories::v1 as own;
use bowline_contract::bowline::advisories::v1::rpc::advisory_transfers as methods;
use bowline_contract::v1::vulnerabilities as v1;

use super::{Row, at, default};

pub(super) fn everything() -> Vec<Row> {
    let advisory = |name| v1::Advisory {
        artifact_type: "apk".into(),
        artifact_name: name,
        aliases: vec!["CVE-2026-1".into()],
        ..default()
    };
    vec![
        at::<methods::ImportAdvisories>(move |aim| own::ImportAdvisoriesRequest {
            parent: aim.group(),
            advisories: vec![advisory(aim.name())],
            dry_run: true,
            ..default()
        }),
        at::<methods::ExportAdvisories>(|aim| own::ExportAdvisoriesRequest { parent: aim.group(), ..default() }),
    ]
}
