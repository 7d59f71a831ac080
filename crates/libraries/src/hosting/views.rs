//! From the group that a client names, or the organization that it belongs to, to what it may read there.

use bowline_contract::Method;
use bowline_contract::bowline::libraries::v1::HostedFile;
use bowline_core::{Error, Micros, Reason, Result, UidRange, Uidp, rfc3339};
use bowline_store::{ReadTx, Value};

use super::protocols::Protocol;
use super::repositories::Repository;
use super::{HostClient, HostError, entitled};

/// Organizations that are named to someone who must choose one.
const SHOWN: i64 = 20;

/// A group, and whose packages it shows.
pub(super) struct View {
    pub(super) scope: Uidp,
    /// Repositories of packages that the caller may read: that of the group first, then those above it.
    pub(super) repositories: Vec<Repository>,
    /// The time whose packages it shows, in microseconds; absent for those of now.
    pub(super) moment: Option<Micros>,
}

impl View {
    /// What the caller sees at a group, by a protocol.
    ///
    /// # Errors
    /// PERMISSION_DENIED, also where there is no such group; or the caller must name one. INVALID_ARGUMENT for a
    /// time that cannot be read or has not come.
    pub(super) async fn open<P: Protocol>(
        tx: &mut ReadTx,
        client: &HostClient,
        path: Option<&str>,
    ) -> std::result::Result<View, HostError> {
        let (path, moment) = group_and_moment(path, client.now())?;
        if moment.is_some() && !P::HAS_DATED_VIEWS {
            let word = P::LANGUAGE.word();
            let sentence = format!("packages of {word} are not shown as of a time: leave @ and the time out");
            return Err(wrong_address(sentence).into());
        }
        let scope = scope::<P, P::Read>(tx, client, path).await?;
        let allowed = client.visit.authorize_at::<P::Read>(tx, &scope, HostedFile::default()).await;
        let call = allowed.map_err(|error| hidden::<P>(error, path))?;
        entitled::require(tx, call.settings(), &scope.root(), P::LANGUAGE).await?;
        let mut repositories = Vec::new();
        for group in scope.self_and_ancestors() {
            if client.visit.allows::<P::Read>(call.grants(), group)? {
                repositories.extend(super::repositories::find(tx, group, P::LANGUAGE.number()).await?);
            }
        }
        Ok(View { scope, repositories, moment })
    }
}

/// The group and the time of a path such as `acme:web@2026-11-01`; either may be absent. A date stands for its first moment.
fn group_and_moment(path: Option<&str>, now: Micros) -> Result<(Option<&str>, Option<Micros>)> {
    let Some((group, text)) = path.and_then(|path| path.split_once('@')) else { return Ok((path, None)) };
    let text = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
    let moment = rfc3339::parse_micros(&text).ok_or_else(|| {
        wrong_address("the time after @ must be a date such as 2026-11-01, or a time such as 2026-11-01T12:00:00Z")
    })?;
    if moment > now {
        return Err(wrong_address("the time after @ is in the future, so its packages would still change"));
    }
    Ok((Some(group).filter(|group| !group.is_empty()), Some(moment)))
}

/// The group of a path such as `acme:web`.
pub(super) async fn group_of(tx: &mut ReadTx, path: &str) -> Result<Option<Uidp>> {
    let parts: Vec<&str> = path.split(':').collect();
    bowline_registry::group_of(tx, &parts).await
}

fn wrong_address(sentence: impl Into<String>) -> Error {
    Error::new(Reason::InvalidArgument, sentence.into())
}

/// The group that a path names, or else the organization where the caller may use a method.
async fn scope<P: Protocol, M: Method<Request = HostedFile>>(
    tx: &mut ReadTx,
    client: &HostClient,
    path: Option<&str>,
) -> std::result::Result<Uidp, HostError> {
    if let Some(path) = path {
        return group_of(tx, path).await?.ok_or_else(|| absent::<P>(path).into());
    }
    if let Some(organization) = client.organization() {
        return Ok(organization);
    }
    let grants = client.visit.grants(tx).await?;
    let mut found = organizations(tx, &grants.visible(&client.visit.needed::<M>()?)).await?;
    match found.len() {
        0 => Err(Error::permission_denied(format!(
            "Permission denied: the caller may use packages of no organization; ask for a role such as libraries.{}.pull",
            P::LANGUAGE.role_word()
        ))
        .into()),
        1 => Ok(super::repositories::stored(&found.remove(0).0)?),
        _ => Err(HostError::Ambiguous(found.into_iter().map(|(uid, name)| name.unwrap_or(uid)).collect())),
    }
}

/// The group that a path names, or the caller's organization, where the caller may publish.
///
/// # Errors
/// PERMISSION_DENIED, also where there is no such group; or the caller must name one.
pub(super) async fn group_to_publish<P: Protocol>(
    tx: &mut ReadTx,
    client: &HostClient,
    path: Option<&str>,
) -> std::result::Result<Uidp, HostError> {
    let (path, moment) = group_and_moment(path, client.now())?;
    if moment.is_some() {
        return Err(wrong_address("packages are not published at a time: leave @ and the time out").into());
    }
    let group = scope::<P, P::Publish>(tx, client, path).await?;
    let allowed = client.visit.authorize_at::<P::Publish>(tx, &group, HostedFile::default()).await;
    let call = allowed.map_err(|error| hidden::<P>(error, path))?;
    entitled::require(tx, call.settings(), &group.root(), P::LANGUAGE).await?;
    Ok(group)
}

/// Organizations in these ranges, by UIDP: each with its name if that is verified, since no other leads to it.
async fn organizations(tx: &mut ReadTx, ranges: &[UidRange]) -> Result<Vec<(String, Option<String>)>> {
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    for range in ranges {
        // A grant below an organization is one at it too.
        let lower = range.lower.get(..bowline_core::ROOT_LENGTH).unwrap_or(&range.lower);
        let sql = "SELECT uid, name, verified FROM groups
                   WHERE parent = '' AND uid >= $1 AND uid < $2 ORDER BY uid LIMIT $3";
        let params = [Value::from(lower), Value::from(&range.upper), Value::Int(SHOWN)];
        let read = |row: &bowline_store::Row<'_>| {
            let name = row.text(1)?;
            Ok::<_, Error>((row.text(0)?, row.bool(2)?.then_some(name)))
        };
        for organization in tx.query(sql, &params, read).await? {
            if !found.contains(&organization) && found.len() < SHOWN as usize {
                found.push(organization);
            }
        }
    }
    Ok(found)
}

/// An error that tells no more to someone who may not know what is there.
fn hidden<P: Protocol>(error: Error, path: Option<&str>) -> Error {
    match (error.reason(), path) {
        (Reason::PermissionDenied, Some(path)) => absent::<P>(path),
        // Its capabilities do not say what they are for.
        (Reason::PermissionDenied, None) if !P::LANGUAGE.is_in_contract() => Error::permission_denied(format!(
            "{}; ask for a role such as libraries.cargo.pull or libraries.cargo.push",
            error.message()
        )),
        _ => error,
    }
}

fn absent<P: Protocol>(path: &str) -> Error {
    Error::permission_denied(format!(
        "Permission denied: the group \"{path}\" does not exist, or the caller lacks a role such as libraries.{}.pull there",
        P::LANGUAGE.role_word()
    ))
}
