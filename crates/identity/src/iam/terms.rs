//! Terms: documents of the operator's that organizations accept.

use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::terms_service::{AcceptTerms, ListTermsAcceptances};
use bowline_core::{Error, FieldViolation, Micros, Result, UidRange, Uidp};
use bowline_pipeline::{
    Authorized, Change, Changed, Direction, EventBody, Handlers, PageRequest, ResourceSnapshot, SortKey, handler,
};
use bowline_resources::kinds::TERMS_ACCEPTANCE;
use bowline_resources::list::{self, BY_CREATED, BY_UID, Listed, Selection, Table, timestamp};
use bowline_resources::references;
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::Message;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.write::<AcceptTerms>(handler!(accept_v2)).read::<ListTermsAcceptances>(handler!(list))
}

pub(crate) const TABLE: Table = Table {
    name: "terms_acceptances",
    columns: "uid, document, accepted_by, created_at",
    orders: &[BY_UID, BY_CREATED],
};

/// That an organization accepted a document.
#[derive(Clone, Debug)]
pub(crate) struct AcceptanceRow {
    /// Child of the organization.
    pub(crate) uid: Uidp,
    pub(crate) document: String,
    /// UIDP of the identity that accepted.
    pub(crate) accepted_by: String,
    pub(crate) created_at: Micros,
}

impl Listed for AcceptanceRow {
    fn read(row: &Row<'_>) -> Result<AcceptanceRow> {
        Ok(AcceptanceRow {
            uid: list::stored_uid(row, &TABLE)?,
            document: row.text(1)?,
            accepted_by: row.text(2)?,
            created_at: row.int(3)?,
        })
    }

    fn uid(&self) -> &str {
        self.uid.as_str()
    }

    fn sort_key(&self, _column: &str) -> SortKey {
        SortKey::Int(self.created_at)
    }
}

impl AcceptanceRow {
    pub(crate) fn to_v2(&self) -> v2::TermsAcceptance {
        v2::TermsAcceptance {
            doc_id: self.document.clone(),
            accepted_by: self.accepted_by.clone(),
            org_uid: self.uid.root_str().into(),
            create_time: timestamp(self.created_at),
        }
    }

    pub(crate) fn to_v1(&self) -> v1::TermsDocumentStatus {
        v1::TermsDocumentStatus {
            doc_id: self.document.clone(),
            accepted_by: self.accepted_by.clone(),
            accepted_at: timestamp(self.created_at),
        }
    }
}

/// What an organization has accepted.
pub(crate) fn of_group(group: &Uidp) -> Selection<'static> {
    Selection {
        ranges: vec![UidRange::below(group.as_str())],
        parent: Some(group.as_str().into()),
        filters: Vec::new(),
        conditions: Vec::new(),
        clauses: Vec::new(),
    }
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<v2::ListTermsAcceptancesRequest>,
) -> Result<v2::ListTermsAcceptancesResponse> {
    let request = call.request();
    let group = references::require_scope(tx, call).await?;
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        order_by: request.order_by.clone(),
        skip: request.skip,
        // The UIDP, however the request spells the group.
        filter: v2::ListTermsAcceptancesRequest { group: group.as_str().into(), ..Default::default() }.encode_to_vec(),
    };
    let default = (0, Direction::Ascending);
    let listing = list::page::<_, AcceptanceRow>(tx, call, &TABLE, &of_group(&group), &page, default).await?;
    Ok(v2::ListTermsAcceptancesResponse {
        terms_acceptances: listing.items.iter().map(AcceptanceRow::to_v2).collect(),
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

async fn accept_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::AcceptTermsRequest>,
) -> Result<Changed<v2::AcceptTermsResponse>> {
    let accepted = accept(tx, call, &call.request().document_ids).await?;
    Ok(accepted.map(|(group, document_ids)| v2::AcceptTermsResponse { group, document_ids }))
}

/// Accepts documents for the authorized organization; what it has accepted already stays as it is. Returns
/// the organization and the documents.
pub(crate) async fn accept<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    documents: &[String],
) -> Result<Changed<(String, Vec<String>)>> {
    let scope = call.require_scope()?;
    if !scope.is_root() {
        return Err(Error::invalid_field(
            "group",
            format!("must be an organization: {} accepts for the groups in it", scope.root_str()),
        ));
    }
    require_known(call, documents)?;
    let group = references::require_scope(tx, call).await?;
    let mut named: Vec<String> = Vec::new();
    let mut changes = Vec::new();
    for document in documents {
        if named.contains(document) {
            continue;
        }
        named.push(document.clone());
        let row = AcceptanceRow {
            uid: call.new_child(&group),
            document: document.clone(),
            accepted_by: call.principal().subject().into(),
            created_at: call.now(),
        };
        changes.extend(insert(tx, &row).await?);
    }
    let response = (group.as_str().to_owned(), named);
    if changes.is_empty() {
        return Ok(Changed::nothing(response));
    }
    let body = v1::AcceptTermsRequest { group: response.0.clone(), document_ids: response.1.clone() };
    Ok(Changed { event: Some(event(&group, &body)), ..Changed::many(changes, response) })
}

/// About the organization itself, and delivered there.
fn event(group: &Uidp, request: &v1::AcceptTermsRequest) -> EventBody {
    EventBody {
        subject: group.as_str().into(),
        group: group.as_str().into(),
        body: ResourceSnapshot::of(request),
        extensions: Vec::new(),
    }
}

fn require_known<T>(call: &Authorized<T>, documents: &[String]) -> Result<()> {
    let known = &call.settings().terms;
    let violations: Vec<FieldViolation> = documents
        .iter()
        .enumerate()
        .filter(|(_, document)| known.iter().all(|known| known.id != **document))
        .map(|(at, document)| FieldViolation {
            field: format!("documentIds[{at}]"),
            description: format!("the operator of this server has no document \"{document}\" to accept"),
        })
        .collect();
    if violations.is_empty() { Ok(()) } else { Err(Error::invalid(violations)) }
}

/// Stores an acceptance, unless the organization has accepted the document already.
async fn insert(tx: &mut WriteTx, row: &AcceptanceRow) -> Result<Option<Change>> {
    let sql = "INSERT INTO terms_acceptances (uid, parent, org, document, accepted_by, created_at)
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.uid.parent_str()),
        Value::from(row.uid.root_str()),
        Value::from(&row.document),
        Value::from(&row.accepted_by),
        Value::Int(row.created_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Ok(None);
    }
    list::count(tx, &TABLE, &row.uid, 1).await?;
    let after = Some(ResourceSnapshot::of(&row.to_v2()));
    Ok(Some(Change { kind: TERMS_ACCEPTANCE, uid: row.uid.as_str().into(), before: None, after }))
}

/// Forgets what a group accepted that is being deleted.
pub(crate) async fn delete_of_group(tx: &mut WriteTx, group: &Uidp) -> Result<Vec<Change>> {
    let sql = format!("SELECT {} FROM {} WHERE parent = $1 ORDER BY uid", TABLE.columns, TABLE.name);
    let rows = tx.query(&sql, &[Value::from(group.as_str())], AcceptanceRow::read).await?;
    let mut changes = Vec::new();
    for row in rows {
        tx.execute("DELETE FROM terms_acceptances WHERE uid = $1", &[Value::from(row.uid.as_str())]).await?;
        list::count(tx, &TABLE, &row.uid, -1).await?;
        let before = Some(ResourceSnapshot::of(&row.to_v2()));
        changes.push(Change { kind: TERMS_ACCEPTANCE, uid: row.uid.as_str().into(), before, after: None });
    }
    Ok(changes)
}
