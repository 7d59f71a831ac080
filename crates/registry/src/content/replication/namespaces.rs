//! Mirrors of container clients: `?ns=` names the registry that an image is of, and selects an upstream that is configured
//! here. It never is an address to connect to.

use bowline_contract::bowline::registry::v1::RegistryPolicy;
use bowline_contract::bowline::registry::v1::rpc::content::PullManifest;
use bowline_core::{Error, Uidp};
use bowline_store::{ReadTx, Row, Value};
use prost::Message as _;
use serde_json::json;
use url::Url;

use crate::content::{Name, RefusalCode, Registry, RegistryClient, RegistryError, is_public};
use crate::paths;

/// Groups of one group that are looked through.
const MAX_GROUPS: i64 = 1000;
/// What clients call the one registry that has several names.
const DOCKER: &str = "docker.io";
const NAMES_OF_DOCKER: &[&str] = &[DOCKER, "index.docker.io", "registry-1.docker.io"];

/// A group whose policy has an upstream.
struct UpstreamGroup {
    group: Uidp,
    name: String,
    upstream: Url,
}

impl Registry {
    /// The repository here that a path names for an image of another registry: of the groups on the path, from the deepest
    /// one on, the first that mirrors this registry, itself or by a group directly below it.
    ///
    /// # Errors
    /// NAME_UNKNOWN if no group on the path mirrors the registry, or none from which the client may pull.
    pub async fn in_namespace(
        &self,
        client: &RegistryClient,
        name: &Name,
        namespace: &str,
    ) -> Result<Name, RegistryError> {
        if namespace.eq_ignore_ascii_case(&self.pipeline.settings.registry_audience) {
            return Ok(name.clone());
        }
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let namespace = namespace.to_owned();
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                match selected(tx, &client, &name, &registry_of(&namespace)).await? {
                    Some(selected) => Ok(selected),
                    None if client.is_anonymous() => Err(registry.denied::<PullManifest>(&client, name.as_str())),
                    None => Err(unknown(&name, &namespace)),
                }
            })
        });
        read.await
    }
}

async fn selected(
    tx: &mut ReadTx,
    client: &RegistryClient,
    name: &Name,
    registry: &str,
) -> Result<Option<Name>, RegistryError> {
    let Some(place) = paths::resolve(tx, name).await? else { return Ok(None) };
    let grants = client.visit.grants(tx).await?;
    let parts: Vec<&str> = name.as_str().split('/').collect();
    let depth = place.group.self_and_ancestors().count();
    for (above, base) in place.group.self_and_ancestors().enumerate() {
        let (groups, image) = parts.split_at(depth - above);
        let mut best: Option<(usize, Name)> = None;
        for mirror in upstream_groups(tx, base).await? {
            let Some(image) = mirror.image(registry, image) else { continue };
            let may_pull = client.visit.allows::<PullManifest>(&grants, mirror.group.as_str())?
                || is_public(tx, &mirror.group).await?;
            let below = (mirror.group.as_str() != base).then(|| mirror.part());
            let parts: Vec<&str> = groups.iter().copied().chain(below).chain(image.iter().copied()).collect();
            // The most specific upstream, and of equal ones the first.
            if may_pull
                && best.as_ref().is_none_or(|(length, _)| image.len() < *length)
                && let Some(name) = Name::parse(&parts.join("/"))
            {
                best = Some((image.len(), name));
            }
        }
        if let Some((_, name)) = best {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// A group and those directly below it, as far as their policies have an upstream.
async fn upstream_groups(tx: &mut ReadTx, base: &str) -> Result<Vec<UpstreamGroup>, RegistryError> {
    let sql = "SELECT g.uid, g.name, p.policy FROM groups g JOIN registry_policies p ON p.place = g.uid
               WHERE g.uid = $1 OR (g.parent = $1 AND g.parent <> '') ORDER BY g.uid LIMIT $2";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?, row.bytes(2)?));
    let rows = tx.query(sql, &[Value::from(base), Value::Int(MAX_GROUPS)], read).await?;
    let mut groups = Vec::new();
    for (uid, name, policy) in rows {
        let policy = RegistryPolicy::decode(policy.as_slice()).map_err(Error::internal)?;
        if let Some(upstream) = policy.upstream.and_then(|upstream| Url::parse(&upstream.url).ok()) {
            groups.push(UpstreamGroup { group: paths::stored(&uid)?, name, upstream });
        }
    }
    Ok(groups)
}

impl UpstreamGroup {
    /// The names of an image below the group; absent if the group mirrors another registry, or another part of it.
    fn image<'a>(&self, registry: &str, image: &'a [&'a str]) -> Option<&'a [&'a str]> {
        let host = self.upstream.host_str()?;
        let host = self.upstream.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let of_upstream: Vec<&str> = self.upstream.path().split('/').filter(|part| !part.is_empty()).collect();
        let is_below = image.len() > of_upstream.len() && image.starts_with(&of_upstream);
        (is_below && registry_of(&host) == registry).then(|| &image[of_upstream.len()..])
    }

    /// What the group is called in a name.
    fn part(&self) -> &str {
        let last = self.group.as_str().rsplit('/').next().unwrap_or_default();
        if paths::is_part(&self.name) { &self.name } else { last }
    }
}

/// The one name of a registry.
fn registry_of(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    if NAMES_OF_DOCKER.contains(&host.as_str()) { DOCKER.to_owned() } else { host }
}

fn unknown(name: &Name, namespace: &str) -> RegistryError {
    let namespace: String = namespace.chars().take(253).collect();
    let message = format!(
        "no group on the path of \"{name}\" from which you may pull mirrors the registry \"{namespace}\": set an upstream \
         for one of them, or for a group directly below"
    );
    RegistryError::about(RefusalCode::NameUnknown, message, json!({ "name": name.as_str(), "ns": namespace }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_mirrors_its_registry_or_a_part_of_it() {
        let image = |url: &str, registry: &str, image: &'static [&'static str]| {
            let group = Uidp::parse("0123456789abcdef0123456789abcdef01234567").unwrap();
            let mirror = UpstreamGroup { group, name: "x".into(), upstream: Url::parse(url).unwrap() };
            mirror.image(&registry_of(registry), image).map(<[&str]>::to_vec)
        };
        let nginx = &["library", "nginx"][..];
        assert_eq!(image("https://registry-1.docker.io", "docker.io", nginx), Some(vec!["library", "nginx"]));
        assert_eq!(image("https://index.docker.io/", "Registry-1.Docker.io", nginx), Some(vec!["library", "nginx"]));
        assert_eq!(image("https://docker.io/library", "index.docker.io", nginx), Some(vec!["nginx"]));
        assert_eq!(image("https://docker.io/other", "docker.io", nginx), None);
        assert_eq!(image("https://docker.io/library/nginx", "docker.io", nginx), None, "nothing is left of the name");
        assert_eq!(image("https://quay.io", "docker.io", nginx), None);
        assert_eq!(image("https://quay.io:5000", "quay.io:5000", nginx), Some(vec!["library", "nginx"]));
        assert_eq!(image("https://quay.io:5000", "quay.io", nginx), None);
    }
}
