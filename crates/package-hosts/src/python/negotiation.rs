//! In which form a client wants a page.

use axum::http::{HeaderMap, StatusCode, header};

use crate::answers::Refused;

/// A form of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    /// HTML by the type that the index gives it.
    Html,
    /// HTML as browsers know it, which old installers and those that do not ask get.
    PlainHtml,
}

impl Form {
    /// The form that a client likes best.
    pub(super) fn of(headers: &HeaderMap) -> Result<Form, Refused> {
        let values: Vec<&str> =
            headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        let accepted = values.join(",");
        if accepted.trim().is_empty() {
            return Ok(Form::PlainHtml);
        }
        let wanted = accepted.split(',').filter_map(wish).filter(|(_, weight)| *weight > 0);
        // Of equal wishes the first counts.
        let best = wanted.reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map(|(form, _)| form).ok_or_else(|| {
            Refused::new(
                StatusCode::NOT_ACCEPTABLE,
                "pages are application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html or text/html",
            )
        })
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Form::Json => "application/vnd.pypi.simple.v1+json",
            Form::Html => "application/vnd.pypi.simple.v1+html",
            Form::PlainHtml => "text/html; charset=utf-8",
        }
    }
}

/// One part of an `Accept` header, with its weight in thousandths; absent if it is of no form.
fn wish(part: &str) -> Option<(Form, u32)> {
    let mut parameters = part.split(';').map(str::trim);
    let form = match parameters.next()?.to_ascii_lowercase().as_str() {
        "application/vnd.pypi.simple.v1+json" | "application/vnd.pypi.simple.latest+json" => Form::Json,
        "application/vnd.pypi.simple.v1+html" | "application/vnd.pypi.simple.latest+html" => Form::Html,
        "text/html" | "text/*" | "*/*" => Form::PlainHtml,
        _ => return None,
    };
    let weight = parameters.find_map(|parameter| parameter.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok())?;
    Some((form, (f64::clamp(weight, 0.0, 1.0) * 1000.0) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_the_one_that_a_client_likes_best() {
        let pip = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01";
        for (accept, form) in [
            ("", Some(Form::PlainHtml)),
            ("*/*", Some(Form::PlainHtml)),
            (pip, Some(Form::Json)),
            ("text/html, application/vnd.pypi.simple.v1+json;q=0.9", Some(Form::PlainHtml)),
            ("application/vnd.pypi.simple.v1+html", Some(Form::Html)),
            ("application/vnd.pypi.simple.latest+json", Some(Form::Json)),
            ("application/json", None),
            ("text/html;q=0", None),
            ("text/html;q=x", None),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
            assert_eq!(Form::of(&headers).ok(), form, "{accept}");
        }
        assert_eq!(Form::of(&HeaderMap::new()).ok(), Some(Form::PlainHtml));
    }
}
