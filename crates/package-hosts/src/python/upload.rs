//! Uploads by the form that twine, uv, poetry and pdm send: `POST legacy/`.
//!
//! The file is stored while it arrives, and checked at the end of the form, since fields may follow it. Whatever fails
//! leaves nothing behind but what garbage collection takes.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bowline_authn::crypto::random_bytes;
use bowline_content::{Digest, Stored};
use bowline_core::hex;
use bowline_libraries::Language;
use bowline_libraries::hosting::{
    Checksums, HostClient, NewBlob, NewFile, Published, Publishing, Python, SubjectDigest,
};
use bowline_packages::{Distribution, Refusal};
use multer::Field;

use crate::PackageHosts;
use crate::answers::{Refused, typed};
use crate::attestations::STATEMENTS;
use crate::forms::FormReader;
use crate::storing::{FILE, blob, has_no_row};

/// Maximum bytes of a field that is read.
const FIELD: usize = 1 << 10;
/// Maximum bytes of all other fields: a description may be long.
const FIELDS: usize = 8 << 20;
/// Maximum characters of the name of a file.
const NAME: usize = 255;

/// What a form says.
#[derive(Default)]
struct Form {
    action: String,
    name: String,
    version: String,
    sha256: String,
    /// Statements about the file, as JSON; empty without.
    attestations: String,
    /// Name of the file, once it has arrived.
    file: Option<String>,
}

impl PackageHosts {
    /// Publishes the file of a form.
    pub(super) async fn upload(
        self: &Arc<Self>,
        client: &HostClient,
        scope: Option<&str>,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Response, Refused> {
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let boundary = multer::parse_boundary(content_type).map_err(|_| {
            let text = "send the file as multipart/form-data, as twine and uv publish do";
            Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)
        })?;
        let id = hex(&random_bytes::<16>());
        let mut publishing = self.hosting.begin_publishing::<Python>(client, scope, &id).await?;
        let received = self.receive(client, &mut publishing, &id, FormReader::new(body, boundary)).await;
        if received.is_err() {
            self.abandon(&id).await;
        }
        received
    }

    async fn receive(
        &self,
        client: &HostClient,
        publishing: &mut Publishing,
        id: &str,
        mut form: FormReader,
    ) -> Result<Response, Refused> {
        self.content.begin(id)?;
        let mut fields = Form::default();
        let mut size = 0;
        while let Some(field) = form.next_field().await.map_err(form_error)? {
            if field.name() == Some("content") {
                fields.file = Some(self.store(publishing, id, field, fields.file.is_some()).await?);
            } else {
                fields.read(field, &mut size).await?;
            }
        }
        let client = client.renewed()?;
        let (name, digest) = fields.validate()?;
        let stored = self.content.finish(id, &digest).await?;
        let published = self.inspect_and_publish(&client, publishing, &fields, &name, (&digest, id), &stored).await;
        if has_no_row(&published) {
            self.drop_bytes(&digest, &stored.upload).await;
        }
        let mut notice = None;
        match published? {
            Published::Same => self.abandon(id).await,
            Published::New(replaced) => {
                self.drop_replaced(&replaced).await;
                notice = self.unverified_notice(!matches!(fields.attestations.trim(), "" | "[]"));
            }
        }
        let said = notice.map_or_else(|| "published\n".into(), |notice| format!("published; {notice}\n"));
        Ok(typed(StatusCode::OK, "text/plain; charset=utf-8", said))
    }

    /// Stores the file while it arrives; returns its name.
    async fn store(
        &self,
        publishing: &mut Publishing,
        id: &str,
        field: Field<'static>,
        is_second: bool,
    ) -> Result<String, Refused> {
        let name = field.file_name().unwrap_or_default().to_owned();
        if is_second {
            return Err(Refused::bad("the form has two files: send one at a time"));
        }
        require_file_name(&name)?;
        self.append_published(publishing, id, field, FILE).await?;
        Ok(name)
    }

    async fn inspect_and_publish(
        &self,
        client: &HostClient,
        publishing: &Publishing,
        form: &Form,
        name: &str,
        (digest, id): (&Digest, &str),
        stored: &Stored,
    ) -> Result<Published, Refused> {
        let file_name = name.to_owned();
        let read = move |source, size| bowline_packages::distribution(source, size, &file_name);
        let distribution = self.inspect((digest, stored), read).await?.map_err(|refusal| match refusal {
            Refusal::Foreign => Refused::bad("the name of the file is not that of a wheel or a source distribution"),
            refusal => Refused::bad(format!("the file {refusal}")),
        })?;
        form.require_same(&distribution)?;
        let attestations = match form.attestations.as_str() {
            "" => Vec::new(),
            text => {
                let (text, file, sha256) = (text.to_owned(), name.to_owned(), digest.hex().to_owned());
                let subject = SubjectDigest::Sha256(sha256.clone());
                let read = move || bowline_packages::python_attestations(&text, &file, &sha256);
                self.verified_attestations(read, subject).await?
            }
        };
        let metadata = match &distribution.core_metadata {
            Some(bytes) => Some(self.store_part(client, publishing, bytes.clone()).await?),
            None => None,
        };
        let content = NewBlob { sha256: digest.hex().into(), blob: blob(stored), upload: id.into() };
        let file = NewFile {
            name: name.into(),
            package: Language::Python.normalized(&distribution.name),
            version: distribution.version,
            license: distribution.license,
            requires_python: distribution.requires_python,
            content,
            metadata,
            manifest: None,
            requirements: distribution.requirements,
            checksums: Checksums::default(),
            pom: None,
            attestations,
        };
        self.publish_with_part::<Python>(client, publishing, &file).await
    }
}

impl Form {
    /// Reads a field, if it is checked; all others are read past.
    async fn read(&mut self, mut field: Field<'static>, size: &mut usize) -> Result<(), Refused> {
        let target = match field.name() {
            Some(":action") => Some((&mut self.action, FIELD)),
            Some("name") => Some((&mut self.name, FIELD)),
            Some("version") => Some((&mut self.version, FIELD)),
            Some("sha256_digest") => Some((&mut self.sha256, FIELD)),
            Some("attestations") => Some((&mut self.attestations, STATEMENTS)),
            _ => None,
        };
        let mut bytes = Vec::new();
        while let Some(part) = field.chunk().await.map_err(form_error)? {
            *size += part.len();
            if *size > FIELDS {
                let text = format!("the fields of the form have more than {FIELDS} bytes");
                return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, text));
            }
            if let Some((_, most)) = &target {
                bytes.extend_from_slice(&part);
                if bytes.len() > *most {
                    return Err(Refused::bad(format!("a field of the form has more than {most} bytes")));
                }
            }
        }
        if let Some((target, _)) = target {
            *target = String::from_utf8(bytes).map_err(|_| Refused::bad("a field of the form is not UTF-8"))?;
        }
        Ok(())
    }

    /// Name and digest of the file, once everything has arrived.
    fn validate(&self) -> Result<(String, Digest), Refused> {
        if self.action != "file_upload" {
            return Err(Refused::bad(":action must be file_upload: this index takes files of distributions"));
        }
        let name = self.file.clone().ok_or_else(|| Refused::bad("content is required: the form has no file"))?;
        if self.name.is_empty() || self.version.is_empty() {
            return Err(Refused::bad("name and version are required"));
        }
        if self.sha256.is_empty() {
            return Err(Refused::bad("sha256_digest is required: publish with twine, uv, poetry or pdm"));
        }
        let digest = Digest::parse(&format!("sha256:{}", self.sha256.to_ascii_lowercase()));
        Ok((name, digest.map_err(|_| Refused::bad("sha256_digest must be 64 hexadecimal digits"))?))
    }

    /// The index shows what lies in the file, so the form must say the same.
    fn require_same(&self, file: &Distribution) -> Result<(), Refused> {
        let language = Language::Python;
        if language.normalized(&self.name) != language.normalized(&file.name) {
            return Err(Refused::bad(format!("the form names {}, and the file {}", self.name, file.name)));
        }
        if !language.is_version(&file.version) {
            return Err(Refused::bad(format!("{} is no version by PEP 440", file.version)));
        }
        if !language.is_same_version(&self.version, &file.version) {
            let (form, file) = (&self.version, &file.version);
            return Err(Refused::bad(format!("the form has the version {form}, and the file {file}")));
        }
        Ok(())
    }
}

/// Refuses a name that addresses, archives or people would read differently.
fn require_file_name(name: &str) -> Result<(), Refused> {
    if is_file_name(name) {
        return Ok(());
    }
    Err(Refused::bad(
        "the name of the file must be that of a wheel (.whl) or of a source distribution (.tar.gz or .zip), such as \
         example-1.0-py3-none-any.whl",
    ))
}

/// Whether addresses, archives and people read a name of a distribution alike.
pub(super) fn is_file_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+!".contains(&byte);
    let is_fine = name.len() <= NAME && !name.starts_with('.') && name.bytes().all(is_plain);
    is_fine && bowline_packages::package_of_file(name).is_some_and(|name| !name.is_empty())
}

fn form_error(error: multer::Error) -> Refused {
    match error {
        multer::Error::StreamReadFailed(_) => Refused::bad("the body broke off: send the file again"),
        error => Refused::bad(format!("the form does not parse: {error}")),
    }
}
