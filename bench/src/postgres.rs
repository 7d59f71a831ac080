//! A database of its own on the PostgreSQL that the environment names.

use crate::Outcome;

pub(crate) struct Database {
    admin: String,
    name: String,
}

impl Database {
    pub(crate) async fn create(admin: &str) -> Outcome<Database> {
        let name = format!("bowline_bench_{}", std::process::id());
        administrate(admin, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?;
        administrate(admin, &format!("CREATE DATABASE {name}")).await?;
        Ok(Database { admin: admin.into(), name })
    }

    /// The admin's URL with this database instead.
    pub(crate) fn url(&self) -> String {
        let (base, options) = self.admin.split_once('?').unwrap_or((&self.admin, ""));
        let server = base.rsplit_once('/').map_or(base, |(server, _)| server);
        format!("{server}/{}?{options}", self.name).trim_end_matches('?').to_owned()
    }

    pub(crate) async fn drop_database(self) -> Outcome<()> {
        administrate(&self.admin, &format!("DROP DATABASE {} WITH (FORCE)", self.name)).await
    }
}

async fn administrate(url: &str, sql: &str) -> Outcome<()> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    let task = tokio::spawn(connection);
    client.batch_execute(sql).await?;
    task.abort();
    Ok(())
}
