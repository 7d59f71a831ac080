//! The mail to the owners of an organization that a person requests access.

use bowline_core::{Error, Result};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Value, WriteTx};

use crate::iam::groups::GroupRow;
use crate::iam::identities;
use crate::mail::{self, Mail};

/// Maximum number of owners who get the mail.
const MAX_RECIPIENTS: i64 = 20;

/// Queues a mail to each owner with a verified address.
pub(super) async fn to_owners<T>(tx: &mut WriteTx, call: &Authorized<T>, group: &GroupRow) -> Result<()> {
    let subject = format!("Access to {} was requested", group.name);
    let body = body(tx, call, group).await?;
    for recipient in owners(tx, call, group).await? {
        mail::queue(tx, call, &Mail { recipient: &recipient, subject: &subject, body: &body }).await?;
    }
    Ok(())
}

/// Addresses of people who own the organization and can act there.
async fn owners<T>(tx: &mut ReadTx, call: &Authorized<T>, group: &GroupRow) -> Result<Vec<String>> {
    let sql = "SELECT i.email FROM role_bindings b JOIN identities i ON i.uid = b.identity
               WHERE b.parent = $1 AND b.role = $2 AND i.relationship_type = 0 AND i.email <> '' AND NOT i.deactivated
                 AND (i.expires_at IS NULL OR i.expires_at > $3)
                 AND NOT EXISTS (
                   SELECT 1 FROM scim_users u WHERE u.person = i.uid AND NOT u.active
                     AND substr(b.parent || '/', 1, length(u.provider) - 16) = substr(u.provider, 1, length(u.provider) - 16))
               ORDER BY i.uid LIMIT $4";
    let owner = role(call, "owner")?;
    let params =
        [Value::from(group.uid.as_str()), Value::from(owner), Value::Int(call.now()), Value::Int(MAX_RECIPIENTS)];
    tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await
}

fn role<'a, T>(call: &'a Authorized<T>, name: &str) -> Result<&'a str> {
    let role = call.contract().built_in_roles().iter().find(|role| role.name == name);
    role.map(|role| role.uid.as_str()).ok_or_else(|| Error::internal(format!("there is no built-in role {name}")))
}

async fn body<T>(tx: &mut ReadTx, call: &Authorized<T>, group: &GroupRow) -> Result<String> {
    let subject = call.principal().subject();
    let person = identities::find(tx, subject).await?;
    let name = printable(&person.map(|person| person.name).unwrap_or_default());
    let email = call.principal().token().and_then(|facts| facts.email.clone()).unwrap_or_default();
    let (organization, uid, base) = (&group.name, &group.uid, &call.settings().base_url);
    let viewer = role(call, "viewer")?;
    Ok(format!(
        "{email} (who goes by the name \"{name}\") asks to be let into the organization {organization} at {base}.\n\n\
         No access was given. If you know this person, give them a role:\n\n  \
           chainctl iam role-bindings create --parent={uid} --identity={subject} --role=viewer\n\n\
         or send to {base}/iam/v2/roleBindings/{uid}, as a POST with your token:\n\n  \
           {{\"identityUid\": \"{subject}\", \"roleUid\": \"{viewer}\"}}\n\n\
         If you do not know this person, do nothing. The same person can ask again in a day.\n"
    ))
}

/// A name that says nothing but a name: no address to click on, no line break, nothing that turns the text around.
fn printable(name: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || " '-".contains(*c);
    name.chars().filter(kept).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_bring_nothing_but_letters() {
        assert_eq!(printable("Zoë O'Neill-Smith"), "Zoë O'Neill-Smith");
        assert_eq!(printable("a\r\nBcc: x@y.example \u{202e}https://evil.example"), "aBcc xyexample httpsevilexample");
        assert_eq!(printable(&"x".repeat(5000)).len(), 100);
    }
}
