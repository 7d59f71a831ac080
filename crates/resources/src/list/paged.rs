//! The paging fields of list requests.

use bowline_contract::v2::events::ListSubscriptionsRequest;
use bowline_contract::v2::iam;
use bowline_contract::v2::libraries::{ListArtifactVersionsRequest, ListArtifactsRequest};
use bowline_contract::v2::registry::{ListReposRequest, ListTagsRequest};
use bowline_contract::v2::vulnerabilities::ListAdvisoriesRequest;
use bowline_pipeline::PageRequest;
use prost::Message;

/// A request for a page of a list, as in v2.
pub trait Paged: Message + Clone {
    /// Takes the paging fields out. The rest identifies the list, and page tokens are valid for that list
    /// only.
    fn take_paging(&mut self) -> PageRequest;
}

macro_rules! paged {
    ($($request:ty),* $(,)?) => {$(
        impl Paged for $request {
            fn take_paging(&mut self) -> PageRequest {
                PageRequest {
                    page_size: std::mem::take(&mut self.page_size),
                    page_token: std::mem::take(&mut self.page_token),
                    order_by: std::mem::take(&mut self.order_by),
                    skip: std::mem::take(&mut self.skip),
                    filter: Vec::new(),
                }
            }
        }
    )*};
}

paged!(
    ListAdvisoriesRequest,
    ListArtifactVersionsRequest,
    ListArtifactsRequest,
    ListReposRequest,
    ListSubscriptionsRequest,
    ListTagsRequest,
    iam::ListAccountAssociationsRequest,
    iam::ListExternalGroupRoleMappingsRequest,
    iam::ListGroupInvitesRequest,
    iam::ListGroupsRequest,
    iam::ListIdentitiesRequest,
    iam::ListIdentityProvidersRequest,
    iam::ListRoleBindingsRequest,
    iam::ListRolesRequest,
);

/// The requested page, with the rest of the request as the list's identity.
pub fn paging<M: Paged>(request: &M) -> PageRequest {
    let mut rest = request.clone();
    let page = rest.take_paging();
    PageRequest { filter: rest.encode_to_vec(), ..page }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_the_same_whichever_page_is_wanted() {
        let list = iam::ListGroupsRequest { name: "team".into(), ..iam::ListGroupsRequest::default() };
        let asked = iam::ListGroupsRequest {
            page_size: 5,
            page_token: "token".into(),
            order_by: "name".into(),
            skip: 2,
            ..list.clone()
        };
        let page = paging(&asked);
        assert_eq!(
            (page.page_size, page.page_token.as_str(), page.order_by.as_str(), page.skip),
            (5, "token", "name", 2)
        );
        assert_eq!(page.filter, list.encode_to_vec());
        assert_eq!(page.filter, paging(&list).filter);
    }
}
