use std::fmt::Write as _;

use bowline_server::Options;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::{TestServer, template};

/// Names the database server that tests make their databases on.
const ADMIN_URL: &str = "BOWLINE_TEST_POSTGRES";
/// Says that there is none, and that its tests are to be left out.
const SKIP: &str = "BOWLINE_TEST_SKIP_POSTGRES";

/// Where a test's data live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A file in a scratch directory.
    Sqlite,
    /// A database of its own on the server that `BOWLINE_TEST_POSTGRES` names.
    Postgres,
}

/// The engines that tests run on: both, unless `BOWLINE_TEST_SKIP_POSTGRES=1` leaves PostgreSQL out.
pub fn engines() -> Vec<Engine> {
    if env(ADMIN_URL).is_none() && env(SKIP).as_deref() == Some("1") {
        return vec![Engine::Sqlite];
    }
    vec![Engine::Sqlite, Engine::Postgres]
}

#[expect(clippy::disallowed_methods, reason = "where the tests' database server is, only the environment knows")]
fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A PostgreSQL database that goes away with this value.
pub struct Database {
    admin: String,
    name: String,
    gone: bool,
}

impl Database {
    pub(crate) async fn create() -> Database {
        let (admin, name) = (admin(), fresh_name());
        let (client, connection) = connect(&admin).await;
        template::copy(&client, |name| url_of(&admin, name), &name).await;
        drop(client);
        let _ = connection.await;
        Database { admin, name, gone: false }
    }

    /// A database with the content of a dump in SQL.
    pub async fn of_dump(sql: &str) -> Database {
        let (admin, name) = (admin(), fresh_name());
        run(&admin, &format!("CREATE DATABASE {name} TEMPLATE template0")).await;
        let database = Database { admin, name, gone: false };
        run(&database.url(), sql).await;
        database
    }

    /// Its URL, as `--database-url` takes it.
    pub fn url(&self) -> String {
        url_of(&self.admin, &self.name)
    }

    /// Replaces it by an empty one, also while clients are connected.
    pub async fn clear(&self) {
        run(&self.admin, &self.drop_statement()).await;
        run(&self.admin, &format!("CREATE DATABASE {} TEMPLATE template0", self.name)).await;
    }

    /// Removes it, also while clients are connected.
    pub async fn remove(mut self) {
        self.gone = true;
        run(&self.admin, &self.drop_statement()).await;
    }

    fn drop_statement(&self) -> String {
        format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.gone {
            return;
        }
        // A test that failed is inside of a runtime, which cannot wait for another future here.
        let (admin, statement) = (self.admin.clone(), self.drop_statement());
        let remove = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            if let Ok(runtime) = runtime {
                runtime.block_on(run(&admin, &statement));
            }
        };
        let _ = std::thread::spawn(remove).join();
    }
}

fn admin() -> String {
    env(ADMIN_URL).unwrap_or_else(|| {
        panic!(
            "{ADMIN_URL} is not set: name a PostgreSQL server on which tests may create databases, such as \
             postgres://postgres@127.0.0.1:5432/postgres, or leave its tests out with {SKIP}=1"
        )
    })
}

/// A name that no other test has.
fn fresh_name() -> String {
    let mut random = [0_u8; 8];
    aws_lc_rs::rand::fill(&mut random).expect("the system has random bytes");
    random.iter().fold(String::from("bowline_test_"), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

fn url_of(admin: &str, database: &str) -> String {
    let mut url = url::Url::parse(admin).unwrap_or_else(|error| panic!("{ADMIN_URL}: {error}"));
    url.set_path(database);
    url.into()
}

async fn run(admin: &str, statement: &str) {
    let (client, connection) = connect(admin).await;
    client.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    drop(client);
    let _ = connection.await;
}

async fn connect(admin: &str) -> (Client, JoinHandle<Result<(), tokio_postgres::Error>>) {
    let (client, connection) =
        tokio_postgres::connect(admin, NoTls).await.unwrap_or_else(|error| panic!("{ADMIN_URL}: {error:?}"));
    (client, tokio::spawn(connection))
}

/// Runs a test of a server on one engine; not at all if that engine is left out on purpose.
pub async fn on_engine(engine: Engine, test: impl AsyncFnOnce(&TestServer)) {
    on_engine_with(engine, |_| {}, test).await;
}

/// The same with other options than the usual ones.
pub async fn on_engine_with(engine: Engine, change: impl FnOnce(&mut Options), test: impl AsyncFnOnce(&TestServer)) {
    if engines().contains(&engine) {
        let server = TestServer::start_with(engine, change).await;
        test(&server).await;
        server.stop().await;
    }
}

/// Makes `name::sqlite` and `name::postgres` tests of functions `async fn name(server: &TestServer)`. With
/// `multi_thread:` in front the server has threads beside the test's, for tests that block or race.
#[macro_export]
macro_rules! each_engine {
    (multi_thread: $($name:ident),+ $(,)?) => {
        $crate::engine_tests!({ flavor = "multi_thread", worker_threads = 2 } $crate::on_engine; $($name),+);
    };
    ($($name:ident),+ $(,)?) => {
        $crate::engine_tests!({ flavor = "current_thread" } $crate::on_engine; $($name),+);
    };
}

/// The same of functions `async fn name(engine: Engine)`, which start servers of their own.
#[macro_export]
macro_rules! by_engine {
    (multi_thread: $($name:ident),+ $(,)?) => {
        $crate::engine_tests!({ flavor = "multi_thread", worker_threads = 2 } $crate::if_chosen; $($name),+);
    };
    ($($name:ident),+ $(,)?) => {
        $crate::engine_tests!({ flavor = "current_thread" } $crate::if_chosen; $($name),+);
    };
}

/// Runs a test that starts its servers itself, unless the engine is left out on purpose.
pub async fn if_chosen(engine: Engine, test: impl AsyncFnOnce(Engine)) {
    if engines().contains(&engine) {
        test(engine).await;
    }
}

/// What [`each_engine`] and [`by_engine`] share.
#[macro_export]
macro_rules! engine_tests {
    (@one { $($flavor:tt)* } $test:ident, $engine:ident, $run:path, $name:ident) => {
        #[tokio::test($($flavor)*)]
        async fn $test() {
            $run($crate::Engine::$engine, super::$name).await;
        }
    };
    ($flavor:tt $run:path; $($name:ident),+) => {$(
        mod $name {
            $crate::engine_tests!(@one $flavor sqlite, Sqlite, $run, $name);
            $crate::engine_tests!(@one $flavor postgres, Postgres, $run, $name);
        }
    )+};
}
