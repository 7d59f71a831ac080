//! Forms and files that are not what they say: each is refused with what is wrong, and leaves nothing behind.

use bowline_testkit::{TestServer, each_engine};

use crate::support::*;

/// Refuses an upload; nothing of it stays.
async fn refused(server: &TestServer, client: &Client, what: &str, form: &Form, status: u16, says: &str) {
    let reply = client.upload(form).await;
    let sentence = sentence(&reply, status);
    assert!(sentence.contains(says), "{what}: {sentence}");
    let left = (number(server, "SELECT count(*) FROM uploads").await, stored_files(server));
    assert_eq!(left, (0, 0), "{what}");
    assert_eq!(number(server, "SELECT count(*) FROM hosted_files").await, 0, "{what}");
}

async fn forms_must_agree_with_their_file(server: &TestServer) {
    let (_, client) = publisher(server, "acme").await;
    let bytes = wheel("foo", "1.0", "");
    let name = file_name("foo", "1.0");
    let whole = |fields: Form| fields.file(&name, &bytes).end();
    let no_version =
        Form::default().field(":action", "file_upload").field("name", "foo").field("sha256_digest", &sha256(&bytes));
    let no_digest = Form::default().field(":action", "file_upload").field("name", "foo").field("version", "1.0");
    for (what, form, says) in [
        ("another name", whole(fields("bar", "1.0", &bytes)), "the form names bar, and the file foo"),
        ("another version", whole(fields("foo", "1.1", &bytes)), "the form has the version 1.1, and the file 1.0"),
        ("another digest", whole(fields("foo", "1.0", b"x")), "digest"),
        ("no version", whole(no_version), "name and version are required"),
        ("no digest", whole(no_digest), "sha256_digest is required"),
        ("another action", whole(Form::default().field(":action", "submit")), ":action must be file_upload"),
        ("no file", fields("foo", "1.0", &bytes).end(), "content is required"),
        ("two files", fields("foo", "1.0", &bytes).file(&name, &bytes).file(&name, &bytes).end(), "two files"),
        ("a cut form", Form(whole(fields("foo", "1.0", &bytes)).0[..900].to_vec()), "the body broke off"),
        (
            "a long field",
            whole(fields("foo", "1.0", &bytes).field("version", &"1".repeat(2000))),
            "more than 1024 bytes",
        ),
    ] {
        refused(server, &client, what, &form, 400, says).await;
    }
    let head = [b"--".to_vec(), BOUNDARY.as_bytes().to_vec(), b"\r\nX: ".to_vec(), vec![b'x'; 3 << 20]].concat();
    refused(server, &client, "a head without end", &Form(head), 400, "the body broke off").await;
    let long = (0..9).fold(fields("foo", "1.0", &bytes), |form, _| form.field("description", &"x".repeat(1 << 20)));
    refused(server, &client, "a long description", &whole(long), 413, "more than 8388608 bytes").await;
    let reply = client.send("POST legacy/", &[("content-type", "application/json")], b"{}").await;
    assert!(sentence(&reply, 415).contains("multipart/form-data"), "{}", reply.text());

    // Fields may follow the file.
    let late =
        Form::default().file(&name, &bytes).field(":action", "file_upload").field("name", "Foo").field("version", "1");
    let reply = client.upload(&late.field("sha256_digest", &sha256(&bytes).to_uppercase()).end()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

async fn files_must_be_distributions(server: &TestServer) {
    let (_, client) = publisher(server, "acme").await;
    let good = wheel("foo", "1.0", "");
    let directory = "foo-1.0.dist-info";
    let metadata = metadata("foo", "1.0", "").into_bytes();
    let twice = zip(&[
        (format!("{directory}/METADATA"), metadata.clone()),
        (format!("x-{directory}/METADATA"), metadata.clone()),
    ]);
    let outside = zip(&[("../evil.py".into(), Vec::new()), (format!("{directory}/METADATA"), metadata.clone())]);
    let bomb = zip(&[(format!("{directory}/METADATA"), [metadata, vec![b'x'; 2 << 20]].concat())]);
    for (what, name, bytes, says) in [
        ("no archive", file_name("foo", "1.0"), b"PK nothing".to_vec(), "is no ZIP archive"),
        ("no metadata", file_name("foo", "1.0"), zip(&[("foo.py".into(), Vec::new())]), "has no metadata"),
        ("metadata twice", file_name("foo", "1.0"), twice, "has metadata twice"),
        ("a member outside", file_name("foo", "1.0"), outside, "leaves its directory"),
        ("long metadata", file_name("foo", "1.0"), bomb, "at most 1048576 are read"),
        ("another name inside", file_name("bar", "1.0"), good.clone(), "is called bar 1.0"),
        ("another version inside", file_name("foo", "2.0"), good.clone(), "is called foo 2.0"),
        ("a path", format!("../{}", file_name("foo", "1.0")), good.clone(), "the name of the file must be"),
        ("no distribution", "foo-1.0.exe".into(), good.clone(), "the name of the file must be"),
        ("a name with a space", "foo bar-1.0-py3-none-any.whl".into(), good.clone(), "the name of the file must be"),
    ] {
        refused(server, &client, what, &form("foo", "1.0", &name, &bytes), 400, says).await;
    }
    let odd = wheel("foo", "not-a-version", "");
    let form = form("foo", "not-a-version", "foo-not_a_version-py3-none-any.whl", &odd);
    refused(server, &client, "no version", &form, 400, "version").await;
}

each_engine!(forms_must_agree_with_their_file, files_must_be_distributions);
