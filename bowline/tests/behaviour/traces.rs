//! What calls leave behind: the events in the outbox, and every byte of the audit log.

use bowline_core::Error;
use bowline_testkit::{Actor, TestServer};
use prost::{Message, Name};
use serde_json::Value;

use crate::support::{number, ok, order_of_writing};

/// An event as it waits in the outbox.
#[derive(Debug, PartialEq)]
pub(crate) struct LogFields<M> {
    pub(crate) event_type: String,
    pub(crate) group: String,
    pub(crate) subject: String,
    pub(crate) body: M,
}

/// The newest event, whose body must be of this type.
pub(crate) async fn newest_event<M: Message + Name + Default>(server: &TestServer) -> LogFields<M> {
    let read = server.server().parts().storage.db.read(|tx| {
        Box::pin(async move {
            let sql = format!(
                "SELECT event_type, group_uid, subject, body_type, body FROM outbox ORDER BY {} DESC LIMIT 1",
                order_of_writing(tx)
            );
            tx.query_opt(&sql, &[], |row| {
                let texts: Result<Vec<String>, _> = (0..4).map(|column| row.text(column)).collect();
                Ok::<_, Error>((texts?, row.bytes(4)?))
            })
            .await
        })
    });
    let (texts, body) = read.await.expect("the outbox can be read").expect("it has a row");
    assert_eq!(texts[3], M::full_name());
    LogFields {
        event_type: texts[0].clone(),
        group: texts[1].clone(),
        subject: texts[2].clone(),
        body: M::decode(body.as_slice()).expect("an encoded body"),
    }
}

/// The bodies of all events and all images of the audit log.
pub(crate) async fn everything_told(server: &TestServer) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for sql in [
        "SELECT body FROM outbox",
        "SELECT before_image FROM audit WHERE before_image IS NOT NULL",
        "SELECT after_image FROM audit WHERE after_image IS NOT NULL",
    ] {
        let db = &server.server().parts().storage.db;
        let read =
            db.read(|tx| Box::pin(async move { tx.query(sql, &[], |row| row.bytes(0).map_err(Error::from)).await }));
        found.extend(read.await.expect("the database answers"));
    }
    found
}

/// A call that must succeed and leave this many rows in the audit log, and one event.
pub(crate) async fn told_once(server: &TestServer, actor: &Actor, what: &str, body: Value, audited: i64) -> Value {
    let count = async || {
        (number(server, "SELECT count(*) FROM audit").await, number(server, "SELECT count(*) FROM outbox").await)
    };
    let before = count().await;
    let answer = ok(actor, what, body).await;
    let after = count().await;
    assert_eq!((after.0 - before.0, after.1 - before.1), (audited, 1), "{what}");
    answer
}

/// Whether the text is anywhere in the bytes.
pub(crate) fn holds_text(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
