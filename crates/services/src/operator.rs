//! The state of the server as the operator reads it, and tasks that run on request.

use std::sync::Arc;

use bowline_contract::bowline::operator::v1;
use bowline_contract::bowline::operator::v1::rpc::operator::{
    GetConfiguration, GetHealth, GetMetrics, GetStorage, ListKeys, ListOrganizations, ListProviders, ListTasks,
    RotateKeys, RunTask,
};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{
    Authorized, Change, Changed, Direction, Handlers, OPERATOR, Page, PageRequest, ResourceSnapshot, SortKey, handler,
};
use bowline_store::{BoxFuture, ReadTx, Row, Value, WriteTx};

const TASK: &str = "bowline.dev/Task";
const SIGNING_KEY: &str = "bowline.dev/SigningKey";

/// Stores a generated key in a transaction, at this time.
pub type KeyStep = Box<dyn for<'a> Fn(&'a mut WriteTx, Micros) -> BoxFuture<'a, Result<RotatedKey>> + Send + Sync>;

/// The key that a rotation led to.
pub struct RotatedKey {
    pub key: v1::Key,
    /// Whether it was added, and not there before, waiting to sign.
    pub is_new: bool,
}

/// The running server: its composition root implements this.
pub trait ServerState: Send + Sync {
    /// Version, engine, schema and start time.
    fn health(&self) -> v1::Health;
    /// Stored bytes and free space.
    ///
    /// # Errors
    /// The database does not answer.
    fn storage(&self) -> BoxFuture<'_, Result<v1::Storage>>;
    /// Its signing keys, the newest first.
    ///
    /// # Errors
    /// The database does not answer.
    fn keys(&self) -> BoxFuture<'_, Result<Vec<v1::Key>>>;
    /// Its periodic tasks, by name.
    fn tasks(&self) -> Vec<v1::Task>;
    /// Runs a task immediately.
    fn run(&self, task: &str);
    /// Rates and durations of the last 24 hours.
    fn metrics(&self) -> v1::Metrics;
    /// Every option, without secrets.
    fn configuration(&self) -> v1::Configuration;
    /// The operator's providers of the configuration file, without secrets.
    fn providers(&self) -> Vec<v1::OperatorProvider>;
    /// Generates a signing key; the step stores it.
    ///
    /// # Errors
    /// The key cannot be generated.
    fn generate_key(&self, algorithm: v1::KeyAlgorithm) -> Result<KeyStep>;
}

type State = Option<Arc<dyn ServerState>>;

/// Registers the handlers. Without a server they are complete in number, and cannot be called.
pub(crate) fn register(handlers: Handlers, state: State) -> Handlers {
    let [health, storage, tasks, keys, metrics, chosen, running] = std::array::from_fn(|_| state.clone());
    register_configuration(handlers, &state)
        .read_then::<GetHealth, _>(handler!(nothing), move |()| {
            let state = health.clone();
            Box::pin(async move { Ok(present(&state)?.health()) })
        })
        .read_then::<GetStorage, _>(handler!(nothing), move |()| {
            let state = storage.clone();
            Box::pin(async move { present(&state)?.storage().await })
        })
        .read_then::<ListTasks, _>(handler!(nothing), move |()| {
            let state = tasks.clone();
            Box::pin(async move { Ok(v1::ListTasksResponse { tasks: present(&state)?.tasks() }) })
        })
        .read_then::<ListKeys, _>(handler!(nothing), move |()| {
            let state = keys.clone();
            Box::pin(async move { Ok(v1::ListKeysResponse { keys: present(&state)?.keys().await? }) })
        })
        .read_then::<GetMetrics, _>(handler!(nothing), move |()| {
            let state = metrics.clone();
            Box::pin(async move { Ok(present(&state)?.metrics()) })
        })
        .heavy_read::<ListOrganizations>(handler!(organizations))
        .write_then::<RunTask, _>(
            move |_: &mut WriteTx, call| {
                let state = chosen.clone();
                Box::pin(async move { record_run(call, present(&state)?) })
            },
            move |task: v1::Task| {
                let state = running.clone();
                Box::pin(async move { run(present(&state)?, &task) })
            },
        )
}

fn register_configuration(handlers: Handlers, state: &State) -> Handlers {
    let [configuration, configured, generating] = std::array::from_fn(|_| state.clone());
    handlers
        .read_then::<GetConfiguration, _>(handler!(nothing), move |()| {
            let state = configuration.clone();
            Box::pin(async move { Ok(present(&state)?.configuration()) })
        })
        .read_then::<ListProviders, _>(handler!(stored_providers), move |stored: Vec<v1::OperatorProvider>| {
            let state = configured.clone();
            Box::pin(async move {
                let providers = present(&state)?.providers().into_iter().chain(stored).collect();
                Ok(v1::ListProvidersResponse { providers })
            })
        })
        .prepared_write::<RotateKeys, KeyRotation>(
            move |request: v1::RotateKeysRequest| {
                let step = present(&generating)?.generate_key(request.algorithm())?;
                Ok(KeyRotation { request, step })
            },
            |tx, call, rotation| Box::pin(rotate(tx, call, rotation)),
        )
}

/// A rotation whose key is generated.
struct KeyRotation {
    request: v1::RotateKeysRequest,
    step: KeyStep,
}

async fn rotate(tx: &mut WriteTx, call: &Authorized<()>, rotation: &KeyRotation) -> Result<Changed<v1::Key>> {
    let RotatedKey { key, is_new } = (rotation.step)(tx, call.now()).await?;
    if !is_new {
        return Ok(Changed::nothing(key));
    }
    let operator = Uidp::parse(OPERATOR).map_err(Error::internal)?;
    let after = Some(ResourceSnapshot::of(&key));
    let change = Change { kind: SIGNING_KEY, uid: OPERATOR.into(), before: None, after };
    Ok(Changed::many(vec![change], key).with_event(&operator, &rotation.request))
}

async fn stored_providers(
    tx: &mut ReadTx,
    _: &Authorized<v1::ListProvidersRequest>,
) -> Result<Vec<v1::OperatorProvider>> {
    bowline_identity::stored_providers(tx).await
}

fn present(state: &State) -> Result<&dyn ServerState> {
    state.as_deref().ok_or_else(|| Error::internal("handlers without a server were called"))
}

/// Reads after the transaction has ended.
async fn nothing<T>(_: &mut ReadTx, _: &Authorized<T>) -> Result<()> {
    Ok(())
}

/// Records the caller; the run begins after the commit.
fn record_run(call: &Authorized<v1::RunTaskRequest>, state: &dyn ServerState) -> Result<Changed<v1::Task>> {
    let name = &call.request().name;
    let task = state.tasks().into_iter().find(|task| task.name == *name);
    let task = task.ok_or_else(|| Error::not_found(TASK, name))?;
    if !task.runnable {
        let why = format!("{name} runs by itself alone; list the tasks, and run one that is runnable");
        return Err(Error::precondition("TASK_RUNS_BY_ITSELF", name, why));
    }
    let uid = Uidp::parse(OPERATOR).map_err(Error::internal)?;
    Ok(Changed::one(TASK, &uid, Some(&task), Some(&task), task.clone()))
}

fn run(state: &dyn ServerState, task: &v1::Task) -> Result<v1::Task> {
    state.run(&task.name);
    let now = state.tasks().into_iter().find(|known| known.name == task.name);
    now.ok_or_else(|| Error::not_found(TASK, &task.name))
}

/// Organizations by stored bytes, the largest first. Counts are up to about a second old.
const ORGANIZATIONS: &str = "
SELECT g.uid, g.name, coalesce(b.n, 0), coalesce(r.n, 0)
FROM groups g
LEFT JOIN counts b ON b.collection = 'blob_bytes' AND b.node = '= ' || g.uid
LEFT JOIN counts r ON r.collection = 'repos' AND r.node = '= ' || g.uid
WHERE g.parent = '' AND (coalesce(b.n, 0) < $1 OR coalesce(b.n, 0) = $1 AND g.uid > $2)
ORDER BY coalesce(b.n, 0) DESC, g.uid LIMIT $3";

async fn organizations(
    tx: &mut ReadTx,
    call: &Authorized<v1::ListOrganizationsRequest>,
) -> Result<v1::ListOrganizationsResponse> {
    let request = call.request();
    let paging =
        PageRequest { page_size: request.page_size, page_token: request.page_token.clone(), ..PageRequest::default() };
    let page = Page::validate(call, &paging, &[&["blob_bytes"]], (0, Direction::Descending))?;
    let (bytes, uid) = match &page.cursor {
        None => (i64::MAX, ""),
        Some(cursor) => match cursor.key {
            Some(SortKey::Int(bytes)) => (bytes, cursor.uid.as_str()),
            _ => return Err(Error::internal("a page token of organizations has no number")),
        },
    };
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(v1::OrganizationUsage {
            organization: row.text(0)?,
            name: row.text(1)?,
            blob_bytes: row.int(2)?,
            repositories: row.int(3)?,
        })
    };
    let params = [Value::Int(bytes), Value::from(uid), Value::Int(page.size as i64 + 1)];
    let mut organizations = tx.query(ORGANIZATIONS, &params, read).await?;
    let mut next_page_token = String::new();
    if organizations.len() > page.size {
        organizations.truncate(page.size);
        if let Some(last) = organizations.last() {
            next_page_token = page.next_token(call, Some(SortKey::Int(last.blob_bytes)), last.organization.clone());
        }
    }
    Ok(v1::ListOrganizationsResponse { organizations, next_page_token })
}
