//! Names in place of ids, as far as the caller may read them: one call for a page.

use std::collections::{BTreeSet, HashMap};

use bowline_contract::bowline::iam::v1::ResolveNamesRequest;
use bowline_contract::bowline::iam::v1::rpc::names::ResolveNames;
use bowline_core::{Code, Result, Uidp};
use bowline_pipeline::OPERATOR;
use maud::{Markup, html};

use crate::values::text;
use crate::visit::Visit;

/// Maximum UIDPs of one call; what is beyond keeps its id.
const MAX: usize = 200;

/// Names of resources by UIDP.
#[derive(Default)]
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    /// The names of these resources. What the caller may not list has none, like what is not there.
    ///
    /// # Errors
    /// UNAUTHENTICATED: the session is over. Without names, a page shows ids.
    pub(crate) async fn of<'u>(visit: &mut Visit, uids: impl Iterator<Item = &'u str>) -> Result<Names> {
        let scope = visit.scope();
        // The page says the name of its scope as well, which then takes no call of its own.
        let is_scope_new = !visit.is_scope_resolved && Uidp::is_valid(&scope);
        let mut uids: BTreeSet<&str> =
            uids.filter(|uid| Uidp::is_valid(uid) && *uid != OPERATOR).take(MAX - 1).collect();
        if uids.is_empty() {
            return Ok(Names::default());
        }
        if is_scope_new {
            uids.insert(&scope);
        }
        let request = ResolveNamesRequest { uids: uids.into_iter().map(str::to_owned).collect() };
        match visit.call::<ResolveNames>(request).await {
            Ok(response) => {
                let names = Names(response.names.into_iter().map(|name| (name.uid, name.name)).collect());
                if is_scope_new {
                    visit.is_scope_resolved = true;
                    visit.scope_name = names.get(&scope).map(str::to_owned);
                }
                Ok(names)
            }
            Err(error) if error.code() == Code::Unauthenticated => Err(error),
            // The failure is in the log; the page has the ids.
            Err(_) => Ok(Names::default()),
        }
    }

    /// The name of a resource; absent without one.
    pub(crate) fn get(&self, uid: &str) -> Option<&str> {
        self.0.get(uid).map(String::as_str).filter(|name| !name.trim().is_empty())
    }

    /// The name, with the id in its title; the id without one.
    pub(crate) fn show(&self, uid: &str) -> Markup {
        html! {
            @if let Some(name) = self.get(uid) { span title=(uid) { (text(name)) } } @else { code { (uid) } }
        }
    }
}
