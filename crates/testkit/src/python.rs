//! Distributions of Python packages of some hundred bytes, and the forms that publish them.

use std::io::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Crc;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE};

use crate::tarball::tarball;
use crate::{Actor, TestServer};

/// What separates the fields of a form.
pub const BOUNDARY: &str = "-----------a-boundary";

/// The body of an upload.
#[derive(Clone, Default)]
pub struct Form(pub Vec<u8>);

impl Form {
    /// The form with a field more.
    pub fn field(mut self, name: &str, value: &str) -> Form {
        write!(self.0, "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
            .expect("memory takes everything");
        self
    }

    /// The form with a file more.
    pub fn file(mut self, name: &str, bytes: &[u8]) -> Form {
        let head = format!("Content-Disposition: form-data; name=\"content\"; filename=\"{name}\"");
        write!(self.0, "--{BOUNDARY}\r\n{head}\r\nContent-Type: application/octet-stream\r\n\r\n")
            .expect("memory takes everything");
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    /// The whole form.
    pub fn end(mut self) -> Form {
        write!(self.0, "--{BOUNDARY}--\r\n").expect("memory takes everything");
        self
    }
}

/// The fields of an upload without the file.
pub fn fields(name: &str, version: &str, sha256: &str) -> Form {
    let fields = [(":action", "file_upload"), ("protocol_version", "1"), ("metadata_version", "2.4")];
    let form = fields.into_iter().fold(Form::default(), |form, (name, value)| form.field(name, value));
    form.field("name", name).field("version", version).field("sha256_digest", sha256)
}

/// The name of a wheel of any platform.
pub fn file_name(name: &str, version: &str) -> String {
    format!("{}-{version}-py3-none-any.whl", name.replace('-', "_"))
}

/// Core metadata with these headers besides its name and version.
pub fn metadata(name: &str, version: &str, more: &str) -> String {
    format!("Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nRequires-Python: >=3.8\n{more}\nHello.\n")
}

/// A wheel with these headers besides its name and version.
pub fn wheel(name: &str, version: &str, more: &str) -> Vec<u8> {
    let directory = format!("{}-{version}.dist-info", name.replace('-', "_"));
    zip(&[
        (format!("{}.py", name.replace('-', "_")), b"answer = 42\n".to_vec()),
        (format!("{directory}/METADATA"), metadata(name, version, more).into_bytes()),
        (format!("{directory}/RECORD"), Vec::new()),
    ])
}

/// A source distribution.
pub fn sdist(name: &str, version: &str) -> Vec<u8> {
    tarball(&[(format!("{name}-{version}/PKG-INFO"), metadata(name, version, "").into_bytes())])
}

/// A ZIP archive of members that are stored as they are.
pub fn zip(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut archive, mut list) = (Vec::new(), Vec::new());
    for (path, bytes) in members {
        let mut crc = Crc::new();
        crc.update(bytes);
        let length = u32::try_from(bytes.len()).expect("a small file").to_le_bytes();
        let facts = [&[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0][..], &crc.sum().to_le_bytes(), &length, &length].concat();
        let path_length = u16::try_from(path.len()).expect("a short path").to_le_bytes();
        let offset = u32::try_from(archive.len()).expect("a small archive").to_le_bytes();
        archive.extend([b"PK\x03\x04", &facts[..], &path_length, &[0, 0], path.as_bytes(), bytes].concat());
        let rest = [&path_length[..], &[0; 12], &offset, path.as_bytes()].concat();
        list.extend([b"PK\x01\x02\x14\x00", &facts[..], &rest].concat());
    }
    let count = u16::try_from(members.len()).expect("few members").to_le_bytes();
    let (size, offset) = (list.len() as u32, archive.len() as u32);
    let end =
        [&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &size.to_le_bytes(), &offset.to_le_bytes(), &[0, 0]].concat();
    [archive, list, end].concat()
}

/// Publishes a wheel to a group, given by names or UIDPs joined by `:`, as someone with an API token.
pub async fn publish(server: &TestServer, actor: &Actor, group: &str, name: &str, version: &str) {
    let (file, bytes) = (file_name(name, version), wheel(name, version, ""));
    let sha256 = bowline_core::hex(digest(&SHA256, &bytes).as_ref());
    let form = fields(name, version, &sha256).file(&file, &bytes).end();
    let basic = STANDARD.encode(format!("_token:{}", actor.token.as_deref().expect("the actor has a token")));
    let value = |text: String| text.parse().expect("a header's value");
    let headers = HeaderMap::from_iter([
        (AUTHORIZATION, value(format!("Basic {basic}"))),
        (CONTENT_TYPE, value(format!("multipart/form-data; boundary={BOUNDARY}"))),
    ]);
    let path = format!("/libraries/python/~{group}/legacy/");
    let reply = server.anonymous().rest_with("POST", &path, headers, form.0).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}
