//! Imports of records: the operator's alone.

use bowline_contract::Method;
use bowline_contract::bowline::feeds::v1 as feeds;
use bowline_contract::bowline::feeds::v1::rpc::record_imports as imports;

use super::{Aim, Check, Row, default, row};
use crate::oracle::NOT_FOUND;

pub(super) fn imports() -> Vec<Row> {
    vec![
        anywhere::<imports::ListSources>(|_| feeds::ListSourcesRequest {}),
        anywhere::<imports::ListRecords>(|_| feeds::ListRecordsRequest { source: "matrix".into(), ..default() }),
        anywhere::<imports::BeginImport>(|_| feeds::BeginImportRequest {
            source: "matrix".into(),
            licence: "CC0-1.0".into(),
            ..default()
        }),
        anywhere::<imports::ListImports>(|_| default()),
        of_import::<imports::GetImport>(|uid| feeds::GetImportRequest { uid }),
        of_import::<imports::ListStaged>(|uid| feeds::ListStagedRequest { uid, ..default() }),
        of_import::<imports::StageRecords>(|uid| feeds::StageRecordsRequest { uid, ..default() }),
        of_import::<imports::CommitImport>(|uid| feeds::CommitImportRequest { uid, ..default() }),
        of_import::<imports::AbortImport>(|uid| feeds::AbortImportRequest { uid }),
    ]
}

/// A method that is about no place.
fn anywhere<M: Method>(build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
    Row { absent_is_fine: true, ..row::<M>(Check::Operator, build) }
}

/// A method about an import: an authorized caller gets NOT_FOUND, because the UIDP is not an import.
fn of_import<M: Method>(build: impl Fn(String) -> M::Request + Send + Sync + 'static) -> Row {
    Row { let_through: NOT_FOUND, ..anywhere::<M>(move |aim| build(aim.group())) }
}
