//! Previews, which are authorized as what they preview.

use bowline_contract::Method;
use bowline_contract::bowline::preview::v1::PreviewRequest;
use bowline_contract::bowline::preview::v1::rpc::previews::Preview;
use bowline_contract::v2::iam as i2;
use bowline_contract::v2::iam::rpc::groups_service::UpdateGroup;
use prost::{Message, Name};

use super::{Row, at, default, mask};

pub(super) fn preview() -> Row {
    let build = |aim: &super::Aim<'_>| {
        let request = i2::UpdateGroupRequest {
            group: Some(i2::Group { uid: aim.group(), description: "of a preview".into(), ..default() }),
            update_mask: Some(mask("description")),
        };
        let type_url = format!("type.googleapis.com/{}", i2::UpdateGroupRequest::full_name());
        let request = prost_types::Any { type_url, value: request.encode_to_vec() };
        PreviewRequest { method: UpdateGroup::FULL_NAME.into(), request: Some(request) }
    };
    Row { decided_by: Some(UpdateGroup::FULL_NAME), ..at::<Preview>(build) }
}
