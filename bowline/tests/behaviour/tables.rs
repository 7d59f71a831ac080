//! Every table has an owner, who has decided what each of its columns of text and bytes holds, and what becomes of its
//! rows when those that they refer to are deleted.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::Contract;
use bowline_core::Error;
use bowline_server::declared_tables;
use bowline_store::Engine;
use bowline_store::tables::{Holds, OnDelete, TableDeclaration};
use bowline_testkit::{TestServer, by_engine};
use prost_reflect::{Kind, MessageDescriptor};

/// The index of words of each engine has tables of its own.
const INDEXES_OF_WORDS: [&str; 2] = ["advisory_search", "search_index"];

/// Columns of text and bytes by table.
type Columns = BTreeMap<String, BTreeSet<String>>;

async fn catalogue(server: &TestServer) -> Columns {
    let db = &server.server().parts().storage.db;
    let sql = match db.engine() {
        Engine::Sqlite => {
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND c.type IN ('TEXT', 'BLOB')"
        }
        Engine::Postgres => {
            "SELECT c.table_name::text, c.column_name::text
             FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
             WHERE table_schema = 'public' AND t.table_type = 'BASE TABLE'
               AND c.data_type IN ('text', 'bytea', 'jsonb', 'json', 'character varying')"
        }
    };
    let rows = db.read(move |tx| {
        Box::pin(async move { tx.query(sql, &[], |row| Ok::<_, Error>((row.text(0)?, row.text(1)?))).await })
    });
    let mut columns = Columns::new();
    for (table, column) in rows.await.expect("the catalogue is read") {
        if !INDEXES_OF_WORDS.iter().any(|index| table.starts_with(index)) {
            columns.entry(table).or_default().insert(column);
        }
    }
    columns
}

async fn every_column_of_every_table_is_declared_once(engine: bowline_testkit::Engine) {
    let tables = declared_tables();
    let names: BTreeSet<&str> = tables.iter().map(|table| table.name).collect();
    assert_eq!(names.len(), tables.len(), "a table has two owners");
    let declared: Columns = tables
        .iter()
        .map(|table| (table.name.into(), table.columns.iter().map(|column| column.name.into()).collect()))
        .filter(|(_, columns): &(String, BTreeSet<String>)| !columns.is_empty())
        .collect();
    let server = TestServer::start(engine).await;
    assert_eq!(catalogue(&server).await, declared, "{engine:?}");
    server.stop().await;
}

#[test]
fn references_name_tables() {
    let tables = declared_tables();
    for (table, column) in columns(&tables) {
        if let Holds::Reference(to, _) = column.holds {
            let is_known = to == "*" || tables.iter().any(|table| table.name == to);
            assert!(is_known, "{}.{} refers to {to}", table.name, column.name);
        }
    }
}

/// A reference that is deleted or refused by declaration is so by the crate that deletes what it refers to.
#[test]
fn declared_deletions_are_done() {
    for (table, column) in columns(&declared_tables()) {
        if let Holds::Reference(to, OnDelete::Delete) = column.holds {
            let deletes = ["groups", "identities", "identity_providers", "repos", "subscriptions"];
            assert!(deletes.contains(&to), "{}.{}: nothing deletes the rows of {to}", table.name, column.name);
        }
        if let Holds::Reference(to, OnDelete::Restrict(..)) = column.holds {
            assert_eq!(to, "groups", "{}.{}: only groups are kept by what refers to them", table.name, column.name);
        }
    }
}

#[test]
fn fields_of_messages_that_hold_ids_are_declared() {
    let contract = Contract::load();
    let mut wrong = Vec::new();
    for (table, column) in columns(&declared_tables()) {
        let Holds::Message(type_name, declared) = column.holds else { continue };
        let message = contract.pool().get_message_by_name(type_name);
        let message = message.unwrap_or_else(|| panic!("{}.{}: no message {type_name}", table.name, column.name));
        let mut ids = BTreeSet::new();
        walk(&message, "", &mut Vec::new(), &mut ids);
        let declared: BTreeSet<String> = declared.iter().map(|path| (*path).to_owned()).collect();
        if ids != declared {
            wrong.push(format!("{}.{}: declares {declared:?}, {type_name} has {ids:?}", table.name, column.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Paths of the fields whose names are those of ids.
fn walk(message: &MessageDescriptor, prefix: &str, above: &mut Vec<String>, ids: &mut BTreeSet<String>) {
    if above.iter().any(|name| name == message.full_name()) {
        return;
    }
    above.push(message.full_name().to_owned());
    for field in message.fields() {
        let path = format!("{prefix}{}", field.name());
        match field.kind() {
            Kind::String if is_id(&path) => {
                ids.insert(path);
            }
            Kind::Message(inner) => walk(&inner, &format!("{path}."), above, ids),
            _ => {}
        }
    }
    above.pop();
}

/// Ids that others give, and places elsewhere: nothing of this server has them.
const OF_OTHERS: [&str; 7] =
    ["tenant_id", "project_id", "user_id", "component_id", "utm_source", "charts.source", "certificates.identity"];

fn is_id(path: &str) -> bool {
    const NAMES: [&str; 9] = ["id", "ids", "uid", "uids", "uidp", "parent", "group", "identity", "source"];
    let last = path.rsplit(['_', '.']).next().unwrap_or(path);
    NAMES.contains(&last) && !OF_OTHERS.iter().any(|other| path.ends_with(other))
}

fn columns(
    tables: &[TableDeclaration],
) -> impl Iterator<Item = (&TableDeclaration, &'static bowline_store::tables::ColumnDeclaration)> {
    tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)))
}

by_engine!(every_column_of_every_table_is_declared_once);
