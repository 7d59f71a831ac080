//! The files with which kubelets pull as the service accounts of their pods.

use serde_json::{Value, json};

use super::IDENTITY_ANNOTATION;
use crate::yaml;

/// Name of the program that kubelets run.
pub const COMMAND: &str = "bowline-credential-provider";
/// Version of what kubelets send it.
pub const API_VERSION: &str = "credentialprovider.kubelet.k8s.io/v1";

/// Names of the files.
pub const FILES: [&str; 3] = ["credential-provider.yaml", "rbac.yaml", "service-account.yaml"];

/// The service account, and the server that its tokens are for.
#[derive(Clone, Copy, Debug)]
pub struct PullingAccount<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    /// Audience of its tokens.
    pub audience: &'a str,
    /// UIDP of its identity.
    pub identity: &'a str,
    /// Address of the API.
    pub api: &'a str,
    /// Address of the token exchange.
    pub issuer: &'a str,
    /// Host of the registry.
    pub registry: &'a str,
}

/// The contents of the files, in the order of their names.
pub fn files(account: &PullingAccount<'_>) -> [String; 3] {
    let documents = [
        (
            "# On every node: kubelet --image-credential-provider-config=THIS-FILE --image-credential-provider-bin-dir=DIR,\n\
             # where DIR has bowline-credential-provider, a copy of bowline or a link to it.\n",
            vec![provider(account)],
        ),
        ("# kubectl apply -f rbac.yaml: lets kubelets request tokens of this audience.\n", rbac(account)),
        (
            "# kubectl apply -f service-account.yaml: pods of this service account pull as the identity.\n",
            vec![service_account(account)],
        ),
    ];
    documents.map(|(comment, documents)| {
        let documents: Vec<String> = documents.iter().map(yaml::render).collect();
        format!("{comment}{}", documents.join("---\n"))
    })
}

fn provider(account: &PullingAccount<'_>) -> Value {
    let mut arguments = vec![format!("--api={}", account.api), format!("--registry={}", account.registry)];
    if account.issuer != account.api {
        arguments.push(format!("--issuer={}", account.issuer));
    }
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": [{
            "name": COMMAND,
            "apiVersion": API_VERSION,
            "matchImages": [account.registry],
            "defaultCacheDuration": "10m",
            "args": arguments,
            "tokenAttributes": {
                "serviceAccountTokenAudience": account.audience,
                // All pods of a service account share the credentials.
                "cacheType": "ServiceAccount",
                "requireServiceAccount": true,
                "requiredServiceAccountAnnotationKeys": [IDENTITY_ANNOTATION],
            },
        }],
    })
}

/// The right of nodes to request tokens of the audience, which they have for no other than the API server's.
fn rbac(account: &PullingAccount<'_>) -> Vec<Value> {
    let (version, name) = ("rbac.authorization.k8s.io/v1", "bowline-kubelet-audience");
    let role = json!({
        "apiVersion": version,
        "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": [{
            "apiGroups": [""],
            "resources": [account.audience],
            "verbs": ["request-serviceaccounts-token-audience"],
        }],
    });
    let binding = json!({
        "apiVersion": version,
        "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes" }],
    });
    vec![role, binding]
}

fn service_account(account: &PullingAccount<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": account.name,
            "namespace": account.namespace,
            "annotations": { IDENTITY_ANNOTATION: account.identity },
        },
    })
}
