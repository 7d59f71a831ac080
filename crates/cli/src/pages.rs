//! Lists of typed messages, printed page by page.

use bowline_client::Api;
use bowline_contract::Method;
use bowline_terminal::Output;
use prost::{Message, Name};

use crate::error::CliError;

/// Prints all pages of a list as they come. `token` is the field of the request that takes the next page's token, and
/// `split` gives a response's items and that token.
///
/// # Errors
/// The server refuses, or standard output cannot be written.
pub(crate) async fn print<M: Method, T: Message + Name>(
    api: &Api,
    mut request: M::Request,
    output: &Output,
    head: &[&'static str],
    token: fn(&mut M::Request) -> &mut String,
    split: fn(M::Response) -> (Vec<T>, String),
    cells: fn(&T) -> Vec<String>,
) -> Result<(), CliError> {
    let mut pages = output.pages::<T>(head)?;
    loop {
        let (items, next) = split(api.call::<M>(&request).await?);
        pages.page(&items, cells)?;
        if next.is_empty() {
            return Ok(pages.finish()?);
        }
        *token(&mut request) = next;
    }
}
