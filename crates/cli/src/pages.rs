//! Lists of typed messages, printed page by page.

use bowline_client::Api;
use bowline_contract::Method;
use bowline_terminal::Output;
use clap::Args;
use prost::{Message, Name};

use crate::error::CliError;

/// How much of a list is printed, and in which form.
#[derive(Args)]
pub(crate) struct ListOutput {
    /// List at most so many elements [default: all]
    #[arg(id = "max-elements", long = "limit", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    output: Output,
}

/// Prints the pages of a list as they come, up to its limit. `token` is the field of the request that takes the next
/// page's token, and `split` gives a response's items and that token.
///
/// # Errors
/// The server refuses, or standard output cannot be written.
pub(crate) async fn print<M: Method, T: Message + Name>(
    api: &Api,
    mut request: M::Request,
    list: &ListOutput,
    head: &[&'static str],
    token: fn(&mut M::Request) -> &mut String,
    split: fn(M::Response) -> (Vec<T>, String),
    cells: fn(&T) -> Vec<String>,
) -> Result<(), CliError> {
    let mut pages = list.output.pages::<T>(head)?;
    let mut left = list.limit.unwrap_or(u64::MAX);
    loop {
        let (mut items, next) = split(api.call::<M>(&request).await?);
        items.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left -= items.len() as u64;
        pages.page(&items, cells)?;
        if next.is_empty() || left == 0 {
            return Ok(pages.finish()?);
        }
        *token(&mut request) = next;
    }
}
