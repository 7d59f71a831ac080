//! The images that a chart uses, as its makers list them: read at its push, and kept with its manifest.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::v1::registry as v1;
use bowline_core::Error;
use bowline_feeds::{Limits, Unreadable, objects_of_yaml};
use bowline_store::{ReadTx, Value, WriteTx};

use super::{METADATA_BYTES, Metadata};
use crate::paths::is_part;

/// Where the makers of a chart list the images that it uses: a chart itself has them in templates alone.
const ANNOTATION: &str = "artifacthub.io/images";

/// Maximum number of repositories of images that one chart names.
const MAX_REPOSITORIES: usize = 200;

/// The repositories of the images that a chart uses, without tags, or why they are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChartImages(pub(super) Result<BTreeSet<String>, String>);

impl ChartImages {
    /// Reads the metadata that a chart has for its config.
    pub(crate) fn read(metadata: &[u8]) -> ChartImages {
        ChartImages(repositories(metadata))
    }
}

fn repositories(metadata: &[u8]) -> Result<BTreeSet<String>, String> {
    let metadata = Metadata::read(metadata).ok_or("its metadata are not JSON as Helm writes it")?;
    let listed = listed(&metadata.annotations);
    let listed = listed.map_err(|_| format!("its annotation {ANNOTATION} is not a list of YAML objects"))?;
    let mut found = BTreeSet::new();
    for mut one in listed {
        let image = one.remove("image").unwrap_or_default();
        let repository = repository(&image);
        let repository =
            repository.ok_or_else(|| format!("its annotation {ANNOTATION} names no image with {:?}", cut(&image)))?;
        found.insert(repository.to_owned());
    }
    if found.len() > MAX_REPOSITORIES {
        return Err(format!("it names {} repositories of images; {MAX_REPOSITORIES} is the most", found.len()));
    }
    Ok(found)
}

/// The beginning of what is no reference: the message with it is stored and sent.
fn cut(image: &str) -> &str {
    const SHOWN: usize = 80;
    image.char_indices().nth(SHOWN).map_or(image, |(end, _)| &image[..end])
}

/// The objects of the chart's list; none where it has no list.
fn listed(annotations: &BTreeMap<String, String>) -> Result<Vec<BTreeMap<String, String>>, Unreadable> {
    let limits = Limits { bytes: METADATA_BYTES as usize, values: 10_000, depth: 8, ..Limits::default() };
    annotations.get(ANNOTATION).map_or_else(|| Ok(Vec::new()), |list| objects_of_yaml(list, &limits))
}

/// The images of a chart's list; none where the list is not as its readers want it, which the annotation itself shows.
pub(super) fn shown(annotations: &BTreeMap<String, String>) -> Vec<v1::ChartImage> {
    let image = |mut listed: BTreeMap<String, String>| {
        let image = listed.remove("image")?;
        Some(v1::ChartImage { name: listed.remove("name").unwrap_or_default(), image, ..v1::ChartImage::default() })
    };
    listed(annotations).unwrap_or_default().into_iter().filter_map(image).collect()
}

/// The repository of an image reference: what is left without its tag and digest.
fn repository(image: &str) -> Option<&str> {
    const LONGEST: usize = 512;
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let name = name[last..].find(':').map_or(name, |colon| &name[..last + colon]);
    let is_host = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
    let is_repository = match name.split_once('/') {
        Some((first, rest)) => !first.is_empty() && is_host(first) && rest.split('/').all(is_part),
        None => is_part(name),
    };
    (name.len() <= LONGEST && is_repository).then_some(name)
}

/// The last part of a repository's name.
pub(super) fn last_part(repository: &str) -> &str {
    repository.rsplit_once('/').map_or(repository, |(_, last)| last)
}

/// Keeps what a chart says, with the first push that has it.
pub(crate) async fn put(tx: &mut WriteTx, manifest: &str, images: &ChartImages) -> bowline_core::Result<()> {
    let problem = images.0.as_ref().err().map_or("", String::as_str);
    let sql = "INSERT INTO charts (manifest, problem) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    if tx.execute(sql, &[Value::from(manifest), Value::from(problem)]).await? == 0 {
        return Ok(());
    }
    for repository in images.0.iter().flatten() {
        let sql = "INSERT INTO chart_images (manifest, repository) VALUES ($1, $2)";
        tx.execute(sql, &[Value::from(manifest), Value::from(repository)]).await?;
    }
    Ok(())
}

/// What the chart with this manifest says; absent for one whose config was not there, or not looked into, at its push.
pub(super) async fn of(tx: &mut ReadTx, manifest: &str) -> bowline_core::Result<Option<ChartImages>> {
    let sql = "SELECT problem FROM charts WHERE manifest = $1";
    let params = [Value::from(manifest)];
    let problem = tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    let Some(problem) = problem else { return Ok(None) };
    if !problem.is_empty() {
        return Ok(Some(ChartImages(Err(problem))));
    }
    let sql = "SELECT repository FROM chart_images WHERE manifest = $1 ORDER BY repository";
    let found: Vec<String> = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    Ok(Some(ChartImages(Ok(found.into_iter().collect()))))
}

/// Forgets what a chart said, whose manifest is gone.
pub(crate) async fn forget(tx: &mut WriteTx, manifest: &str) -> bowline_core::Result<()> {
    for sql in ["DELETE FROM charts WHERE manifest = $1", "DELETE FROM chart_images WHERE manifest = $1"] {
        tx.execute(sql, &[Value::from(manifest)]).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotated(list: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(ANNOTATION.to_owned(), list.to_owned())])
    }

    #[test]
    fn an_unreadable_list_has_no_images() {
        let named =
            |list: &str| shown(&annotated(list)).into_iter().map(|image| (image.name, image.image)).collect::<Vec<_>>();
        let one = vec![("a".to_owned(), "r.example/a".to_owned())];
        assert_eq!(named("- {name: a, image: r.example/a}\n- {name: without}\n- image: [1]\n"), one);
        let deep = "[".repeat(100_000);
        for list in ["", "r.example/a", "image: r.example/a", "- &a [*a]", "- {image: x", &deep] {
            assert_eq!(named(list), [], "{list:.20}");
        }
        assert_eq!(shown(&BTreeMap::new()), []);
    }

    #[test]
    fn repositories_are_named_once_or_the_reason_is() {
        let read = |list: &str| {
            let metadata = serde_json::json!({ "name": "x", "annotations": annotated(list) });
            ChartImages::read(metadata.to_string().as_bytes()).0
        };
        let images = "- image: r.example:5000/a/b:1\n- image: r.example:5000/a/b:2@sha256:00\n- image: redis\n";
        assert_eq!(read(images), Ok(["r.example:5000/a/b", "redis"].map(String::from).into()));
        assert_eq!(read("[]"), Ok(BTreeSet::new()));
        let many: Vec<String> = (0..201).map(|n| format!("- image: r.example/a{n}")).collect();
        let many = many.join("\n");
        for (list, reason) in [
            ("x", "is not a list of YAML objects"),
            ("- {name: a}", "names no image with \"\""),
            ("- image: A b", "names no image with \"A b\""),
            (&format!("- image: {}", "é".repeat(5000)), &format!("names no image with \"{}\"", "é".repeat(80))),
            (&many, "it names 201 repositories of images; 200 is the most"),
        ] {
            let error = read(list).expect_err(list);
            assert!(error.contains(reason), "{error}");
        }
        let ChartImages(nothing) = ChartImages::read(b"{}");
        assert_eq!(nothing, Ok(BTreeSet::new()));
        assert!(ChartImages::read(b"[]").0.is_err());
    }

    #[test]
    fn references_are_taken_apart() {
        for (image, expected) in [
            ("r.example/a:1", Some("r.example/a")),
            ("r.example:5000/a", Some("r.example:5000/a")),
            ("[::1]:5000/a/b@sha256:00", Some("[::1]:5000/a/b")),
            ("a:1", Some("a")),
            ("team/app", Some("team/app")),
            ("", None),
            (":1", None),
            ("/a", None),
            ("r.example/", None),
            ("r.example/A", None),
            ("r.example/a/../b", None),
            ("https://r.example/a", None),
            ("r.example/a\0", None),
        ] {
            assert_eq!(repository(image), expected, "{image:?}");
        }
    }
}
