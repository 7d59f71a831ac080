//! From a request to the page or the file that it is answered with: found, gated, and, if a page, made and kept.

use bowline_core::{Error, Micros};
use bowline_registry::content::{StoredBlob, package_files};
use bowline_store::ReadTx;

use super::files::Checksums;
use super::gate::Gate;
use super::notes::Note;
use super::package::{LocateFile, Located, Package, absent, absent_then, locate};
use super::package_file::PackageFile;
use super::pages::{PageKey, RenderedPage, Stamp};
use super::protocols::Protocol;
use super::served::ServedVersion;
use super::upstream_files::MissingFile;
use super::views::View;
use super::{AvailableFile, HostClient, HostError, Hosting, Lookup, Withheld};
use crate::ecosystems::Language;

/// What a page of a package is made of, by the protocol that it belongs to.
pub(super) trait PageContent: Send + Sized + 'static {
    type Of: Protocol;

    /// What the package shows now.
    fn load(
        tx: &mut ReadTx,
        hosting: &Hosting,
        package: Package,
        gate: Gate,
        now: Micros,
    ) -> impl Future<Output = Result<Self, HostError>> + Send;

    /// When time changes it; absent if that changes nothing.
    fn changes_at(&self) -> Option<Micros>;
}

/// Which page of a package.
#[derive(Clone)]
pub(super) struct PageName {
    /// The normalized name of the package.
    pub(super) package: String,
    /// Media type of the page.
    pub(super) form: &'static str,
    /// Where links of the page lead, if they are whole addresses.
    pub(super) base: String,
}

/// The bytes of a file, or of its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its algorithm, a colon and the digest in hex.
    pub digest: String,
    pub blob: StoredBlob,
    pub checksums: Checksums,
    /// When it became public, where that is known.
    pub published_at: Option<Micros>,
}

/// A file as an address names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    pub name: String,
    /// Its digest, such as `sha256:` and hex, where the address has it.
    pub digest: Option<String>,
}

/// What the policies in force say of a file.
type Decided = Vec<(Note, Option<Withheld>)>;

/// What there is of a page.
enum AtHand<C> {
    Page(RenderedPage),
    /// It has to be made, and nothing was loaded for that.
    Nothing(PageKey),
    Content(PageKey, Stamp, C),
}

impl Hosting {
    /// Refuses those who may not read packages of a view.
    ///
    /// # Errors
    /// The caller may not read there.
    pub async fn require_reader<P: Protocol>(&self, client: &HostClient, path: Option<&str>) -> Result<(), HostError> {
        let of = (client.clone(), path.map(str::to_owned));
        let read = self.pipeline.db.read(move |tx| {
            let (client, path) = of.clone();
            Box::pin(async move { View::open::<P>(tx, &client, path.as_deref()).await.map(drop) })
        });
        read.await
    }

    /// The page of a package of a view, which `render` makes. It is made again once something that it shows has changed.
    /// Beside it, microseconds since its upstream confirmed it, if that cannot be asked.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds all of it.
    pub(super) async fn page<C: PageContent>(
        &self,
        client: &HostClient,
        path: Option<&str>,
        page: PageName,
        render: impl FnOnce(&C) -> bowline_core::Result<RenderedPage> + Send + 'static,
    ) -> Result<Lookup<(RenderedPage, Option<Micros>)>, HostError> {
        let key = match self.page_at_hand::<C>(client, path, &page, false).await? {
            Lookup::Here((AtHand::Page(page), stale)) => return Ok(Lookup::Here((page, stale))),
            Lookup::Here((AtHand::Nothing(key) | AtHand::Content(key, ..), _)) => key,
            Lookup::Ask(ask) => return Ok(Lookup::Ask(ask)),
        };
        let _turn = self.pages.turn(&key).await;
        match self.page_at_hand::<C>(client, path, &page, true).await? {
            Lookup::Here((AtHand::Page(page), stale)) => Ok(Lookup::Here((page, stale))),
            Lookup::Here((AtHand::Content(key, stamp, content), stale)) => {
                let until = content.changes_at();
                let page = self.pages.make((key, stamp), until, move || render(&content)).await?;
                Ok(Lookup::Here((page, stale)))
            }
            Lookup::Here((AtHand::Nothing(_), _)) => Err(Error::internal("a package was not loaded").into()),
            Lookup::Ask(ask) => Ok(Lookup::Ask(ask)),
        }
    }

    /// What a package of a view shows now, without a page.
    ///
    /// # Errors
    /// Those of a page.
    pub(super) async fn content<C: PageContent>(
        &self,
        client: &HostClient,
        path: Option<&str>,
        name: &str,
    ) -> Result<Lookup<C>, HostError> {
        let language = C::Of::LANGUAGE;
        let of = (self.clone(), client.clone(), path.map(str::to_owned), name.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path, name) = of.clone();
            Box::pin(async move {
                let (view, now) = (View::open::<C::Of>(tx, &client, path.as_deref()).await?, client.now());
                let location = match locate(tx, &hosting, &view, (language, &name), now).await? {
                    Located::Here(location) => location,
                    Located::Ask(ask) => return Ok(Lookup::Ask(ask)),
                    Located::Fetch(file) => return Err(unexpected(&file).into()),
                };
                let package = location.package(tx, language, &name).await?;
                let gate = Gate::load_whole(tx, &view.scope.root(), language, &package, now).await?;
                Ok::<_, HostError>(Lookup::Here(C::load(tx, &hosting, package.until(view.moment)?, gate, now).await?))
            })
        });
        read.await
    }

    /// The page if it is kept, else what to make it of, if that is to be loaded; and how old the answer of its upstream is.
    async fn page_at_hand<C: PageContent>(
        &self,
        client: &HostClient,
        path: Option<&str>,
        page: &PageName,
        is_loaded: bool,
    ) -> Result<Lookup<(AtHand<C>, Option<Micros>)>, HostError> {
        let language = C::Of::LANGUAGE;
        let of = (self.clone(), client.clone(), path.map(str::to_owned), page.clone());
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path, page) = of.clone();
            Box::pin(async move {
                let view = View::open::<C::Of>(tx, &client, path.as_deref()).await?;
                let (organization, name, now) = (view.scope.root(), page.package, client.now());
                let location = match locate(tx, &hosting, &view, (language, &name), now).await? {
                    Located::Here(location) => location,
                    Located::Ask(ask) => return Ok(Lookup::Ask(ask)),
                    Located::Fetch(file) => return Err(unexpected(&file).into()),
                };
                let stamp = Stamp::read(tx, &organization, (language, &name), &location, now).await?;
                let repository = location.repository.clone();
                let (form, base, moment) = (page.form, page.base, view.moment);
                let key = PageKey { repository, package: name.clone(), form, base, moment };
                let stale = location.stale_since.map(|since| now.saturating_sub(since));
                if let Some(page) = hosting.pages.find(&key, &stamp, now) {
                    return Ok(Lookup::Here((AtHand::Page(page), stale)));
                }
                if !is_loaded {
                    return Ok(Lookup::Here((AtHand::Nothing(key), stale)));
                }
                let package = location.package(tx, language, &name).await?;
                let gate = Gate::load_whole(tx, &organization, language, &package, now).await?;
                let content = C::load(tx, &hosting, package.until(view.moment)?, gate, now).await?;
                Ok::<_, HostError>(Lookup::Here((AtHand::Content(key, stamp, content), stale)))
            })
        });
        read.await
    }

    /// A file of a package of a view; with `is_metadata` its core metadata, which no policy withholds: resolvers read them of
    /// versions that they do not install.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds it, which is noted.
    pub(super) async fn file<P: LocateFile>(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (package, file): (&str, &FileName),
        is_metadata: bool,
    ) -> Result<Lookup<AvailableFile>, HostError> {
        let found = self.decided_file::<P>(client, path, (package, file), is_metadata).await?;
        let (mut found, decided, served) = match found {
            Lookup::Here(found) => found,
            Lookup::Ask(ask) => return Ok(Lookup::Ask(ask)),
        };
        if P::LANGUAGE == Language::Java
            && let AvailableFile::Missing(file) = &found
            && let Some(withheld) = decided.iter().find_map(|(_, refused)| refused.clone())
        {
            return Err(HostError::WithheldIfThere(withheld, file.clone()));
        }
        self.note(&mut found, decided)?;
        match (&mut found, served) {
            (AvailableFile::Stored(file), Some(served)) => self.served.add(served, &file.digest, client.now()),
            (AvailableFile::Missing(file), served) => file.served = served,
            (AvailableFile::Stored(_), None) => {}
        }
        Ok(Lookup::Here(found))
    }

    /// A file, what the policies in force say of it, and the version as it would be served.
    async fn decided_file<P: LocateFile>(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (package, file): (&str, &FileName),
        is_metadata: bool,
    ) -> Result<Lookup<(AvailableFile, Decided, Option<ServedVersion>)>, HostError> {
        let language = P::LANGUAGE;
        let of = (self.clone(), client.clone(), path.map(str::to_owned), package.to_owned(), file.clone());
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path, package, named) = of.clone();
            Box::pin(async move {
                let (view, now) = (View::open::<P>(tx, &client, path.as_deref()).await?, client.now());
                let package = match P::locate_file(tx, &hosting, &view, &package, &named, now).await? {
                    Located::Here(package) => package,
                    Located::Ask(ask) => return Ok(Lookup::Ask(ask)),
                    Located::Fetch(file) => {
                        return Ok(Lookup::Here((AvailableFile::Missing(file), Decided::new(), None)));
                    }
                };
                let file = package.file(&named).ok_or_else(|| absent(&named.name))?;
                if !file.is_of(view.moment) {
                    return Err(absent_then(&named.name, view.moment).into());
                }
                let gate = Gate::load(tx, &view.scope.root(), language, &package, now).await?;
                let is_gated = !is_metadata && P::is_gated(&named.name);
                let decided = if is_gated { gate.decided(&package.name, file, now) } else { Decided::new() };
                if is_metadata && file.metadata_sha256.is_empty() {
                    return Err(absent(&format!("{}.metadata", named.name)).into());
                }
                let of_metadata = || format!("sha256:{}", file.metadata_sha256);
                let digest = if is_metadata { of_metadata() } else { file.digest.clone() };
                // Another file may have the same bytes; what they say of themselves is known once they came as this one.
                let is_stored = is_metadata || file.is_stored;
                let blob = package_files::find(tx, &package.repository, &digest).await?;
                let found = match blob.filter(|_| is_stored) {
                    Some(blob) => {
                        let (checksums, published_at) = (file.checksums.clone(), file.uploaded_at);
                        AvailableFile::Stored(File { digest, blob, checksums, published_at })
                    }
                    None => {
                        AvailableFile::Missing(Box::new(missing_file(language, (&package, file), &gate, is_metadata)?))
                    }
                };
                let served = package.served(view.scope.root(), language, file).filter(|_| is_gated);
                Ok::<_, HostError>(Lookup::Here((found, decided, served)))
            })
        });
        read.await
    }

    /// Notes what the policies say of a file.
    ///
    /// # Errors
    /// One of them withholds it.
    fn note(&self, found: &mut AvailableFile, decided: Decided) -> Result<(), HostError> {
        let mut withheld = None;
        for (note, refused) in decided {
            match (&mut *found, refused) {
                (_, Some(refused)) => {
                    self.notes.add(note);
                    withheld = withheld.or(Some(refused));
                }
                // What policies only log is noted once, when the file is served: clients look again after a fetch.
                (AvailableFile::Stored(_), None) => self.notes.add(note),
                (AvailableFile::Missing(file), None) => file.logged.push(note),
            }
        }
        withheld.map_or(Ok(()), |withheld| Err(HostError::Withheld(withheld)))
    }
}

/// Pages are made of documents, for which no file is fetched.
fn unexpected(file: &MissingFile) -> Error {
    Error::internal(format!("{} was to be fetched for a page", file.name))
}

/// What to fetch of a file whose bytes are not stored.
fn missing_file(
    language: Language,
    (package, file): (&Package, &PackageFile),
    gate: &Gate,
    is_metadata: bool,
) -> Result<MissingFile, Error> {
    let upstream = package.upstream.clone().filter(|_| !file.url.is_empty());
    let upstream = upstream.ok_or_else(|| Error::internal(format!("{} has no link to its bytes", file.name)))?;
    let (url, digest, size) = if is_metadata {
        (format!("{}.metadata", file.url), format!("sha256:{}", file.metadata_sha256), None)
    } else {
        (file.url.clone(), file.digest.clone(), file.size)
    };
    Ok(MissingFile {
        upstream,
        language,
        package: package.name.clone(),
        name: file.name.clone(),
        version: file.version.clone(),
        url,
        digest,
        size,
        is_metadata,
        // The index of Python does not say licenses; documents of npm do.
        is_decided_by_license: gate.needs_licenses(),
        is_free_to_stream: !gate.needs_licenses() || !file.license.is_empty(),
        logged: Vec::new(),
        served: None,
        published_at: file.uploaded_at,
        first_seen: file.first_seen,
    })
}
