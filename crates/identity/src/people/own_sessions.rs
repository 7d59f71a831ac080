//! Sessions as their people, and the owners of a provider, see and end them.

use bowline_contract::bowline::people::v1 as own;
use bowline_contract::bowline::people::v1::rpc::sessions::{
    EndAllSessions, EndSession, ListProviderSessions, ListSessions,
};
use bowline_core::{Error, Result, Uidp, hex};
use bowline_pipeline::{
    Authorized, Change, Changed, Cursor, Direction, Handlers, Page, PageRequest, SortKey, TokenFacts, handler,
};
use bowline_resources::kinds::{IDENTITY_PROVIDER, SESSION};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::{providers, sessions};

/// The one order of sessions; each list has its own direction.
const BY_TIME: &[&[&str]] = &[&["create_time"]];
/// Sessions that one call ends.
const ENDED_AT_ONCE: i64 = 1000;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListSessions>(handler!(list))
        .write::<EndSession>(handler!(end_one))
        .write::<EndAllSessions>(handler!(end_all))
        .read::<ListProviderSessions>(handler!(list_of_provider))
}

const COLUMNS: &str = "s.id, s.identity, s.provider, s.created_at, s.expires_at, s.cookie_hash IS NOT NULL";

/// A session as it is shown.
struct ShownRow {
    id: String,
    identity: String,
    provider: String,
    created_at: i64,
    expires_at: i64,
    has_cookie: bool,
    name: String,
}

impl ShownRow {
    fn read(row: &Row<'_>) -> Result<ShownRow> {
        Ok(ShownRow {
            id: row.text(0)?,
            identity: row.text(1)?,
            provider: row.text(2)?,
            created_at: row.int(3)?,
            expires_at: row.int(4)?,
            has_cookie: row.bool(5)?,
            name: row.text(6)?,
        })
    }

    fn shown<T>(self, call: &Authorized<T>) -> own::Session {
        let current = call.principal().token().and_then(|token| token.session.as_deref()) == Some(&self.id);
        own::Session {
            id: self.id,
            identity: self.identity,
            provider: self.provider,
            create_time: timestamp(self.created_at),
            expire_time: timestamp(self.expires_at),
            browser: self.has_cookie,
            current,
            identity_name: self.name,
        }
    }

    /// The session as others see it: its id is a credential's, so they get a keyed hash, which names it and ends nothing.
    fn shown_to_others<T>(self, call: &Authorized<T>) -> own::Session {
        let hash = call.vault().mac("sessions shown to others", self.id.as_bytes());
        let shown = self.shown(call);
        own::Session { id: hex(&hash), ..shown }
    }

    /// The audit row of its end: about the provider where an organization's own was used, so that the organization sees
    /// it, else about the person.
    fn ended(&self) -> Change {
        let about = if self.provider.is_empty() { &self.identity } else { &self.provider };
        Change { kind: SESSION, uid: about.clone(), before: None, after: None }
    }
}

/// Which of the caller's own sessions a token may see and end.
struct Reach<'a> {
    subject: &'a str,
    /// Only those of this provider; empty for all.
    provider: &'a str,
    /// Only this one; empty for all.
    session: &'a str,
}

impl<'a> Reach<'a> {
    fn of<T>(call: &'a Authorized<T>) -> Result<Reach<'a>> {
        let token = call.principal().token().ok_or_else(|| Error::internal("a caller without a token was let in"))?;
        let provider = token.provider.as_deref().unwrap_or_default();
        // A token that was made for less reaches no further than the session that it belongs to. No id has a dash alone.
        let session = if is_narrower_than_provider(token) { token.session.as_deref().unwrap_or("-") } else { "" };
        Ok(Reach { subject: token.subject.as_str(), provider, session })
    }

    /// The condition on `s`, and its parameters: those after it begin with $5.
    fn condition(&self, now: i64) -> (&'static str, Vec<Value<'a>>) {
        let condition =
            "s.identity = $1 AND s.expires_at > $2 AND (s.provider = $3 OR $3 = '') AND (s.id = $4 OR $4 = '')";
        let params =
            vec![Value::from(self.subject), Value::Int(now), Value::from(self.provider), Value::from(self.session)];
        (condition, params)
    }
}

/// Whether the token was narrowed to less than what its session's provider leaves.
fn is_narrower_than_provider(token: &TokenFacts) -> bool {
    let group = token.provider.as_deref().and_then(|uid| Uidp::parse(uid).ok()?.parent());
    let by_provider: Vec<Uidp> = group.into_iter().collect();
    token.narrowing.capabilities.is_some() || token.narrowing.scopes != by_provider
}

async fn list(tx: &mut ReadTx, call: &Authorized<own::ListSessionsRequest>) -> Result<own::ListSessionsResponse> {
    let request = call.request();
    let page = page(call, request.page_size, &request.page_token, "", Direction::Descending)?;
    let (at, id) = match &page.cursor {
        Some(Cursor { key: Some(SortKey::Int(at)), uid, .. }) => (*at, uid.as_str()),
        _ => (i64::MAX, ""),
    };
    let (condition, mut params) = Reach::of(call)?.condition(call.now());
    let wanted = page.size + 1;
    params.extend([Value::Int(at), Value::from(id), Value::Int(wanted as i64)]);
    let sql = format!(
        "SELECT {COLUMNS}, '' FROM sessions s WHERE {condition} AND (s.created_at, s.id) < ($5, $6)
         ORDER BY s.created_at DESC, s.id DESC LIMIT $7"
    );
    let mut rows: Vec<ShownRow> = tx.query(&sql, &params, ShownRow::read).await?;
    let next_page_token = next_token(call, &page, &mut rows, str::to_owned);
    let sessions = rows.into_iter().map(|row| row.shown(call)).collect();
    Ok(own::ListSessionsResponse { sessions, next_page_token })
}

async fn list_of_provider(
    tx: &mut ReadTx,
    call: &Authorized<own::ListProviderSessionsRequest>,
) -> Result<own::ListProviderSessionsResponse> {
    let request = call.request();
    let provider = call.require_scope()?.as_str();
    if providers::find(tx, provider).await?.is_none() {
        return Err(Error::not_found(IDENTITY_PROVIDER, provider));
    }
    let page = page(call, request.page_size, &request.page_token, provider, Direction::Ascending)?;
    let after = page.cursor.as_ref().map(|cursor| open_id(call, &cursor.uid)).transpose()?.unwrap_or_default();
    let wanted = page.size + 1;
    let params = [Value::from(provider), Value::Int(call.now()), Value::from(&after), Value::Int(wanted as i64)];
    let sql = format!(
        "SELECT {COLUMNS}, i.name FROM sessions s JOIN identities i ON i.uid = s.identity
         WHERE s.provider = $1 AND s.expires_at > $2 AND s.id > $3 ORDER BY s.id LIMIT $4"
    );
    let mut rows: Vec<ShownRow> = tx.query(&sql, &params, ShownRow::read).await?;
    let next_page_token = next_token(call, &page, &mut rows, |id| sealed_id(call, id));
    let sessions = rows.into_iter().map(|row| row.shown_to_others(call)).collect();
    Ok(own::ListProviderSessionsResponse { sessions, next_page_token })
}

/// What the ids of others' sessions are sealed for in page tokens, which callers can read.
const PAGES_OF_OTHERS: &str = "page of a provider's sessions";

fn sealed_id<T>(call: &Authorized<T>, id: &str) -> String {
    hex(&call.vault().seal(PAGES_OF_OTHERS, id.as_bytes()))
}

fn open_id<T>(call: &Authorized<T>, sealed: &str) -> Result<String> {
    let digits = |at: usize| sealed.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..sealed.len()).step_by(2).map(digits).collect();
    let bytes = bytes.ok_or_else(|| Error::internal("a page token of sessions has no sealed id"))?;
    String::from_utf8(call.vault().open(PAGES_OF_OTHERS, &bytes)?).map_err(Error::internal)
}

fn page<T>(call: &Authorized<T>, page_size: i32, page_token: &str, of: &str, direction: Direction) -> Result<Page> {
    let request = PageRequest { page_size, page_token: page_token.into(), filter: of.into(), ..PageRequest::default() };
    Page::validate(call, &request, BY_TIME, (0, direction))
}

/// Cuts the rows to the page, and names the next one if there were more.
fn next_token<T>(call: &Authorized<T>, page: &Page, rows: &mut Vec<ShownRow>, id: impl Fn(&str) -> String) -> String {
    if rows.len() <= page.size {
        return String::new();
    }
    rows.truncate(page.size);
    let last = rows.last();
    last.map_or_else(String::new, |last| page.next_token(call, Some(SortKey::Int(last.created_at)), id(&last.id)))
}

async fn end_one(tx: &mut WriteTx, call: &Authorized<own::EndSessionRequest>) -> Result<Changed<()>> {
    let id = &call.request().id;
    let (condition, mut params) = Reach::of(call)?.condition(call.now());
    params.push(Value::from(id));
    let sql = format!("SELECT {COLUMNS}, '' FROM sessions s WHERE {condition} AND s.id = $5");
    let row = tx.query_opt(&sql, &params, ShownRow::read).await?;
    let row = row.ok_or_else(|| Error::not_found(SESSION, id))?;
    sessions::end(tx, &row.id).await?;
    Ok(Changed::many(vec![row.ended()], ()))
}

async fn end_all(
    tx: &mut WriteTx,
    call: &Authorized<own::EndAllSessionsRequest>,
) -> Result<Changed<own::EndAllSessionsResponse>> {
    let current = call.principal().token().and_then(|token| token.session.as_deref());
    let left = current.filter(|_| call.request().keep_current).unwrap_or_default();
    let (condition, mut params) = Reach::of(call)?.condition(call.now());
    params.push(Value::from(left));
    let sql = format!(
        "SELECT {COLUMNS}, '' FROM sessions s WHERE {condition} AND s.id <> $5 ORDER BY s.id LIMIT {ENDED_AT_ONCE}"
    );
    let rows: Vec<ShownRow> = tx.query(&sql, &params, ShownRow::read).await?;
    let mut changes = Vec::with_capacity(rows.len());
    for row in &rows {
        sessions::end(tx, &row.id).await?;
        changes.push(row.ended());
    }
    let ended = i32::try_from(rows.len()).unwrap_or(i32::MAX);
    Ok(Changed::many(changes, own::EndAllSessionsResponse { ended }))
}
