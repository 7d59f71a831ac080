//! Fifty repositories from the wire to JSON, here and by way of prost-reflect.

use std::hint::black_box;
use std::time::Instant;

use bowline_contract::Contract;
use bowline_contract::v2::registry as v2;
use bowline_transcode::{JsonOptions, Tables};
use prost::Message as _;
use prost_reflect::{DynamicMessage, SerializeOptions};

use crate::Outcome;
use crate::sample::median;
use crate::seed::{sample_repo, spread};
use crate::table::{Table, Target, Unit};

const MESSAGE: &str = "chainguard.platform.registry.v2.ListReposResponse";
const CALLS: u32 = 300;
const ROUNDS: usize = 9;

pub(crate) fn run(table: &mut Table) -> Outcome<()> {
    let contract = Contract::load();
    let tables = Tables::new(contract.pool());
    let id = tables.message(MESSAGE).ok_or("the message has no table")?;
    let descriptor = contract.pool().get_message_by_name(MESSAGE).ok_or("the message has no descriptor")?;
    let wire = fifty().encode_to_vec();
    let options = JsonOptions { proto_names: false, emit_defaults: true };
    let mut json = Vec::new();
    let ours = measure(|| {
        json.clear();
        tables.to_json(id, black_box(&wire), &options, &mut json)?;
        black_box(&json);
        Ok(())
    })?;
    let theirs = measure(|| {
        let message = DynamicMessage::decode(descriptor.clone(), black_box(&*wire))?;
        let mut serializer = serde_json::Serializer::new(Vec::with_capacity(json.len()));
        message.serialize_with_options(&mut serializer, &SerializeOptions::new().skip_default_fields(false))?;
        black_box(serializer.into_inner());
        Ok(())
    })?;
    table.row("transcode 50 repositories to JSON", Unit::Microseconds, Target::None, ours);
    table.row("  against prost-reflect", Unit::Times, Target::AtLeast(5.0), theirs / ours);
    Ok(())
}

fn fifty() -> v2::ListReposResponse {
    let repo = |n: u64| v2::Repo {
        uid: format!("{}/{:016x}/{:016x}", "0b".repeat(20), 7, u64::from_be_bytes(spread(n))),
        description: "An image for measurements".into(),
        create_time: Some(prost_reflect::prost_types::Timestamp { seconds: 1_735_689_600, nanos: 120_000 }),
        update_time: Some(prost_reflect::prost_types::Timestamp { seconds: 1_735_689_700, nanos: 0 }),
        ..sample_repo(format!("repository-{n}"))
    };
    v2::ListReposResponse { repos: (0..50).map(repo).collect(), total_count: Some(50), ..Default::default() }
}

/// Microseconds per call.
fn measure(mut call: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..CALLS {
            call()?;
        }
        rounds.push(started.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS));
    }
    Ok(median(rounds))
}
