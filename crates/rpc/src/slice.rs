//! Parts of the whole lists of v1: `offset` and `limit`, or `page` and `page_size`.

use bowline_contract::{ApiVersion, MethodInfo};
use bowline_core::{Error, Result};

use crate::query::{GIVEN_TWICE, Parameter};

/// Length of a page when only its number is given.
const DEFAULT_SLICE: usize = 50;

/// Whether a response holds everything, so that parts of it can be requested.
pub(crate) fn is_whole_list(method: &MethodInfo) -> bool {
    method.version == ApiVersion::V1
        && method.output.get_field_by_name("items").is_some()
        && method.input.get_field_by_name("page_size").is_none()
}

/// Takes the parameters that cut a part out of a whole list: how many elements to leave out, and how many to keep.
pub(crate) fn slice(method: &MethodInfo, parameters: &mut Vec<Parameter>) -> Result<Option<(usize, usize)>> {
    if !is_whole_list(method) {
        return Ok(None);
    }
    let mut take = |names: &[&str]| -> Result<Option<usize>> {
        let mut taken = parameters.extract_if(.., |parameter| names.contains(&&*parameter.name));
        let first = taken.next();
        let second = taken.next();
        drop(taken);
        if let Some(second) = second {
            return Err(Error::invalid_field(second.name, GIVEN_TWICE));
        }
        let Some(Parameter { name, value, .. }) = first else { return Ok(None) };
        // Clients that want everything send the largest number of 64 bits with a sign.
        let Ok(Ok(number)) = value.parse::<i64>().map(usize::try_from) else {
            let wanted = format!("must be a whole number, 0 or more, at most {}", i64::MAX);
            return Err(Error::invalid_field(name, wanted));
        };
        Ok(Some(number))
    };
    let (offset, limit) = (take(&["offset"])?, take(&["limit"])?);
    let (page, size) = (take(&["page"])?, take(&["page_size", "pageSize"])?);
    if offset.is_some() || limit.is_some() {
        return Ok(Some((offset.unwrap_or(0), limit.unwrap_or(usize::MAX))));
    }
    let Some(size) = size.or(page.map(|_| DEFAULT_SLICE)) else {
        return Ok(None);
    };
    let page = page.unwrap_or(1);
    if page == 0 {
        return Err(Error::invalid_field("page", "the first page is 1"));
    }
    Ok(Some((size.saturating_mul(page - 1), size)))
}
