use crate::TerminalError;

/// Validates a public address, and removes slashes at its end.
///
/// # Errors
/// The address is not an absolute http or https URL, or has a user, a query or a fragment.
pub fn public_url(flag: &str, text: &str) -> Result<String, TerminalError> {
    let refuse = |why: &str| TerminalError::Usage(format!("--{flag} {text}: {why}"));
    let url = url::Url::parse(text).map_err(|error| refuse(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(refuse("must be an http or https address"));
    }
    let has_user = !url.username().is_empty() || url.password().is_some();
    if url.query().is_some() || url.fragment().is_some() || has_user {
        // The text is not repeated: that part may be a secret.
        return Err(TerminalError::Usage(format!(
            "--{flag}: the address must have no query, fragment, user or password"
        )));
    }
    Ok(text.trim_end_matches('/').to_owned())
}
