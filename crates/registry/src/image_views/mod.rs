//! Images with their tags, platforms, signatures, SBOMs and findings: lists, details, comparisons, and deletions with
//! members and referrers.

mod badges;
mod compare;
mod detail;
mod page;
mod removal;

use bowline_contract::bowline::registry::v1::rpc::images::{
    CompareImages, DeleteImages, GetImage, ListImages, PreviewDelete,
};
use bowline_pipeline::{Handlers, handler};

use super::attached::Documents;

pub(crate) fn register(handlers: Handlers, documents: &Documents) -> Handlers {
    let (for_detail, for_comparison) = (documents.clone(), documents.clone());
    handlers
        .read::<ListImages>(handler!(page::list))
        .read_then::<GetImage, _>(
            |tx, call| Box::pin(detail::find(tx, call)),
            move |detail| {
                let documents = for_detail.clone();
                Box::pin(async move { detail.with_history(&documents).await })
            },
        )
        .read_then::<CompareImages, _>(
            |tx, call| Box::pin(compare::find(tx, call)),
            move |pair| {
                let documents = for_comparison.clone();
                Box::pin(async move { pair.compared(&documents).await })
            },
        )
        .heavy_read::<PreviewDelete>(handler!(removal::preview))
        .write::<DeleteImages>(handler!(removal::delete))
}
