//! Query strings and forms: `name=value` pairs, percent-encoded, `+` for a space.

use bowline_fronts::request;

/// The error of a parameter that takes one value and is repeated.
pub(crate) const GIVEN_TWICE: &str = "is given more than once, and takes one value";

/// A parameter of the query or of a form.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Unknown fields of a form are rejected; unknown parameters of a query may be meant for others.
    pub(crate) of_form: bool,
}

/// The parameters of a query or of a form, in order.
pub(crate) fn parameters(text: &str, of_form: bool) -> Result<Vec<Parameter>, String> {
    let pairs = request::pairs(text)?.into_iter();
    Ok(pairs.map(|(name, value)| Parameter { name, value, of_form }).collect())
}
