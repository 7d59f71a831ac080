//! Pages of the index as JSON and as HTML, by the simple repository API 1.4 (PEP 503, 592, 658, 691, 700, 714).

use bowline_core::Result;
use bowline_core::rfc3339::{self, Digits};
use bowline_formats::percent::{self, NOT_UNRESERVED};
use bowline_libraries::hosting::{Project, ProjectFile, RenderedPage};
use maud::{DOCTYPE, Markup, html};
use serde_json::{Map, Value, json};

use super::negotiation::Form;
use crate::pages::rendered;

const VERSION: &str = "1.4";

/// The list of all projects.
pub(super) fn projects(form: Form, names: &[String]) -> Result<RenderedPage> {
    rendered(&project_list(form, names))
}

fn project_list(form: Form, names: &[String]) -> String {
    if form == Form::Json {
        let projects: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        return json!({ "meta": { "api-version": VERSION }, "projects": projects }).to_string();
    }
    let links = html! {
        @for name in names {
            a href=(format!("{name}/")) { (name) }
            br;
        }
    };
    document("Projects", &links)
}

/// The page of a project in a form, with addresses of attestations below `base`.
pub(super) fn project(form: Form, project: &Project, base: &str) -> Result<RenderedPage> {
    rendered(&match form {
        Form::Json => project_json(project, base),
        Form::Html | Form::PlainHtml => project_html(project, base),
    })
}

fn project_json(project: &Project, base: &str) -> String {
    let files: Vec<Value> = project.files.iter().map(|file| file_json(project, file, base)).collect();
    let page = json!({
        "meta": { "api-version": VERSION },
        "name": project.name,
        "versions": project.versions,
        "files": files,
    });
    page.to_string()
}

fn project_html(project: &Project, base: &str) -> String {
    let links = html! {
        @for file in &project.files {
            @let core_metadata = file.metadata_sha256.as_ref().map(|digest| format!("sha256={digest}"));
            a href=(format!("{}#sha256={}", address(file), file.sha256))
                data-requires-python=[Some(&file.requires_python).filter(|text| !text.is_empty())]
                data-core-metadata=[&core_metadata]
                data-dist-info-metadata=[&core_metadata]
                data-provenance=[provenance(project, file, base)]
                data-yanked=[&file.yanked] { (file.name) }
            br;
        }
    };
    document(&format!("Files of {}", project.name), &links)
}

fn file_json(project: &Project, file: &ProjectFile, base: &str) -> Value {
    let metadata = file.metadata_sha256.as_ref().map_or(Value::Bool(false), |digest| json!({ "sha256": digest }));
    let mut members = Map::new();
    members.insert("filename".into(), json!(file.name));
    members.insert("url".into(), json!(address(file)));
    members.insert("hashes".into(), json!({ "sha256": file.sha256 }));
    if let Some(size) = file.size {
        members.insert("size".into(), json!(size));
    }
    if let Some(uploaded_at) = file.uploaded_at {
        members.insert("upload-time".into(), json!(rfc3339::text(uploaded_at, Digits::Fewest)));
    }
    if !file.requires_python.is_empty() {
        members.insert("requires-python".into(), json!(file.requires_python));
    }
    // The second name is the one that older installers read.
    members.insert("core-metadata".into(), metadata.clone());
    members.insert("dist-info-metadata".into(), metadata.clone());
    members.insert("data-dist-info-metadata".into(), metadata);
    members.insert("provenance".into(), json!(provenance(project, file, base)));
    members.insert("yanked".into(), yanked(file.yanked.as_deref()));
    Value::Object(members)
}

/// Installers take an empty reason for none.
fn yanked(reason: Option<&str>) -> Value {
    match reason {
        None => Value::Bool(false),
        Some("") => Value::Bool(true),
        Some(reason) => json!(reason),
    }
}

/// The address of a file, from the page of its project: it holds behind any public address, and at any group.
fn address(file: &ProjectFile) -> String {
    format!("../../files/{}/{}", file.sha256, file.name)
}

/// The address of what is attested of a file, whole, as the protocol wants it; absent without.
fn provenance(project: &Project, file: &ProjectFile, base: &str) -> Option<String> {
    let version = percent::encode(&file.version, NOT_UNRESERVED);
    file.is_attested.then(|| format!("{base}/integrity/{}/{version}/{}/provenance", project.name, file.name))
}

fn document(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="pypi:repository-version" content=(VERSION);
                title { (title) }
            }
            body { h1 { (title) } (body) }
        }
    };
    page.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Project {
        let file = |name: &str, metadata: Option<&str>, yanked: Option<&str>| ProjectFile {
            name: name.into(),
            version: "1!1.0".into(),
            is_attested: metadata.is_some(),
            size: Some(7),
            sha256: "ab".repeat(32),
            metadata_sha256: metadata.map(str::to_owned),
            requires_python: if metadata.is_some() { ">=3.9".into() } else { String::new() },
            uploaded_at: Some(1_700_000_000_000_000),
            yanked: yanked.map(str::to_owned),
        };
        Project {
            name: "foo-bar".into(),
            versions: vec!["1.0".into()],
            files: vec![
                file("foo_bar-1.0-py3-none-any.whl", Some("cd"), Some("<b>\"withheld\"")),
                file("foo_bar-1.0.tar.gz", None, None),
            ],
            changes_at: None,
        }
    }

    #[test]
    fn a_project_as_json() {
        let page: Value = serde_json::from_str(&project_json(&sample(), "https://x/python")).expect("JSON");
        let (wheel, sdist) = (&page["files"][0], &page["files"][1]);
        assert_eq!(page["meta"]["api-version"], "1.4");
        assert_eq!((&page["name"], &page["versions"]), (&json!("foo-bar"), &json!(["1.0"])));
        assert_eq!(wheel["url"], format!("../../files/{}/foo_bar-1.0-py3-none-any.whl", "ab".repeat(32)));
        assert_eq!((&wheel["hashes"]["sha256"], &wheel["size"]), (&json!("ab".repeat(32)), &json!(7)));
        assert_eq!((&wheel["requires-python"], &wheel["yanked"]), (&json!(">=3.9"), &json!("<b>\"withheld\"")));
        assert_eq!(
            (&wheel["core-metadata"], &wheel["data-dist-info-metadata"]),
            (&json!({"sha256": "cd"}), &json!({"sha256": "cd"}))
        );
        assert_eq!((&sdist["core-metadata"], &sdist["yanked"]), (&json!(false), &json!(false)));
        let provenance = "https://x/python/integrity/foo-bar/1%211.0/foo_bar-1.0-py3-none-any.whl/provenance";
        assert_eq!((&wheel["provenance"], &sdist["provenance"]), (&json!(provenance), &json!(null)));
        assert_eq!((&sdist["upload-time"], sdist.get("requires-python")), (&json!("2023-11-14T22:13:20Z"), None));
    }

    #[test]
    fn a_project_as_html_escapes_what_others_wrote() {
        let page = project_html(&sample(), "https://x/python");
        assert!(page.contains("data-requires-python=\"&gt;=3.9\""), "{page}");
        assert!(page.contains("data-yanked=\"&lt;b&gt;&quot;withheld&quot;\""), "{page}");
        assert!(page.contains("data-core-metadata=\"sha256=cd\" data-dist-info-metadata=\"sha256=cd\""), "{page}");
        assert_eq!(page.matches("data-core-metadata").count(), 1, "{page}");
        assert_eq!(page.matches("data-provenance=\"https://x/python/integrity/foo-bar/").count(), 1, "{page}");
        assert!(page.contains("<meta name=\"pypi:repository-version\" content=\"1.4\">"), "{page}");
    }

    #[test]
    fn the_list_of_projects() {
        assert_eq!((yanked(None), yanked(Some(""))), (json!(false), json!(true)));
        let names = ["a".to_owned(), "b-c".to_owned()];
        let page: Value = serde_json::from_str(&project_list(Form::Json, &names)).expect("JSON");
        assert_eq!(page["projects"], json!([{ "name": "a" }, { "name": "b-c" }]));
        assert!(project_list(Form::PlainHtml, &names).contains("<a href=\"b-c/\">b-c</a>"));
    }
}
