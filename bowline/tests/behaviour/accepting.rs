//! Accepting an invitation: the stored row decides, and anyone who made it must still stand behind it.

use std::time::Duration;

use bowline_core::{Clock, Code, Error, Uidp};
use bowline_identity::invites::{InviteCode, Redeemer, read_code, redeem};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{execute, holder, inventory, number, ok, role, uid_of};

/// A person of this number.
pub(crate) fn person(n: u8) -> Uidp {
    Uidp::root_from([n; 20])
}

pub(crate) async fn invite(actor: &Actor, group: &str, body: Value) -> (String, String) {
    let made = ok(actor, &format!("POST /iam/v2/groupInvites/{group}"), body).await;
    (uid_of(&made), made["code"].as_str().expect("a code").into())
}

/// What a sign-in does with a code. Whether a binding was new, or the refusal.
pub(crate) async fn accept(server: &TestServer, code: &str, who: &Uidp, email: Option<&str>) -> Result<bool, Error> {
    let parts = server.server().parts();
    let code = read_code(&parts.vault, code)?;
    redeem_now(server, code, who, email).await
}

async fn redeem_now(server: &TestServer, code: InviteCode, who: &Uidp, email: Option<&str>) -> Result<bool, Error> {
    let now = server.clock().now();
    let (who, email) = (who.clone(), email.map(String::from));
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let (code, who, email) = (code.clone(), who.clone(), email.clone());
        Box::pin(async move {
            let who = Redeemer { identity: &who, verified_email: email.as_deref() };
            let redeemed = redeem(tx, &code, &who, now).await?;
            assert_eq!(redeemed.group, code.group);
            Ok::<_, Error>(redeemed.binding.is_some())
        })
    });
    written.await
}

pub(crate) async fn rejected(server: &TestServer, code: &str, email: Option<&str>, expected: Code, says: &str) {
    let before = inventory(server).await;
    let spent = number(server, "SELECT count(*) FROM group_invites WHERE used_at IS NOT NULL").await;
    let error = accept(server, code, &person(9), email).await.expect_err(says);
    assert_eq!(error.code(), expected, "{}", error.message());
    assert!(error.message().contains(says), "{} does not say {says}", error.message());
    assert_eq!(inventory(server).await, before);
    assert_eq!(number(server, "SELECT count(*) FROM group_invites WHERE used_at IS NOT NULL").await, spent);
}

async fn an_invitation_binds_its_role_as_often_as_it_may_be_used(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let (operator, viewer) = (server.operator().await, server.role("viewer"));
    let (_, many) = invite(&operator, &team, json!({ "roleUid": viewer, "ttl": "60s" })).await;
    assert!(accept(server, &many, &person(1), None).await.expect("open"), "bound");
    assert!(!accept(server, &many, &person(1), None).await.expect("open"), "bound already");
    assert!(accept(server, &many, &person(2), Some("any@example.com")).await.expect("open"));
    let list = ok(&operator, &format!("GET /iam/v2/roleBindings?group={team}"), Value::Null).await;
    assert_eq!(list["totalCount"], "2");
    for binding in list["roleBindings"].as_array().expect("a list") {
        assert_eq!(binding["roleUid"], viewer.as_str());
    }
    let (_, once) = invite(&operator, &team, json!({ "roleUid": viewer, "ttl": "60s", "singleUse": true })).await;
    assert!(accept(server, &once, &person(3), None).await.expect("open"));
    // Their sign-in may have failed after that: it is theirs, and gives nothing more.
    server.clock().advance(Duration::from_secs(1));
    assert!(!accept(server, &once, &person(3), None).await.expect("used by the same person"));
    rejected(server, &once, None, Code::FailedPrecondition, "has been used").await;
}

async fn deleted_expired_and_foreign_invitations_are_rejected(server: &TestServer) {
    let org = server.organization("acme").await;
    let other = server.organization("globex").await;
    let (operator, viewer) = (server.operator().await, server.role("viewer"));
    let body = json!({ "roleUid": viewer, "ttl": "60s" });
    let (uid, deleted) = invite(&operator, &org, body.clone()).await;
    ok(&operator, &format!("DELETE /iam/v2/groupInvites/{uid}"), Value::Null).await;
    rejected(server, &deleted, None, Code::FailedPrecondition, "does not exist any more").await;

    let locked = json!({ "roleUid": viewer, "ttl": "60s", "email": "Ada@Example.com", "singleUse": true });
    let (_, code) = invite(&operator, &org, locked).await;
    // A Kelvin sign is a k in lower case, and another mailbox.
    let kelvin = json!({ "roleUid": viewer, "ttl": "60s", "email": "kim@example.com" });
    let (_, of_kim) = invite(&operator, &org, kelvin).await;
    rejected(server, &of_kim, Some("\u{212a}im@example.com"), Code::PermissionDenied, "one e-mail address").await;
    for email in [None, Some("bob@example.com"), Some("ada@example.com.evil.example"), Some("")] {
        rejected(server, &code, email, Code::PermissionDenied, "one e-mail address").await;
    }
    assert!(accept(server, &code, &person(4), Some("ADA@example.COM")).await.expect("the right address"));

    // The code names its group, and only that one.
    let (_, code) = invite(&operator, &org, body.clone()).await;
    let read = read_code(&server.server().parts().vault, &code).expect("a good code");
    let moved = InviteCode { group: Uidp::parse(&other).expect("a UIDP"), ..read };
    let error = redeem_now(server, moved, &person(5), None).await.expect_err("another group");
    assert!(error.message().contains("does not exist any more"), "{}", error.message());

    server.clock().advance(Duration::from_secs(59));
    assert!(accept(server, &code, &person(6), None).await.expect("still open"));
    server.clock().advance(Duration::from_secs(1));
    rejected(server, &code, None, Code::FailedPrecondition, "expired").await;
    let foreign = read_code(&server.server().parts().vault, &format!("{code}x")).expect_err("damaged");
    assert_eq!(foreign.message(), "Invalid argument: the invitation code is not valid");
}

async fn an_invitation_is_worth_what_its_maker_may_still_give(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let capabilities =
        ["CAP_IAM_GROUP_INVITES_CREATE", "CAP_IAM_ROLE_BINDINGS_CREATE", "CAP_IAM_ROLES_LIST", "CAP_REPO_LIST"];
    let inviter = holder(server, &org, "inviter", &org, &capabilities).await;
    let operator = server.operator().await;
    let small = role(server, &org, "small", &["CAP_REPO_LIST"]).await;
    let (_, code) = invite(&inviter.actor, &team, json!({ "roleUid": small, "ttl": "3600s" })).await;
    assert!(accept(server, &code, &person(1), None).await.expect("backed"));
    // The role grows beyond what the inviter holds.
    let grown = json!({ "capabilities": ["CAP_REPO_LIST", "CAP_REPO_DELETE"] });
    ok(&operator, &format!("PATCH /iam/v2/roles/{small}"), grown).await;
    rejected(server, &code, None, Code::FailedPrecondition, "gives more today").await;
    let shrunk = json!({ "capabilities": ["CAP_REPO_LIST"] });
    ok(&operator, &format!("PATCH /iam/v2/roles/{small}"), shrunk).await;
    assert!(accept(server, &code, &person(2), None).await.expect("backed again"));

    // The inviter is shut out, past their end, or loses the role, or is deleted.
    execute(server, "UPDATE identities SET deactivated = TRUE WHERE uid = $1", &[&inviter.uid]).await;
    rejected(server, &code, None, Code::FailedPrecondition, "may not give its role any more").await;
    execute(server, "UPDATE identities SET deactivated = FALSE, expires_at = 1 WHERE uid = $1", &[&inviter.uid]).await;
    rejected(server, &code, None, Code::FailedPrecondition, "may not give its role any more").await;
    execute(server, "UPDATE identities SET expires_at = NULL WHERE uid = $1", &[&inviter.uid]).await;
    assert!(accept(server, &code, &person(3), None).await.expect("backed again"));
    let bindings = ok(&operator, &format!("GET /iam/v2/roleBindings?identity={}", inviter.uid), Value::Null).await;
    ok(&operator, &format!("DELETE /iam/v2/roleBindings/{}", uid_of(&bindings["roleBindings"][0])), Value::Null).await;
    rejected(server, &code, None, Code::FailedPrecondition, "may not give its role any more").await;
    ok(&operator, &format!("DELETE /iam/v2/identities/{}", inviter.uid), Value::Null).await;
    rejected(server, &code, None, Code::FailedPrecondition, "may not give its role any more").await;

    // The role is deleted.
    let free = role(server, &org, "free", &["CAP_REPO_LIST"]).await;
    let (_, code) = invite(&operator, &team, json!({ "roleUid": free, "ttl": "3600s" })).await;
    execute(server, "DELETE FROM roles WHERE uid = $1", &[&free]).await;
    rejected(server, &code, None, Code::FailedPrecondition, "role does not exist any more").await;
}

each_engine!(
    an_invitation_binds_its_role_as_often_as_it_may_be_used,
    deleted_expired_and_foreign_invitations_are_rejected,
    an_invitation_is_worth_what_its_maker_may_still_give
);
