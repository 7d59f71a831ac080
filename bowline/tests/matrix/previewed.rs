//! A preview changes no row of any table, and agrees with the call after it: of every method that can be previewed.

#[path = "previewed/cases.rs"]
mod cases;
#[path = "previewed/reasons.rs"]
mod reasons;

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_contract::MethodInfo;
use bowline_contract::bowline::audit::v1 as audit;
use bowline_contract::bowline::audit::v1::rpc::audit::GetEntry;
use bowline_contract::bowline::preview::v1 as preview;
use bowline_contract::bowline::preview::v1::rpc::previews::Preview;
use bowline_core::{Error, Uidp};
use bowline_server::{Options, TermsOption};
use bowline_store::{Cell, transfer_tables};
use bowline_testkit::{Engine, GrpcError, TestServer, by_engine};
use prost_reflect::{DynamicMessage, ReflectMessage as _, Value};

use self::cases::{Case, cases, whole};
use self::reasons::NOT_PREVIEWABLE;
use crate::fixture::Fixture;

#[tokio::test]
async fn every_write_can_be_previewed_or_has_a_reason_not_to() {
    let server = TestServer::start(Engine::Sqlite).await;
    let pipeline = &server.server().parts().pipeline;
    let (mut can, mut cannot) = (BTreeSet::new(), BTreeSet::new());
    for method in pipeline.contract.methods() {
        if pipeline.handlers.writes(method.index) {
            if method.previewable {
                can.insert(&*method.full_name)
            } else {
                cannot.insert(&*method.full_name)
            };
        } else {
            assert!(!method.previewable, "{} changes nothing that a preview could show", method.full_name);
        }
    }
    let reasons: BTreeSet<&str> = NOT_PREVIEWABLE.iter().map(|(method, _)| *method).collect();
    assert_eq!(cannot, reasons, "left: writes that cannot be previewed, right: those with a reason");
    assert!(can.len() > 85, "{}", can.len());
    server.stop().await;
}

fn documents(options: &mut Options) {
    let url = "https://operator.example/terms".into();
    options.terms = vec![TermsOption { id: cases::DOCUMENT.into(), label: "The terms".into(), url }];
}

async fn previews_change_no_table_and_agree_with_their_calls(engine: Engine) {
    let server = TestServer::start_with(engine, documents).await;
    let fixture = whole(&server).await;
    let contract = &server.server().parts().contract;
    let mut left: BTreeSet<&str> =
        contract.methods().iter().filter(|method| method.previewable).map(|method| &*method.full_name).collect();
    let cases = cases(&fixture);
    changes_no_table(&fixture, &cases).await;
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case.row.full_name;
        match agrees(&fixture, case).await {
            Ok(Some(changes)) if changes > 0 || cases::CHANGE_NOTHING.contains(&name) => {
                left.remove(name);
            }
            Ok(_) => {}
            Err(difference) => wrong.push(format!("{name} at {}: {difference}", case.place.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(left, BTreeSet::new(), "no case of these succeeds");
    drop(fixture);
    server.stop().await;
}

/// Previews every case, whose calls are not made meanwhile.
async fn changes_no_table(fixture: &Fixture<'_>, cases: &[Case<'_>]) {
    let mut requests = Vec::new();
    for case in cases {
        requests.push((case, case.payload(fixture).await));
    }
    let before = settled(fixture.server).await;
    for (case, payload) in &requests {
        let _ = previewed(fixture, case, payload).await;
    }
    let after = tables(fixture.server).await;
    if before == after {
        return;
    }
    let changed: Vec<_> = before.iter().zip(&after).filter(|(before, after)| before != after).collect();
    // One by one, to name it.
    let mut before = settled(fixture.server).await;
    for (case, payload) in &requests {
        let _ = previewed(fixture, case, payload).await;
        let after = tables(fixture.server).await;
        for (before, after) in before.iter().zip(&after) {
            assert!(before == after, "a preview of {} changed {before:?}\n{after:?}", case.row.full_name);
        }
        before = after;
    }
    panic!("tables changed while previews were made: {changed:#?}");
}

/// Previews a case and makes its call, which must do what the preview told: the same error, or the same changes. How many
/// changes there were, if it succeeded; else what the two disagree in.
async fn agrees(fixture: &Fixture<'_>, case: &Case<'_>) -> Result<Option<usize>, String> {
    let payload = case.payload(fixture).await;
    numbered(fixture.server).await;
    let last = last_entry(fixture.server).await;
    let preview = previewed(fixture, case, &payload).await;
    let info = method(fixture, case.row.full_name);
    let made = case.actor.grpc_raw(&info.grpc_path, payload).await;
    case.settle(made.is_ok());
    let preview = match (preview, made) {
        (Ok(preview), Ok(_)) => preview,
        (Err(preview), Err(made)) if preview.status == made.status => return Ok(None),
        (preview, made) => return Err(format!("previewed {preview:?}, made {made:?}")),
    };
    let seen = entries_after(fixture, last).await;
    let told: Vec<_> =
        preview.changes.iter().map(|one| shown(fixture, &one.kind, one.before.as_ref(), one.after.as_ref())).collect();
    let made: Vec<_> =
        seen.iter().map(|one| shown(fixture, &one.kind, one.before.as_ref(), one.after.as_ref())).collect();
    if told != made {
        return Err(format!("previewed {told:#?}, made {made:#?}"));
    }
    for (told, made) in preview.changes.iter().zip(&seen) {
        let is_new = told.before.is_none() && told.after.is_some();
        if !is_new && told.resource != made.resource {
            return Err(format!("previewed {told:?}, made {made:?}"));
        }
    }
    Ok(Some(told.len()))
}

async fn previewed(
    fixture: &Fixture<'_>,
    case: &Case<'_>,
    payload: &[u8],
) -> Result<preview::PreviewResponse, GrpcError> {
    let type_url = format!("type.googleapis.com/{}", method(fixture, case.row.full_name).input.full_name());
    let request = Some(prost_types::Any { type_url, value: payload.to_vec() });
    let request = preview::PreviewRequest { method: case.row.full_name.into(), request };
    case.actor.grpc::<Preview>(request).await
}

fn method<'f>(fixture: &'f Fixture<'_>, full_name: &str) -> &'f MethodInfo {
    crate::calls::method(fixture, full_name)
}

/// A change as text, without what differs from one call to the next: times, and the UIDPs and ids of what is new.
fn shown(fixture: &Fixture<'_>, kind: &str, before: Option<&audit::Image>, after: Option<&audit::Image>) -> String {
    let is_new = before.is_none();
    let text = |image: Option<&audit::Image>| {
        let Some(image) = image else { return "nothing".to_owned() };
        let content = image.content.as_ref().expect("a snapshot has its content");
        let pool = fixture.server.server().parts().contract.pool();
        let message = pool.get_message_by_name(&image.r#type).expect("a message of the contract");
        let mut message = DynamicMessage::decode(message, content.value.as_slice()).expect("a message");
        strip(&mut message, is_new);
        format!("{} {message}", image.r#type)
    };
    format!("{kind}: {} then {}", text(before), text(after))
}

fn strip(message: &mut DynamicMessage, is_new: bool) {
    let drawn = ["uid", "id", "advisory_id", "etag", "endpoint_url"];
    for field in message.descriptor().fields().collect::<Vec<_>>() {
        let is_time = field.kind().as_message().is_some_and(|kind| kind.full_name() == "google.protobuf.Timestamp");
        // Exceptions are new elements of a policy that is not.
        let is_exception = field.full_name() == "bowline.registry.v1.ImageException.id";
        if is_time || is_exception || (is_new && drawn.contains(&field.name())) {
            message.clear_field(&field);
        } else if message.has_field(&field) {
            match message.get_field_mut(&field) {
                Value::Message(inner) => strip(inner, is_new),
                Value::List(items) => {
                    items.iter_mut().filter_map(Value::as_message_mut).for_each(|item| strip(item, is_new));
                }
                Value::String(text) if is_new && text.contains('/') && Uidp::is_valid(text) => text.clear(),
                _ => {}
            }
        }
    }
}

/// The entries of the whole server after one, the earliest first, with their snapshots.
async fn entries_after(fixture: &Fixture<'_>, last: i64) -> Vec<audit::Entry> {
    numbered(fixture.server).await;
    let mut entries = Vec::new();
    for sequence in last + 1..=last_entry(fixture.server).await {
        let request = audit::GetEntryRequest { sequence, ..audit::GetEntryRequest::default() };
        entries.push(fixture.operator.grpc::<GetEntry>(request).await.expect("the operator reads entries"));
    }
    entries
}

type Rows = Vec<(String, Vec<Vec<Cell>>)>;

/// All rows of all tables.
async fn tables(server: &TestServer) -> Rows {
    let mut snapshot = server.server().parts().storage.db.snapshot().await.expect("a snapshot");
    let mut all = Vec::new();
    for table in transfer_tables().expect("the schema") {
        let rows = snapshot.page(&table, None, 100_000).await.expect("rows");
        all.push((table.name.clone(), rows));
    }
    all
}

/// Tables whose rows a task of the background takes away once it has done what they stand for.
const LEFT_TO_TASKS: [&str; 6] =
    ["count_deltas", "changed_versions", "unmatched_sboms", "waiting_advisories", "waiting_images", "waiting_sboms"];

/// All rows, once the background changes none by itself.
async fn settled(server: &TestServer) -> Rows {
    let mut before = tables(server).await;
    for _ in 0..200 {
        numbered(server).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let after = tables(server).await;
        // In the same snapshot: work that is done a moment later would look like a change.
        let is_done = after.iter().all(|(table, rows)| rows.is_empty() || !LEFT_TO_TASKS.contains(&table.as_str()));
        if before == after && is_done {
            return after;
        }
        before = after;
    }
    panic!("the tables did not come to rest");
}

/// Waits until every entry of the audit log has its number.
pub(crate) async fn numbered(server: &TestServer) {
    for _ in 0..2000 {
        if number(server, "SELECT count(*) FROM audit WHERE seq IS NULL").await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("rows of the audit log got no numbers in 10 s");
}

async fn last_entry(server: &TestServer) -> i64 {
    number(server, "SELECT coalesce(max(seq), 0) FROM audit").await
}

/// One number out of the database.
async fn number(server: &TestServer, sql: &'static str) -> i64 {
    let db = &server.server().parts().storage.db;
    let read =
        db.read(|tx| Box::pin(async move { tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await }));
    read.await.expect("the database answers").expect("a row")
}

by_engine!(previews_change_no_table_and_agree_with_their_calls);
