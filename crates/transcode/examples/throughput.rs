//! Microseconds per conversion of a list of 50 objects, here and by way of
//! prost-reflect: `cargo run --release -p bowline-transcode --example throughput`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people at a terminal")]

use std::hint::black_box;
use std::time::Instant;

use bowline_transcode::{JsonOptions, Tables};
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, SerializeOptions};

fn main() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/protos");
    let set = protox::compile(["test.proto"], [root]).unwrap();
    let pool = DescriptorPool::from_file_descriptor_set(set).unwrap();
    let desc = pool.get_message_by_name("test.RepoList").unwrap();
    let tables = Tables::new(&pool);
    let id = tables.message("test.RepoList").unwrap();
    let options = JsonOptions { proto_names: false, emit_defaults: true };
    let mut wire = Vec::new();
    tables.from_json(id, list().as_bytes(), &mut wire).unwrap();
    let mut json = Vec::new();
    tables.to_json(id, &wire, &options, &mut json).unwrap();
    println!("{} wire bytes, {} JSON bytes", wire.len(), json.len());

    let mut out = Vec::new();
    let ours = measure(|| {
        out.clear();
        tables.to_json(id, &wire, &options, &mut out).unwrap();
        black_box(&out);
    });
    let theirs = measure(|| {
        let message = DynamicMessage::decode(desc.clone(), &*wire).unwrap();
        let mut serializer = serde_json::Serializer::new(Vec::with_capacity(json.len()));
        let options = SerializeOptions::new().skip_default_fields(false);
        message.serialize_with_options(&mut serializer, &options).unwrap();
        black_box(serializer.into_inner());
    });
    report("wire -> JSON", ours, theirs);

    let ours = measure(|| {
        out.clear();
        black_box(tables.from_json(id, &json, &mut out).unwrap());
    });
    let theirs = measure(|| {
        let mut text = serde_json::Deserializer::from_slice(&json);
        let options = DeserializeOptions::new();
        let message = DynamicMessage::deserialize_with_options(desc.clone(), &mut text, &options).unwrap();
        black_box(message.encode_to_vec());
    });
    report("JSON -> wire", ours, theirs);
}

fn report(what: &str, ours: f64, theirs: f64) {
    let ratio = theirs / ours;
    println!("{what}: {ours:.1} us, prost-reflect {theirs:.1} us, {ratio:.1} times");
}

/// The best of seven rounds, in microseconds per call.
fn measure(mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 400;
    let round = |_| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
    };
    (0..7).map(round).fold(f64::INFINITY, f64::min)
}

fn list() -> String {
    let item = |n: u32| {
        format!(
            r#"{{"uid":"2b1c9f04d0c4a7f0{n:04}/7e5d1a3c9b2f{n:04}","name":"image-{n}",
            "description":"The \"image\" number {n}, rebuilt nightly.\nSee the catalogue for its provenance and its tags.",
            "createTime":"2026-01-{:02}T08:30:00.123456Z","updateTime":"2026-02-{:02}T10:00:00Z",
            "labels":{{"team":"platform","tier":"base","catalog.example.dev/kind":"application"}},
            "sync_config":{{"source":"720909c9f5279097d847ad02a2f24ba8f59de36a/{n}","expiration":"2027-01-01T00:00:00Z","uniqueTags":true}},
            "color":"BLUE","size":"{}","tags":["latest","1.{n}","1.{n}.2"]}}"#,
            n % 28 + 1,
            n % 27 + 1,
            n * 1_048_577,
        )
    };
    let items: Vec<String> = (0..50).map(item).collect();
    format!(r#"{{"items":[{}],"nextPageToken":"abc"}}"#, items.join(","))
}
