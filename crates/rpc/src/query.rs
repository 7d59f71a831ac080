//! Query strings and forms: `name=value` pairs, percent-encoded, `+` for a space.

use bowline_fronts::request;

/// What is wrong with a parameter of one value that comes again.
pub(crate) const GIVEN_TWICE: &str = "is given more than once, and takes one value";

/// A parameter of the query or of a form.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Fields of a form must be known; parameters of the query may be meant for others.
    pub(crate) of_form: bool,
}

/// The parameters of a query or of a form, in order.
pub(crate) fn parameters(text: &str, of_form: bool) -> Result<Vec<Parameter>, String> {
    let pairs = request::pairs(text)?.into_iter();
    Ok(pairs.map(|(name, value)| Parameter { name, value, of_form }).collect())
}
