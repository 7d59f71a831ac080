//! Images with their tags, platforms, signatures, SBOMs and findings: lists, details, comparisons, and deletions with
//! members and referrers.

mod by_size;
mod compare;
mod detail;
mod packages;
mod page;
mod removal;
mod summaries;

use bowline_contract::bowline::registry::v1::rpc::images::{
    CompareImages, DeleteImages, GetImage, ListImages, ListPackages, PreviewDelete,
};
use bowline_pipeline::{Handlers, handler};

use super::attached::Documents;

pub(crate) fn register(handlers: Handlers, documents: &Documents) -> Handlers {
    let (for_detail, for_comparison, for_packages) = (documents.clone(), documents.clone(), documents.clone());
    handlers
        .heavy_read_when::<ListImages>(page::is_heavy, handler!(page::list))
        .read_again::<ListPackages, _, _>(
            |tx, call| Box::pin(packages::find(tx, call)),
            move |candidates| Box::pin(packages::all(for_packages.clone(), candidates)),
            |_, call, packages| Box::pin(async move { packages::cut(call, packages) }),
        )
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
