//! Mail goes out through the operator's relay: what waits in the database is tried until it is taken.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bowline_core::{Clock, Error, Micros};
use bowline_store::{Db, Row, Value, WriteTx};
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};

use crate::error::StartError;
use crate::options::Options;
use crate::task_board::TaskReport;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time limit for sending one mail; less than the shortest time between two attempts.
const SENT_WITHIN: Duration = Duration::from_secs(30);
const MINUTE: Micros = 60 * 1_000_000;
const LONGEST_WAIT: Micros = 60 * MINUTE;
const GIVEN_UP_AFTER: Micros = 24 * 60 * MINUTE;

/// The operator's mail relay.
pub(crate) struct Relay {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

/// A mail of the queue.
#[derive(Clone, Debug)]
struct Waiting {
    id: String,
    recipient: String,
    subject: String,
    body: String,
    attempts: i64,
    created_at: Micros,
}

impl Relay {
    /// The relay that the options name, if they name one.
    ///
    /// # Errors
    /// The address of the relay or of the sender does not make sense. The message repeats neither: there may be a
    /// password in it.
    pub(crate) fn of(options: &Options) -> Result<Option<Relay>, StartError> {
        let (url, from) = match (&options.smtp_url, &options.mail_from) {
            (None, None) => return Ok(None),
            (Some(url), Some(from)) => (url, from),
            (Some(_), None) => return Err(refused("smtp-url", "needs --mail-from, the sender of the server's mail")),
            (None, Some(_)) => return Err(refused("mail-from", "needs --smtp-url, the relay that takes the mail")),
        };
        let from: Mailbox = from.parse().map_err(|_| refused("mail-from", "must be an e-mail address"))?;
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(&secured(url)?)
            .map_err(|error| refused("smtp-url", &format!("cannot be used: {error}")))?;
        let transport = builder
            .timeout(Some(SENT_WITHIN))
            .hello_name(ClientId::Domain(from.email.domain().to_owned()))
            .build::<Tokio1Executor>();
        Ok(Some(Relay { transport, from }))
    }

    /// A mail as it goes over the wire. The builder encodes whatever could end a header.
    fn message(&self, mail: &Waiting, now: Micros) -> Result<Message, Box<dyn std::error::Error + Send + Sync>> {
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        let date = SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(now)?);
        let id = format!("<{}@{}>", mail.id, self.from.email.domain());
        let message = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, mail.recipient.parse()?))
            .date(date)
            .message_id(Some(id))
            .subject(mail.subject.clone())
            .raw_header(HeaderValue::new(automatic, "auto-generated".into()))
            .header(ContentType::TEXT_PLAIN);
        Ok(message.body(mail.body.clone())?)
    }
}

fn refused(flag: &str, why: &str) -> StartError {
    StartError::Option(format!("--{flag} {why}"))
}

/// The relay's address with TLS required, unless the relay is on this machine.
fn secured(text: &str) -> Result<String, StartError> {
    let form = || refused("smtp-url", "must look like smtp[s]://user:password@host:port");
    let mut url = url::Url::parse(text).map_err(|_| form())?;
    let host = url.host_str().map(ToOwned::to_owned).filter(|host| !host.is_empty()).ok_or_else(form)?;
    let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    if !is_bare || url.username().is_empty() != url.password().is_none() {
        return Err(form());
    }
    match url.scheme() {
        "smtps" => {}
        "smtp" if is_loopback(&host) => {}
        "smtp" => url.set_query(Some("tls=required")),
        _ => return Err(form()),
    }
    Ok(url.into())
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Sends what is due, for ever. Replicas share the queue: each attempt is claimed first.
pub(crate) async fn deliver(db: Db, clock: Arc<dyn Clock>, relay: Relay, report: TaskReport) {
    loop {
        report.begin();
        let delivered = deliver_next(&db, &*clock, &relay).await;
        report.end(delivered.as_ref().err());
        match delivered {
            Ok(true) => {}
            Ok(false) => report.wait(LOOK_EVERY).await,
            Err(error) => {
                tracing::warn!(cause = ?error, "the mail queue cannot be worked on; mail waits");
                report.wait(LOOK_EVERY * 10).await;
            }
        }
    }
}

/// Tries the next mail that is due; false if none is.
async fn deliver_next(db: &Db, clock: &dyn Clock, relay: &Relay) -> Result<bool, Error> {
    let now = clock.now();
    let Some(mail) = next(db, now).await? else { return Ok(false) };
    if !claim(db, &mail, now).await? {
        return Ok(true);
    }
    let message = match relay.message(&mail, now) {
        Ok(message) => message,
        Err(error) => {
            tracing::error!(mail = mail.id, %error, "a mail cannot be written and is dropped");
            remove(db, &mail).await?;
            return Ok(true);
        }
    };
    match relay.transport.send(message).await {
        Ok(_) => remove(db, &mail).await?,
        Err(error) if now - mail.created_at >= GIVEN_UP_AFTER => {
            tracing::error!(mail = mail.id, attempts = mail.attempts + 1, %error, "a mail could not be sent for a day and is dropped");
            remove(db, &mail).await?;
        }
        Err(error) => {
            tracing::warn!(mail = mail.id, attempts = mail.attempts + 1, %error, "a mail could not be sent and is tried again");
        }
    }
    Ok(true)
}

async fn next(db: &Db, now: Micros) -> Result<Option<Waiting>, Error> {
    let sql = "SELECT id, recipient, subject, body, attempts, created_at FROM mail_queue
               WHERE next_at <= $1 ORDER BY next_at, id LIMIT 1";
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(Waiting {
            id: row.text(0)?,
            recipient: row.text(1)?,
            subject: row.text(2)?,
            body: row.text(3)?,
            attempts: row.int(4)?,
            created_at: row.int(5)?,
        })
    };
    db.read(move |tx| Box::pin(async move { tx.query_opt(sql, &[Value::Int(now)], read).await })).await
}

/// Makes the attempt this replica's: no one else tries the mail before the time of the next attempt.
async fn claim(db: &Db, mail: &Waiting, now: Micros) -> Result<bool, Error> {
    let sql = "UPDATE mail_queue SET attempts = attempts + 1, next_at = $3 WHERE id = $1 AND attempts = $2";
    let next_at = now + wait_after(mail.attempts);
    let claimed =
        write(db, mail, move |mail| (sql, vec![Value::from(&mail.id), Value::Int(mail.attempts), Value::Int(next_at)]));
    Ok(claimed.await? > 0)
}

async fn remove(db: &Db, mail: &Waiting) -> Result<(), Error> {
    let sql = "DELETE FROM mail_queue WHERE id = $1";
    write(db, mail, move |mail| (sql, vec![Value::from(&mail.id)])).await.map(|_| ())
}

async fn write(
    db: &Db,
    mail: &Waiting,
    statement: impl for<'a> Fn(&'a Waiting) -> (&'static str, Vec<Value<'a>>) + Clone + Send + Sync + 'static,
) -> Result<u64, Error> {
    let mail = mail.clone();
    db.write(move |tx: &mut WriteTx| {
        let (mail, statement) = (mail.clone(), statement.clone());
        Box::pin(async move {
            let (sql, params) = statement(&mail);
            tx.execute(sql, &params).await.map_err(Error::from)
        })
    })
    .await
}

/// How long the relay is left in peace after so many attempts before: a minute, twice that, up to an hour.
fn wait_after(attempts: i64) -> Micros {
    let doublings = u32::try_from(attempts.clamp(0, 6)).unwrap_or(6);
    (MINUTE << doublings).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(url: &str) -> Result<Option<Relay>, StartError> {
        let mail_from = Some("Bowline <bowline@acme.example>".into());
        Relay::of(&Options { smtp_url: Some(url.into()), mail_from, ..Options::default() })
    }

    fn waiting(recipient: &str, subject: &str) -> Waiting {
        let (recipient, subject) = (recipient.into(), subject.into());
        Waiting { id: "1f".into(), recipient, subject, body: "Hello\n.\nBcc: x@y".into(), attempts: 0, created_at: 0 }
    }

    #[test]
    fn only_a_relay_on_this_machine_goes_without_tls() {
        let secured = |url: &str| secured(url).unwrap();
        assert_eq!(secured("smtp://u:p@mail.example:2525"), "smtp://u:p@mail.example:2525?tls=required");
        assert_eq!(secured("smtp://10.0.0.1"), "smtp://10.0.0.1?tls=required");
        assert_eq!(secured("smtp://localhost.mail.example"), "smtp://localhost.mail.example?tls=required");
        for kept in ["smtps://u:p@mail.example", "smtp://127.0.0.1:25", "smtp://[::1]:25", "smtp://localhost:25"] {
            assert_eq!(secured(kept), kept);
        }
    }

    #[test]
    fn wrong_addresses_are_refused_without_the_password() {
        for url in [
            "mail.example:25",
            "http://mail.example",
            "smtp://",
            "smtp://user@mail.example",
            "smtp://user:s3cret@mail.example?tls=opportunistic",
            "smtp://user:s3cret@mail.example/path",
            "smtp://user:s3cret@mail.example:99999",
        ] {
            let Err(error) = relay(url) else { panic!("{url} passes") };
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        assert!(relay("smtp://127.0.0.1:25").unwrap().is_some());
        assert!(Relay::of(&Options { mail_from: Some("a@b.example".into()), ..Options::default() }).is_err());
        assert!(Relay::of(&Options { smtp_url: Some("smtp://127.0.0.1".into()), ..Options::default() }).is_err());
        assert!(Relay::of(&Options::default()).unwrap().is_none());
    }

    #[test]
    fn no_text_of_a_mail_becomes_a_header() {
        let relay = relay("smtp://127.0.0.1:25").unwrap().unwrap();
        let mail = waiting("owner@acme.example", "Hi\r\nBcc: x@evil.example\r\n\r\nbody");
        let text = String::from_utf8(relay.message(&mail, 0).unwrap().formatted()).unwrap();
        let (head, _) = text.split_once("\r\n\r\n").unwrap();
        assert!(!head.lines().any(|line| line.to_lowercase().starts_with("bcc")), "{head}");
        assert_eq!(head.lines().filter(|line| line.starts_with("To: ")).count(), 1, "{head}");
        for recipient in ["a@b.example\r\nBcc: x@y.example", "a@b.example, x@y.example", "", "nobody"] {
            assert!(relay.message(&waiting(recipient, "Hi"), 0).is_err(), "{recipient}");
        }
    }

    #[test]
    fn waits_double_up_to_an_hour() {
        let minutes: Vec<i64> = (0..9).map(|attempts| wait_after(attempts) / MINUTE).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }
}
