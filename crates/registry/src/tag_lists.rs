//! Lists of tags. V1 shows every kind of tag unless the request excludes some; v2 hides some unless the
//! request includes them.

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry as methods1;
use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::rpc::tags_service as methods2;
use bowline_core::Result;
use bowline_pipeline::{Authorized, Direction, Handlers, handler};
use bowline_resources::list::{self, Comparison, Condition, Filter, Selection, Table};
use bowline_store::{ReadTx, Value};
use prost::Message;
use prost_types::Timestamp;

use super::tags::{self, Hidden, TagRow};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<methods2::ListTags>(handler!(list_v2)).read::<methods1::ListTags>(handler!(list_v1))
}

/// The kinds of tags that a list leaves out.
#[derive(Clone, Copy)]
pub(super) struct LeftOut {
    pub(super) referrers: bool,
    pub(super) dates: bool,
    pub(super) epochs: bool,
}

impl LeftOut {
    /// Where to look, with the conditions that this needs beyond.
    pub(super) fn table(self, selection: &mut Selection<'_>) -> &'static Table {
        if self.referrers && self.dates && self.epochs {
            return &tags::SHOWN;
        }
        for (is_left_out, kind) in
            [(self.referrers, Hidden::Referrer), (self.dates, Hidden::Dated), (self.epochs, Hidden::Epoch)]
        {
            if is_left_out {
                let value = Value::Int(kind as i64);
                selection.conditions.push(Condition { column: "hidden", comparison: Comparison::Not, value });
            }
        }
        &tags::TABLE
    }
}

/// Adds the conditions that requests of both versions have.
pub(super) fn filter<'a>(selection: &mut Selection<'a>, name: &'a str, digest: &'a str, since: Option<Timestamp>) {
    for (column, value) in [("name", name), ("digest", digest)] {
        if !value.is_empty() {
            selection.filters.push(Filter { column, value: Value::from(value) });
        }
    }
    if let Some(since) = since {
        let value = Value::Int(list::micros(since));
        selection.conditions.push(Condition { column: "updated_at", comparison: Comparison::AtLeast, value });
    }
}

async fn list_v2(tx: &mut ReadTx, call: &Authorized<v2::ListTagsRequest>) -> Result<v2::ListTagsResponse> {
    let request = call.request();
    let mut selection = list::select(tx, call, call.visible(), request.uidp.as_ref()).await?;
    filter(&mut selection, &request.name, &request.digest, request.updated_since);
    let left_out = LeftOut {
        referrers: !request.include_referrers,
        dates: !request.include_dates,
        epochs: !request.include_epochs,
    };
    let table = left_out.table(&mut selection);
    let page = list::paging(request);
    let listing = list::page::<_, TagRow>(tx, call, table, &selection, &page, (0, Direction::Ascending)).await?;
    Ok(v2::ListTagsResponse {
        tags: listing.items.iter().map(TagRow::to_v2).collect(),
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

async fn list_v1(tx: &mut ReadTx, call: &Authorized<v1::TagFilter>) -> Result<v1::TagList> {
    let request = call.request();
    let mut selection = list::select_v1(call.visible(), request.uidp.as_ref(), &request.id);
    filter(&mut selection, &request.name, &request.digest, request.updated_since);
    let left_out =
        LeftOut { referrers: request.exclude_referrers, dates: request.exclude_dates, epochs: request.exclude_epochs };
    let table = left_out.table(&mut selection);
    let size = |row: &TagRow| row.to_v1().encoded_len();
    let rows = list::everything(tx, call, table, &selection, size).await?;
    Ok(v1::TagList { items: rows.iter().map(TagRow::to_v1).collect() })
}
