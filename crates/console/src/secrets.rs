//! What looks like a secret in configurations and build steps of images, which pages do not show. The API returns it to the
//! same caller; a page is looked at over shoulders and shared as a picture. A secret without such a name is not recognized.

use serde_json::Value;

/// Words in the names of values that are not shown.
const NAMES: [&str; 7] = ["PASS", "_PWD", "SECRET", "TOKEN", "CREDENTIAL", "KEY", "DSN"];
/// Beginnings of build steps that set values.
const SETTING: [&str; 3] = ["ENV ", "ARG ", "LABEL "];
const NOT_SHOWN: &str = "(not shown)";

fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    // Not every name with these letters: there are authors.
    let is_auth = upper.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "AUTH");
    is_auth || NAMES.iter().any(|word| upper.contains(word))
}

/// A text without the values of `NAME=value` and the users of addresses.
pub(crate) fn masked(text: &str) -> String {
    masked_by(text, value_length)
}

/// The same for a build step. Builders write the values that a step sets without quotation marks: none can be told from
/// what comes after it.
pub(crate) fn masked_step(step: &str) -> String {
    let instruction = step.trim_start().strip_prefix("/bin/sh -c #(nop)").unwrap_or(step).trim_start();
    let sets_values = SETTING.iter().any(|name| instruction.starts_with(name));
    let length: fn(&str) -> usize = if sets_values { str::len } else { value_length };
    masked_by(step, length)
}

fn masked_by(text: &str, value_length: fn(&str) -> usize) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['=', ':']) {
        let (before, after) = rest.split_at(at);
        shown += before;
        let skipped = if let Some(value) = after.strip_prefix('=') {
            shown.push('=');
            let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.')).next();
            // The end of a value is looked for only where the search goes on after it, so that each byte is read once.
            match name.is_some_and(is_secret).then(|| value_length(value)) {
                None | Some(0) => 1,
                Some(length) => {
                    shown += NOT_SHOWN;
                    1 + length
                }
            }
        } else if let Some(user) = after.strip_prefix("://").and_then(user_length) {
            shown += "://";
            shown += NOT_SHOWN;
            3 + user
        } else {
            shown.push(':');
            1
        };
        rest = &after[skipped..];
    }
    shown + rest
}

/// Bytes of a value: to the quotation mark that ends it, or to the next space.
fn value_length(value: &str) -> usize {
    let Some(quote) = value.chars().next().filter(|first| matches!(first, '"' | '\'')) else {
        return value.find(char::is_whitespace).unwrap_or(value.len());
    };
    let mut is_escaped = false;
    let end = value.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == quote && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(value.len(), |(at, _)| at + 1)
}

/// Bytes before the `@` of an address that names a user.
fn user_length(address: &str) -> Option<usize> {
    let authority = address.find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\''));
    address[..authority.unwrap_or(address.len())].rfind('@')
}

/// The same for a text that may be `NAME=value` as a whole, with spaces and line ends in the value.
fn masked_whole(text: &str) -> String {
    let name = text.split('=').next().filter(|name| name.len() < text.len() && is_name(name));
    match name.filter(|name| is_secret(name)) {
        Some(name) => format!("{name}={NOT_SHOWN}"),
        None => masked(text),
    }
}

fn is_name(text: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_start) && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// The same for a value with this name that is written as JSON.
pub(crate) fn masked_member(name: &str, json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(value) => masked_json(name, &value).to_string(),
        Err(_) if is_secret(name) => NOT_SHOWN.to_owned(),
        Err(_) => masked(json),
    }
}

/// The same for a JSON value with this name, and for everything in it.
pub(crate) fn masked_json(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), masked_json(name, value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| masked_json(name, item)).collect()),
        Value::String(_) if is_secret(name) => NOT_SHOWN.into(),
        Value::String(text) => masked_whole(text).into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognized_by_their_names() {
        for (text, shown) in [
            ("ENV DB_PASSWORD=hunter2", "ENV DB_PASSWORD=(not shown)"),
            ("RUN |2 NPM_TOKEN=x A=b /bin/sh -c npm ci", "RUN |2 NPM_TOKEN=(not shown) A=b /bin/sh -c npm ci"),
            ("A=b DB_PASS='a b' C=d", "A=b DB_PASS=(not shown) C=d"),
            ("SECRET=\"never ends", "SECRET=(not shown)"),
            ("PATH=/usr/bin:/bin", "PATH=/usr/bin:/bin"),
            ("DATABASE_URL=postgres://u:p@h/d", "DATABASE_URL=postgres://(not shown)@h/d"),
            ("https://h/a@b http://u@h", "https://h/a@b http://(not shown)@h"),
            ("é=ö: TOKEN=", "é=ö: TOKEN="),
            ("api-key=x", "api-key=(not shown)"),
            ("authors=ada BASIC_AUTH=x PWD=/src", "authors=ada BASIC_AUTH=(not shown) PWD=/src"),
        ] {
            assert_eq!(masked(text), shown, "{text}");
        }
        let labels = serde_json::json!({ "a.token": "x", "deep": [{ "auth": "y", "b": "AUTH=z" }], "n": 1 });
        let shown = masked_json("Labels", &labels);
        let wanted = serde_json::json!({
            "a.token": NOT_SHOWN, "deep": [{ "auth": NOT_SHOWN, "b": "AUTH=(not shown)" }], "n": 1
        });
        assert_eq!(shown, wanted);
        for (name, json, shown) in [
            ("labels", r#"{"a.token":"abc"}"#, r#"{"a.token":"(not shown)"}"#),
            ("api_key", "\"x\"", "\"(not shown)\""),
            ("api_key", "{ no json", "(not shown)"),
            ("env", "TOKEN=x {", "TOKEN=(not shown) {"),
        ] {
            assert_eq!(masked_member(name, json), shown, "{name}");
        }
    }

    #[test]
    fn values_are_left_out_to_their_end() {
        for (text, shown) in [
            (r#"PASSWORD="a\"b c" D=e"#, "PASSWORD=(not shown) D=e"),
            (r#"PASSWORD="a\\" D=e"#, "PASSWORD=(not shown) D=e"),
            ("PASSWORD=\"é\\", "PASSWORD=(not shown)"),
        ] {
            assert_eq!(masked(text), shown, "{text}");
        }
        for (step, shown) in [
            ("ENV DB_PASSWORD=correct horse battery", "ENV DB_PASSWORD=(not shown)"),
            ("ENV A=b KEY=-----BEGIN KEY-----\nMIIE\n", "ENV A=b KEY=(not shown)"),
            ("/bin/sh -c #(nop)  ENV TOKEN=a b", "/bin/sh -c #(nop)  ENV TOKEN=(not shown)"),
            ("ARG TOKEN=a b", "ARG TOKEN=(not shown)"),
            ("LABEL api.key=a b", "LABEL api.key=(not shown)"),
            ("RUN TOKEN=a npm ci", "RUN TOKEN=(not shown) npm ci"),
            ("ENV PATH=/bin:/usr/bin", "ENV PATH=/bin:/usr/bin"),
        ] {
            assert_eq!(masked_step(step), shown, "{step}");
        }
        let env = serde_json::json!([
            "DB_PASSWORD=correct horse battery",
            "KEY=-----BEGIN\nMIIE=",
            "A=b c TOKEN=d",
            "=TOKEN=x"
        ]);
        let shown = serde_json::json!([
            "DB_PASSWORD=(not shown)",
            "KEY=(not shown)",
            "A=b c TOKEN=(not shown)",
            "=TOKEN=(not shown)"
        ]);
        assert_eq!(masked_json("Env", &env), shown);
    }

    #[test]
    fn a_long_text_takes_no_longer_than_its_length() {
        // Quadratic work would take hours.
        for text in ["=", "a=", ":", "://", "TOKEN=\"", "http://u"] {
            let long = text.repeat((4 << 20) / text.len());
            assert!(!masked(&long).is_empty(), "{text}");
        }
    }
}
