//! Projects of Python: requirements, `pyproject.toml`, lock files, and settings of pip, uv and PDM.

use toml::{Table, Value};

use super::sources::{Installer, Sources};

pub(super) fn read(name: &str, text: &str) -> Option<Result<Sources, String>> {
    let is_requirements = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        ["requirements", "constraints"].iter().any(|word| stem.starts_with(word)) && ["txt", "in"].contains(&extension)
    });
    match name {
        "pyproject.toml" => Some(document(text).map(|project| pyproject(&project))),
        "uv.toml" => Some(document(text).map(|settings| {
            let mut found = Sources::of(Installer::Uv);
            uv(&settings, &mut found);
            found
        })),
        "uv.lock" => Some(document(text).map(|lock| locked(Installer::Uv, &lock))),
        "poetry.lock" => Some(document(text).map(|lock| locked(Installer::Poetry, &lock))),
        "pdm.lock" => Some(document(text).map(|lock| locked(Installer::Pdm, &lock))),
        "pip.conf" | "pip.ini" => Some(Ok(pip(text))),
        _ if is_requirements => Some(Ok(requirements(text))),
        _ => None,
    }
}

pub(super) fn document(text: &str) -> Result<Table, String> {
    text.parse().map_err(|error: toml::de::Error| format!("is no TOML: {}", error.message()))
}

/// The settings of PDM, which are for its index alone.
pub(super) fn pdm_settings(text: &str) -> Result<Sources, String> {
    let mut found = Sources::of(Installer::Pdm);
    if let Some(url) = text_at(&document(text)?, &["pypi", "url"]) {
        found.index(Installer::Pdm, url);
    }
    Ok(found)
}

/// Options and requirements, one a line; a backslash continues a line.
fn requirements(text: &str) -> Sources {
    let mut found = Sources::of(Installer::Pip);
    for line in text.replace("\\\n", " ").lines() {
        let line = line.trim();
        let (option, value) = line.split_once(['=', ' ']).unwrap_or((line, ""));
        match option {
            _ if line.starts_with('#') => {}
            "-i" | "--index-url" => found.index(Installer::Pip, value),
            "--extra-index-url" => found.further_index(Installer::Pip, value),
            "-f" | "--find-links" | "-e" | "--editable" => found.direct(Installer::Pip, value),
            _ => found.direct(Installer::Pip, direct(line).unwrap_or(line)),
        }
    }
    found
}

/// The address that a requirement such as `name @ https://host/file` has in place of a version.
fn direct(requirement: &str) -> Option<&str> {
    let (_, address) = requirement.split_once('@')?;
    let address = address.trim();
    (!requirement.starts_with("git+") && address.contains("://"))
        .then(|| address.split([' ', ';']).next().unwrap_or_default())
}

/// Settings of pip, whose values go on in lines that are indented.
fn pip(text: &str) -> Sources {
    let mut found = Sources::of(Installer::Pip);
    let mut key = String::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])) {
        let value = match line.split_once('=') {
            Some((name, value)) if !line.starts_with([' ', '\t']) => {
                key = name.trim().replace('_', "-");
                value
            }
            _ => line,
        };
        for word in value.split_whitespace() {
            match key.as_str() {
                "index-url" => found.index(Installer::Pip, word),
                "extra-index-url" => found.further_index(Installer::Pip, word),
                "find-links" => found.direct(Installer::Pip, word),
                _ => {}
            }
        }
    }
    found
}

fn pyproject(project: &Table) -> Sources {
    let tool = project.get("tool").and_then(Value::as_table);
    let of_tool = |name: &str| tool.and_then(|tool| tool.get(name)).and_then(Value::as_table);
    let tools = [("uv", Installer::Uv), ("poetry", Installer::Poetry), ("pdm", Installer::Pdm)];
    let mut found = Sources::default();
    found.installers.extend(tools.iter().filter(|(name, _)| of_tool(name).is_some()).map(|(_, installer)| *installer));
    if found.installers.is_empty() && project.contains_key("project") {
        found.installers.push(Installer::Pip);
    }
    let installer = found.installers.first().copied().unwrap_or(Installer::Pip);
    let lists = [&["project", "dependencies"][..], &["build-system", "requires"]];
    let groups = [&["project", "optional-dependencies"][..], &["dependency-groups"]];
    let listed = lists.iter().filter_map(|path| at(project, path));
    let grouped = groups.iter().filter_map(|path| at(project, path)?.as_table()).flat_map(|group| group.values());
    for requirement in listed.chain(grouped).flat_map(texts) {
        found.direct(installer, direct(requirement).unwrap_or_default());
    }
    if let Some(settings) = of_tool("uv") {
        uv(settings, &mut found);
    }
    if let Some(settings) = of_tool("poetry") {
        poetry(settings, &mut found);
    }
    for source in of_tool("pdm").and_then(|pdm| pdm.get("source")).into_iter().flat_map(tables) {
        let url = text_at(source, &["url"]).unwrap_or_default();
        match text_at(source, &["name"]) {
            Some("pypi") => found.index(Installer::Pdm, url),
            _ => found.further_index(Installer::Pdm, url),
        }
    }
    found
}

fn uv(settings: &Table, found: &mut Sources) {
    for index in settings.get("index").into_iter().flat_map(tables) {
        let url = text_at(index, &["url"]).unwrap_or_default();
        match index.get("default").and_then(Value::as_bool) {
            Some(true) => found.index(Installer::Uv, url),
            _ => found.further_index(Installer::Uv, url),
        }
    }
    for part in [Some(settings), settings.get("pip").and_then(Value::as_table)].into_iter().flatten() {
        let values = |key: &str| part.get(key).into_iter().flat_map(texts);
        for url in values("index-url") {
            found.index(Installer::Uv, url);
        }
        for url in values("extra-index-url") {
            found.further_index(Installer::Uv, url);
        }
        for url in values("find-links") {
            found.direct(Installer::Uv, url);
        }
    }
    let sources = settings.get("sources").and_then(Value::as_table);
    for source in sources.into_iter().flat_map(|sources| sources.values()).flat_map(tables) {
        for key in ["git", "url"] {
            found.direct(Installer::Uv, text_at(source, &[key]).unwrap_or_default());
        }
    }
}

fn poetry(settings: &Table, found: &mut Sources) {
    for source in settings.get("source").into_iter().flat_map(tables) {
        let url = text_at(source, &["url"]).unwrap_or_default();
        match text_at(source, &["priority"]) {
            Some("supplemental" | "explicit" | "secondary") => found.further_index(Installer::Poetry, url),
            _ => found.index(Installer::Poetry, url),
        }
    }
    let groups = settings.get("group").and_then(Value::as_table).into_iter().flat_map(|groups| groups.values());
    let groups = groups.filter_map(|group| group.as_table()?.get("dependencies"));
    let lists = ["dependencies", "dev-dependencies"].into_iter().filter_map(|name| settings.get(name));
    let dependencies = lists.chain(groups).filter_map(Value::as_table).flat_map(|list| list.values());
    for dependency in dependencies.flat_map(tables) {
        for key in ["git", "url"] {
            found.direct(Installer::Poetry, text_at(dependency, &[key]).unwrap_or_default());
        }
    }
}

/// The packages of a lock file with their sources.
fn locked(installer: Installer, lock: &Table) -> Sources {
    let mut found = Sources::of(installer);
    for package in lock.get("package").into_iter().flat_map(tables) {
        let Some(source) = package.get("source").and_then(Value::as_table) else { continue };
        let member = |name: &str| text_at(source, &[name]).unwrap_or_default();
        found.further_index(installer, member("registry"));
        // Poetry calls another index legacy, and has its address where others have that of a file.
        match member("type") {
            "legacy" => found.further_index(installer, member("url")),
            _ => found.direct(installer, member("url")),
        }
        found.direct(installer, member("git"));
    }
    found
}

pub(super) fn at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (last, above) = path.split_last()?;
    let inner = above.iter().try_fold(table, |table, name| table.get(*name)?.as_table())?;
    inner.get(*last)
}

pub(super) fn text_at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a str> {
    at(table, path)?.as_str()
}

/// The texts of a value: itself, or those of its list.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The tables of a value: itself, or those of its list.
fn tables(value: &Value) -> Vec<&Table> {
    match value {
        Value::Table(table) => vec![table],
        Value::Array(items) => items.iter().filter_map(Value::as_table).collect(),
        _ => Vec::new(),
    }
}
