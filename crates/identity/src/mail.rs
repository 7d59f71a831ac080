//! Mail that handlers want sent: it waits in the database for the relay, and is there only if the call succeeds.

use bowline_core::Result;
use bowline_pipeline::Authorized;
use bowline_store::{Value, WriteTx};

/// A mail of plain text.
pub(crate) struct Mail<'a> {
    pub(crate) recipient: &'a str,
    pub(crate) subject: &'a str,
    pub(crate) body: &'a str,
}

/// Queues a mail, which goes out as soon as the relay takes it.
pub(crate) async fn queue<T>(tx: &mut WriteTx, call: &Authorized<T>, mail: &Mail<'_>) -> Result<()> {
    let sql = "INSERT INTO mail_queue (id, recipient, subject, body, attempts, next_at, created_at)
               VALUES ($1, $2, $3, $4, 0, $5, $5)";
    let id: String = bowline_core::hex(&call.draw()[..16]);
    let params = [
        Value::from(&id),
        Value::from(mail.recipient),
        Value::from(mail.subject),
        Value::from(mail.body),
        Value::Int(call.now()),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
