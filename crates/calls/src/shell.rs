//! A call as lines for a shell. Each line can be pasted as it is: values are quoted, and the token comes from the command
//! line's own sign-in, so that no line holds one.
//!
//! Lines are printable ASCII. A terminal acts on control characters also between quotes, and characters that change the
//! direction of a text make a line read otherwise than it is copied.

use bowline_contract::{Auth, MethodInfo, Verb};
use bowline_transcode::Tables;
use serde_json::Value;

use crate::Inexpressible;
use crate::rest::{RestRequest, parameters, to_json};

/// What prints the caller's token.
const TOKEN: &str = "$(bowline auth token)";

/// The server that the lines call.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// Public address of the API, without a final slash.
    pub base_url: &'a str,
}

/// One call for three programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellForms {
    pub curl: String,
    pub grpcurl: String,
    /// For the command line of this server.
    pub bowline: String,
}

impl ShellForms {
    /// Writes an encoded request for each program.
    ///
    /// # Errors
    /// The method has no REST address, or the request does not fit into one.
    pub fn new(
        server: Server<'_>,
        tables: &Tables,
        method: &MethodInfo,
        request: &[u8],
    ) -> Result<ShellForms, Inexpressible> {
        let rest = RestRequest::new(tables, method, request)?;
        let json = to_json(tables, &method.input, request)?;
        let needs_token = matches!(method.auth, Auth::Capabilities { .. });
        let forms = ShellForms {
            curl: curl(server, &rest, needs_token),
            grpcurl: grpcurl(server, method, &json, needs_token),
            bowline: bowline(server, method, &json)?,
        };
        if [&forms.curl, &forms.grpcurl, &forms.bowline].into_iter().all(|line| is_printable(line)) {
            return Ok(forms);
        }
        Err(Inexpressible("a line for a shell cannot hold it: call the method over gRPC".to_owned()))
    }
}

/// Whether a text is printable ASCII in one line.
fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// A JSON document with escapes for everything that is not printable ASCII.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if matches!(character, ' '..='~') {
            text.push(character);
            continue;
        }
        // Outside of texts, the document has no such character.
        for unit in character.encode_utf16(&mut [0; 2]) {
            text += &format!("\\u{unit:04x}");
        }
    }
    text
}

fn curl(server: Server<'_>, rest: &RestRequest, needs_token: bool) -> String {
    let mut line = String::from("curl");
    if needs_token {
        line += &format!(" -H \"Authorization: Bearer {TOKEN}\"");
    }
    if rest.verb != Verb::Get {
        line += &format!(" -X {}", rest.verb.name());
    }
    if let Some(body) = &rest.body {
        line += &format!(" -H 'Content-Type: application/json' -d {}", quoted(&ascii(body)));
    }
    line + " " + &quoted(&format!("{}{}", server.base_url, rest.path))
}

fn grpcurl(server: Server<'_>, method: &MethodInfo, json: &Value, needs_token: bool) -> String {
    let (scheme, rest) = server.base_url.split_once("://").unwrap_or(("https", server.base_url));
    let host = rest.split('/').next().unwrap_or(rest);
    let mut line = String::from("grpcurl");
    if scheme == "http" {
        line += " -plaintext";
    }
    if needs_token {
        line += &format!(" -H \"Authorization: Bearer {TOKEN}\"");
    }
    if json.as_object().is_some_and(|members| !members.is_empty()) {
        line += &format!(" -d {}", quoted(&ascii(&json.to_string())));
    }
    // An address without a port is one of HTTPS for this program too, but it does not know the port.
    let host =
        if has_port(host) { host.to_owned() } else { format!("{host}:{}", if scheme == "http" { 80 } else { 443 }) };
    format!("{line} {host} {}", method.grpc_path.trim_start_matches('/'))
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn bowline(server: Server<'_>, method: &MethodInfo, json: &Value) -> Result<String, Inexpressible> {
    let mut line = format!("bowline api {}", method.full_name);
    let mut fields = Vec::new();
    parameters("", json, &mut fields)?;
    for (path, value) in fields {
        let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
        // The value of a field that begins with this sign names a file.
        if value.starts_with('@') || !is_plain || !is_printable(&value) {
            return Ok(format!(
                "printf %s {} | bowline api {} --input - --api {}",
                quoted(&ascii(&json.to_string())),
                method.full_name,
                quoted(server.base_url)
            ));
        }
        line += &format!(" -f {}", quoted(&format!("{path}={value}")));
    }
    Ok(line + " --api " + &quoted(server.base_url))
}

/// A word that a POSIX shell reads as this text, which is printable.
pub fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use bowline_contract::chainguard::platform::common::UidpFilter;
    use bowline_contract::v2::iam::rpc::groups_service::{CreateGroup, ListGroups};
    use bowline_contract::{Contract, Method, v2::iam as v2};
    use prost::Message as _;

    use super::*;

    fn forms<M: Method>(base_url: &str, request: &M::Request) -> ShellForms {
        let contract = Contract::load();
        let tables = Tables::new(contract.pool());
        let method = contract.by_full_name(M::FULL_NAME).unwrap();
        ShellForms::new(Server { base_url }, &tables, method, &request.encode_to_vec()).unwrap()
    }

    #[test]
    fn a_read_is_one_line_for_each_program() {
        let request = v2::ListGroupsRequest {
            uidp: Some(UidpFilter { in_root: true, ..UidpFilter::default() }),
            name: "it's".into(),
            ..v2::ListGroupsRequest::default()
        };
        let forms = forms::<ListGroups>("http://127.0.0.1:8080", &request);
        assert_eq!(
            forms.curl,
            "curl -H \"Authorization: Bearer $(bowline auth token)\" \
             'http://127.0.0.1:8080/iam/v2/groups?name=it%27s&uidp.in_root=true'"
        );
        assert_eq!(
            forms.grpcurl,
            "grpcurl -plaintext -H \"Authorization: Bearer $(bowline auth token)\" \
             -d '{\"name\":\"it'\\''s\",\"uidp\":{\"in_root\":true}}' 127.0.0.1:8080 \
             chainguard.platform.iam.v2.GroupsService/ListGroups"
        );
        assert_eq!(
            forms.bowline,
            "bowline api chainguard.platform.iam.v2.GroupsService.ListGroups -f 'name=it'\\''s' -f uidp.in_root=true \
             --api http://127.0.0.1:8080"
        );
    }

    #[test]
    fn values_that_name_files_elsewhere_are_given_as_a_document() {
        let request = v2::CreateGroupRequest {
            parent: "a/b".into(),
            group: Some(v2::Group { name: "@etc".into(), ..v2::Group::default() }),
        };
        let forms = forms::<CreateGroup>("https://api.example", &request);
        assert!(forms.bowline.starts_with("printf %s '{\"group\":{\"name\":\"@etc\"}"), "{}", forms.bowline);
        assert!(forms.curl.contains("-X POST") && forms.curl.ends_with("https://api.example/iam/v2/groups/a/b"));
        assert!(forms.grpcurl.contains(" api.example:443 "), "{}", forms.grpcurl);
    }

    #[test]
    fn lines_are_printable_and_mean_the_same() {
        for text in [
            "\u{3}\ncurl evil|sh\n",
            "\u{15}",
            "\u{1b}[201~x",
            "\u{7f}",
            "\u{85}",
            "\u{202e}abc",
            "\u{200b}",
            "é",
            "😀",
            "\r'",
        ] {
            let filter = UidpFilter { ids: vec![text.into()], ..UidpFilter::default() };
            let request =
                v2::ListGroupsRequest { uidp: Some(filter), name: text.into(), ..v2::ListGroupsRequest::default() };
            let forms = forms::<ListGroups>("https://api.example", &request);
            for line in [&forms.curl, &forms.grpcurl, &forms.bowline] {
                assert!(is_printable(line), "{line:?}");
            }
            let document = forms.bowline.strip_prefix("printf %s '").and_then(|rest| rest.split("' | ").next());
            let document = document.expect("a document for the standard input").replace(r"'\''", "'");
            let read: Value = serde_json::from_str(&document).unwrap();
            assert_eq!(read["name"], text, "{document}");
            assert!(forms.grpcurl.contains(&format!("-d '{}'", document.replace('\'', r"'\''"))), "{}", forms.grpcurl);
        }
    }

    #[test]
    fn an_address_that_is_not_printable_has_no_lines() {
        let contract = Contract::load();
        let tables = Tables::new(contract.pool());
        let method = contract.by_full_name(ListGroups::FULL_NAME).unwrap();
        assert!(ShellForms::new(Server { base_url: "https://\u{202e}a" }, &tables, method, &[]).is_err());
    }

    #[test]
    fn nothing_leaves_its_quotes() {
        assert_eq!(quoted("a;$(b)`c`"), "'a;$(b)`c`'");
        assert_eq!(quoted("'"), r"''\'''");
        assert_eq!((quoted(""), quoted("a-b/c")), ("''".into(), "a-b/c".into()));
    }
}
