//! What a workload is configured with, with the addresses of this server. What the address of the page says gets into them
//! only where it is plain: someone else may have made the link.

use bowline_calls::terraform;
use bowline_contract::Method as _;
use bowline_contract::v2::iam::rpc::identities_service::{CreateIdentity, GetIdentity};
use bowline_contract::v2::iam::{CreateIdentityRequest, GetIdentityRequest, Identity};
use bowline_formats::percent::{self, NOT_UNRESERVED};
use bowline_formats::workloads::kubelet::{FILES, PullingAccount, files};
use prost::Message as _;

use super::draft::Platform;
use crate::query::Query;
use crate::visit::Visit;

/// A text to copy.
pub(super) struct Snippet {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) note: String,
    pub(super) content: String,
}

/// The server, and the identity that signs in there.
struct Server<'a> {
    api: &'a str,
    issuer: &'a str,
    api_audience: &'a str,
    registry: &'a str,
    /// Audience of the workload's own token.
    audience: String,
    identity: &'a str,
    /// Group of images that it pushes and pulls.
    group: String,
    query: &'a Query,
}

impl Server<'_> {
    /// What the address has, if it is plain.
    fn get(&self, name: &str) -> Option<String> {
        plain(self.query, name)
    }
}

fn plain(query: &Query, name: &str) -> Option<String> {
    query.get(name).filter(|text| is_plain(text)).map(str::to_owned)
}

/// The texts for a platform, the most useful first.
pub(super) fn snippets(visit: &Visit, platform: Platform, identity: &Identity) -> Vec<Snippet> {
    let settings = visit.app.api.settings();
    let query = &visit.query;
    let server = Server {
        api: &settings.base_url,
        issuer: &settings.auth_url,
        api_audience: &settings.api_audience,
        registry: &settings.registry_audience,
        audience: plain(query, "audience").unwrap_or_else(|| settings.auth_url.clone()),
        identity: &identity.uid,
        group: plain(query, "at").unwrap_or_else(|| crate::pages::parent(&identity.uid).to_owned()),
        query,
    };
    let mut all = match platform {
        Platform::Github => vec![github(&server)],
        Platform::Gitlab => vec![gitlab(&server)],
        Platform::Kubernetes => kubernetes(&server),
        Platform::Aws => vec![aws(&server)],
        Platform::Oidc => Vec::new(),
    };
    if platform != Platform::Aws {
        all.push(docker(&server));
    }
    all.extend([curl(&server), command_line(&server)]);
    all.extend(of_terraform(visit, identity));
    all
}

/// The identity as a resource of Terraform, which it is imported into.
fn of_terraform(visit: &Visit, identity: &Identity) -> Option<Snippet> {
    let api = &visit.app.api;
    let draft = Identity {
        name: identity.name.clone(),
        description: identity.description.clone(),
        relationship: identity.relationship.clone(),
        ..Identity::default()
    };
    let parent = crate::pages::parent(&identity.uid).to_owned();
    let request = CreateIdentityRequest { parent, identity: Some(draft) }.encode_to_vec();
    let text = |name: &str, request: &[u8]| {
        let method = api.contract().by_full_name(name)?;
        terraform(api.contract(), api.tables(), method, request)
    };
    let block = text(CreateIdentity::FULL_NAME, &request)?;
    let label = block.split('"').nth(3)?.to_owned();
    let read = GetIdentityRequest { uid: identity.uid.clone() }.encode_to_vec();
    let import = text(GetIdentity::FULL_NAME, &read)?
        .replace("chainguard_identity.this", &format!("chainguard_identity.{label}"));
    Some(Snippet {
        id: "terraform",
        title: "Terraform",
        note: format!("The identity exists: \"{import}\" brings it into a state that has this resource."),
        content: block + "\n",
    })
}

/// Whether a text means itself in YAML, in a shell, and in Python.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:@".contains(&byte)) && !text.starts_with('-')
}

fn github(server: &Server<'_>) -> Snippet {
    let Server { registry, identity, group, .. } = server;
    let audience = percent::encode(&server.audience, NOT_UNRESERVED);
    let named = || server.get("ref").unwrap_or_else(|| "main".to_owned());
    let (trigger, environment) = match server.get("jobs").as_deref() {
        Some("tag") => (format!("tags: [\"{}\"]", named()), String::new()),
        Some("environment") => ("branches: [\"main\"]".to_owned(), format!("    environment: \"{}\"\n", named())),
        _ => (format!("branches: [\"{}\"]", named()), String::new()),
    };
    Snippet {
        id: "github",
        title: "Workflow of GitHub Actions",
        note: "No secret is needed: the permission id-token lets the job ask GitHub for its token. docs/CI.md describes an action \
               that also installs the command line."
            .to_owned(),
        content: format!(
            r#"on:
  push:
    {trigger}
permissions:
  contents: read
  id-token: write
jobs:
  push:
    runs-on: ubuntu-latest
{environment}    steps:
      - uses: actions/checkout@v4
      - name: Sign in
        run: |
          curl -sSf -H "Authorization: bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN" \
            "$ACTIONS_ID_TOKEN_REQUEST_URL&audience={audience}" | jq -r .value |
            docker login {registry} --username {identity} --password-stdin
      - run: docker build --tag {registry}/{group}/app:latest .
      - run: docker push {registry}/{group}/app:latest
"#
        ),
    }
}

fn gitlab(server: &Server<'_>) -> Snippet {
    let Server { registry, identity, group, audience, .. } = server;
    let named = || server.get("ref").unwrap_or_else(|| "main".to_owned());
    let condition = match server.get("jobs").as_deref() {
        Some("tag") => format!("$CI_COMMIT_TAG == \"{}\"", named()),
        _ => format!("$CI_COMMIT_BRANCH == \"{}\"", named()),
    };
    Snippet {
        id: "gitlab",
        title: "Job of .gitlab-ci.yml",
        note:
            "No variable with a secret is needed. docs/CI.md describes a component that also installs the command line."
                .to_owned(),
        content: format!(
            r#"push:
  image: docker:27
  services: ["docker:27-dind"]
  id_tokens:
    BOWLINE_ID_TOKEN:
      aud: "{audience}"
  rules:
    - if: '{condition}'
  script:
    - printf %s "$BOWLINE_ID_TOKEN" | docker login {registry} --username {identity} --password-stdin
    - docker build --tag {registry}/{group}/app:latest .
    - docker push {registry}/{group}/app:latest
"#
        ),
    }
}

/// The service account that the address names.
fn service_account(server: &Server<'_>) -> (String, String) {
    let namespace = server.get("namespace").unwrap_or_else(|| "NAMESPACE".to_owned());
    (namespace, server.get("service-account").unwrap_or_else(|| "default".to_owned()))
}

fn pod(server: &Server<'_>) -> Snippet {
    let Server { api, registry, identity, group, audience, .. } = server;
    let (namespace, name) = service_account(server);
    Snippet {
        id: "projected",
        title: "Projected token of a pod",
        note: "For a program in the pod that calls this server. The command line finds the token by itself.".to_owned(),
        content: format!(
            r#"apiVersion: v1
kind: Pod
metadata:
  name: example
  namespace: "{namespace}"
spec:
  serviceAccountName: "{name}"
  containers:
    - name: work
      image: {registry}/{group}/app:latest
      env:
        - name: BOWLINE_API
          value: "{api}"
        - name: BOWLINE_IDENTITY
          value: "{identity}"
      volumeMounts:
        - name: bowline-token
          mountPath: /var/run/secrets/bowline
          readOnly: true
  volumes:
    - name: bowline-token
      projected:
        sources:
          - serviceAccountToken:
              path: token
              audience: "{audience}"
              expirationSeconds: 3600
"#
        ),
    }
}

fn kubernetes(server: &Server<'_>) -> Vec<Snippet> {
    let Server { api, issuer, registry, identity, audience, .. } = server;
    let (namespace, name) = service_account(server);
    let account = PullingAccount { namespace: &namespace, name: &name, audience, identity, api, issuer, registry };
    let titles = [
        ("kubelet", "Kubelet: credential provider", "Lets the nodes pull images as the service account of the pod."),
        ("rbac", "Kubelet: right to request tokens", "Once for the cluster."),
        ("service-account", "Kubelet: the service account", "The annotation names the identity."),
    ];
    let of_kubelet = titles.into_iter().zip(FILES.into_iter().zip(files(&account)));
    let of_kubelet = of_kubelet.map(|((id, title, note), (file, content))| Snippet {
        id,
        title,
        note: format!("{note} File {file}."),
        content,
    });
    std::iter::once(pod(server)).chain(of_kubelet).collect()
}

fn aws(server: &Server<'_>) -> Snippet {
    let Server { issuer, identity, api_audience, .. } = server;
    Snippet {
        id: "aws",
        title: "Signed request of AWS",
        note: "Python with boto3, which finds the credentials of the machine, the task or the function. It prints an access token."
            .to_owned(),
        content: format!(
            r#"import base64, json, urllib.parse, urllib.request
import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

target = "/?Action=GetCallerIdentity&Version=2011-06-15"
signed = AWSRequest("POST", "https://sts.amazonaws.com" + target, headers={{
    "Host": "sts.amazonaws.com",
    "Accept": "application/json",
    "Chainguard-Audience": "{issuer}",
    "Chainguard-Identity": "{identity}",
}})
SigV4Auth(boto3.Session().get_credentials(), "sts", "us-east-1").add_auth(signed)
head = "".join(f"{{name}}: {{value}}\r\n" for name, value in signed.headers.items())
proof = base64.urlsafe_b64encode(f"POST {{target}} HTTP/1.1\r\n{{head}}\r\n".encode()).decode()

form = urllib.parse.urlencode({{"aud": "{api_audience}", "identity": "{identity}"}}).encode()
exchange = urllib.request.Request("{issuer}/sts/exchange", form, {{"Authorization": "Bearer " + proof}})
print(json.load(urllib.request.urlopen(exchange))["token"])
"#
        ),
    }
}

fn docker(server: &Server<'_>) -> Snippet {
    let Server { registry, identity, .. } = server;
    Snippet {
        id: "docker",
        title: "docker, podman, skopeo",
        note: "ID_TOKEN is the workload's token. The registry exchanges it; the client stores it until it ends."
            .to_owned(),
        content: format!("printf %s \"$ID_TOKEN\" | docker login {registry} --username {identity} --password-stdin\n"),
    }
}

fn curl(server: &Server<'_>) -> Snippet {
    let Server { issuer, identity, api_audience, api, .. } = server;
    Snippet {
        id: "curl",
        title: "Any program: curl",
        note: "ID_TOKEN is the workload's token, or the signed request of AWS. The access token lasts an hour."
            .to_owned(),
        content: format!(
            "TOKEN=$(curl -sSf -H \"Authorization: Bearer $ID_TOKEN\" {issuer}/sts/exchange \\\n  \
             --data-urlencode aud={api_audience} --data-urlencode identity={identity} | jq -r .token)\n\
             curl -sSf -H \"Authorization: Bearer $TOKEN\" {api}/iam/v2/groups\n"
        ),
    }
}

fn command_line(server: &Server<'_>) -> Snippet {
    let Server { api, identity, registry, .. } = server;
    Snippet {
        id: "command-line",
        title: "The command line of this server",
        note: "In GitHub Actions, GitLab and Kubernetes it finds the token of the job or pod by itself.".to_owned(),
        content: format!(
            "export BOWLINE_API={api} BOWLINE_IDENTITY={identity}\nbowline auth configure-docker --registry {registry}\nbowline auth token\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_quotes() {
        for text in ["main", "feature/x-1", "https://a.example:8443", "acme@1"] {
            assert!(is_plain(text), "{text}");
        }
        for text in ["a\nb", "a b", "$(x)", "`x`", "a\"b", "a'b", "-x", "a;b", "\u{202e}"] {
            assert!(!is_plain(text), "{text}");
        }
    }
}
