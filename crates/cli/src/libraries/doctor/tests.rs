//! Projects with ways around the package hosts, and without.

use super::project::File;
use super::*;

fn hosts() -> Url {
    Url::parse("https://packages.example/libraries").expect("an address")
}

fn file(name: &str, text: &str) -> File {
    let found = sources::read(name, text).unwrap_or_else(|| panic!("{name} is not read"));
    File::new(name, text.to_owned(), found)
}

/// File, line and source of each way around.
fn examined(files: &[File], home: Vec<File>) -> Vec<String> {
    with(files, &Settings { environment: Vec::new(), home })
}

fn with(files: &[File], settings: &Settings) -> Vec<String> {
    let shown = |Bypass { file, line, source, .. }: &Bypass| {
        format!("{file}:{}:{source}", line.map(|line| line.to_string()).unwrap_or_default())
    };
    examine(&hosts(), files, settings).iter().map(shown).collect()
}

const OWN: &str = "https://packages.example/libraries";

#[test]
fn a_project_that_uses_the_hosts_alone_has_no_way_around() {
    let npmrc = format!("registry={OWN}/javascript/~acme:web/\n");
    let requirements = format!("--index-url {OWN}/python/simple/\nflask==3.0  # a comment\n-e ./lib\n-r other.txt\n");
    let uv = format!(
        "[project]\nname = \"a\"\ndependencies = [\"flask>=3\"]\n[[tool.uv.index]]\nurl = \"{OWN}/python/simple/\"\ndefault = true\n"
    );
    let files = [
        file(".npmrc", &npmrc),
        file(
            "package.json",
            r#"{ "dependencies": { "a": "^1.0.0", "b": "file:../b", "c": "npm:d@1", "e": "workspace:*" } }"#,
        ),
        file(
            "package-lock.json",
            r#"{ "packages": { "": {}, "node_modules/a": { "resolved": "https://any.npmjs.org/a.tgz" } } }"#,
        ),
        file("requirements.txt", &requirements),
        file("service/pyproject.toml", &uv),
    ];
    assert_eq!(examined(&files, Vec::new()), Vec::<String>::new());
}

#[test]
fn further_indexes_and_sources_without_one_are_found_in_python() {
    let requirements = format!(
        "--index-url {OWN}/python/simple/\n--extra-index-url https://user:secret@pypi.org/simple\n\
         --extra-index-url=https://other.example/simple\nfoo @ https://files.example/foo.whl ; python_version > '3'\n\
         git+https://github.com/a/b@main#egg=b\n"
    );
    let found = examined(&[file("requirements-dev.txt", &requirements)], Vec::new());
    let wanted = [
        "requirements-dev.txt:2:https://pypi.org/simple",
        "requirements-dev.txt:3:https://other.example/simple",
        "requirements-dev.txt:4:https://files.example/foo.whl",
        "requirements-dev.txt:5:git+https://github.com/a/b@main#egg=b",
    ];
    assert_eq!(found, wanted);

    let project = format!(
        "[project]\nname = \"a\"\ndependencies = [\"b @ git+https://git.example/b\"]\n[dependency-groups]\ndev = \
         [\"c@https://files.example/c.whl\"]\n[tool.uv]\nextra-index-url = [\"https://pypi.org/simple\"]\n[[tool.uv.index]]\nname \
         = \"torch\"\nurl = \"https://torch.example/whl\"\nexplicit = true\n[[tool.uv.index]]\nurl = \"{OWN}/python/simple/\"\n\
         default = true\n[tool.uv.sources]\nd = {{ git = \"https://git.example/d\" }}\ne = {{ path = \"../e\" }}\n"
    );
    let sources: Vec<String> = examine(&hosts(), &[file("pyproject.toml", &project)], &Settings::default())
        .into_iter()
        .map(|one| one.source)
        .collect();
    let wanted = [
        "git+https://git.example/b",
        "https://files.example/c.whl",
        "https://torch.example/whl",
        "https://pypi.org/simple",
        "https://git.example/d",
    ];
    assert_eq!(sources, wanted);

    let lock = "[[package]]\nname = \"a\"\nsource = { registry = \"https://pypi.org/simple\" }\n[[package]]\nname = \"b\"\nsource = { editable = \".\" }\n";
    assert_eq!(examined(&[file("uv.lock", lock)], Vec::new())[0], "uv.lock:3:https://pypi.org/simple");
    let poetry = "[[package]]\nname = \"a\"\n[package.source]\ntype = \"git\"\nurl = \"https://git.example/a\"\n";
    assert_eq!(examined(&[file("poetry.lock", poetry)], Vec::new())[0], "poetry.lock:5:https://git.example/a");
}

#[test]
fn registries_and_repositories_are_found_in_javascript() {
    let manifest = r#"{ "dependencies": { "a": "github:o/a", "b": "o/b#main", "c": "https://h.example/c.tgz", "d": "git@h.example:d.git" } }"#;
    let found = examined(&[file("package.json", manifest)], Vec::new());
    let of = |source: &str| format!("package.json:1:{source}");
    let missing = "package.json::".to_owned();
    assert_eq!(
        found,
        [of("github:o/a"), of("o/b#main"), of("https://h.example/c.tgz"), of("git@h.example:d.git"), missing]
    );

    let npmrc =
        format!("registry={OWN}/javascript/\n@acme:registry=https://npm.example/\n//npm.example/:_authToken=secret\n");
    assert_eq!(examined(&[file(".npmrc", &npmrc)], Vec::new()), [".npmrc:2:https://npm.example/"]);
    // A registry of one scope leaves all others where they are.
    let scoped = format!("@acme:registry={OWN}/javascript/\n");
    assert_eq!(examined(&[file(".npmrc", &scoped)], Vec::new()), [".npmrc::"]);
    let yarnrc = format!(
        "npmRegistryServer: \"{OWN}/javascript/\"\nnpmScopes:\n  acme:\n    npmRegistryServer: https://npm.example\n"
    );
    assert_eq!(examined(&[file(".yarnrc.yml", &yarnrc)], Vec::new()), [".yarnrc.yml:4:https://npm.example"]);
    let bunfig = "[install]\nregistry = { url = \"https://npm.example\", token = \"secret\" }\n";
    assert_eq!(examined(&[file("bunfig.toml", bunfig)], Vec::new())[0], "bunfig.toml:2:https://npm.example");
    let settings = vec![file("~/.npmrc", &format!("registry={OWN}/javascript/\n"))];
    let locks = [
        file("a/yarn.lock", "# yarn lockfile v1\na@1:\n  resolved \"https://registry.yarnpkg.com/a/-/a-1.tgz#abc\"\n"),
        file(
            "b/pnpm-lock.yaml",
            "packages:\n  b@1:\n    resolution: {integrity: sha512-x, tarball: https://npm.example/b.tgz}\n",
        ),
        file(
            "c/package-lock.json",
            "{ \"packages\": { \"c\": {\n \"resolved\": \"git+ssh://git@github.com/o/c.git#1\" } } }",
        ),
    ];
    let wanted = [
        "a/yarn.lock:3:https://registry.yarnpkg.com/a/-/a-1.tgz",
        "b/pnpm-lock.yaml:3:https://npm.example/b.tgz",
        "c/package-lock.json:2:git+ssh://github.com/o/c.git#1",
    ];
    assert_eq!(examined(&locks, settings), wanted);
}

#[test]
fn a_mirror_of_everything_replaces_the_repositories_of_java() {
    let pom = "<project><repositories>\n<repository><url>https://repo.example/m2</url></repository></repositories>\n\
               <!-- <repositories><url>https://old.example</url></repositories> -->\n<distributionManagement><repository>\
               <url>https://publish.example</url></repository></distributionManagement></project>";
    let build = "repositories {\n  mavenCentral()\n  // google()\n  maven { url 'https://repo.example/m2' }\n}\n";
    let files = [file("app/build.gradle", build), file("pom.xml", pom)];
    let wanted = [
        "app/build.gradle:2:mavenCentral()",
        "app/build.gradle:4:https://repo.example/m2",
        "pom.xml:2:https://repo.example/m2",
        "pom.xml::",
        "app/build.gradle::",
    ];
    assert_eq!(examined(&files, Vec::new()), wanted);
    let mirror = |of: &str| {
        format!(
            "<settings><mirrors><mirror><mirrorOf>{of}</mirrorOf><url>{OWN}/java/</url></mirror></mirrors></settings>"
        )
    };
    let settings = vec![
        file("~/.m2/settings.xml", &mirror("*")),
        file("~/.gradle/init.d/bowline.gradle", &format!("  repositories.maven {{\n url = uri('{OWN}/java/')\n}}\n")),
    ];
    assert_eq!(examined(&files, settings), Vec::<String>::new());
    assert_eq!(examined(&files[1..], vec![file("~/.m2/settings.xml", &mirror("central"))]).len(), 2);
}

#[test]
fn addresses_that_only_begin_like_the_hosts_are_others() {
    for other in [
        "https://packages.example.evil/libraries/python/",
        "https://packages.example/libraries-of-others/python/",
        "http://packages.example/libraries/python/",
        "https://packages.example:8443/libraries/python/",
        "https://packages.example@evil.example/libraries/python/",
        "https://packages.example/libraries/../other/",
        "packages.example/libraries/python/",
        "",
    ] {
        assert!(!is_of(&hosts(), other), "{other}");
    }
    assert!(is_of(&hosts(), "https://user:token@packages.example/libraries/python/simple/"));
    assert!(is_of(
        &Url::parse("https://packages.example").expect("an address"),
        "https://packages.example/python/simple/"
    ));
}

#[test]
fn a_file_that_cannot_be_read_is_no_clean_one_and_nothing_secret_is_shown() {
    let found = examined(&[file("pyproject.toml", "not = = toml"), file("package.json", "{")], Vec::new());
    assert_eq!(found, ["pyproject.toml::", "package.json::"]);
    assert_eq!(shown("https://user:secret@h.example/x"), "https://h.example/x");
    assert_eq!(shown("git+https://token@h.example"), "git+https://h.example");
    assert_eq!(shown("a\u{1b}[31m"), "a [31m");
}

#[test]
fn proxies_of_go_are_found_in_its_settings() {
    let module = || file("go.mod", "module acme.example/app\n");
    assert_eq!(examined(&[module()], Vec::new()), ["go.mod::"], "the public proxy");
    let set = |text: &str| {
        let found = super::go::settings(text);
        examined(&[module()], vec![File::new("~/.config/go/env", text.to_owned(), Ok(found))])
    };
    let none: [&str; 0] = [];
    assert_eq!(set(&format!("GOPROXY={OWN}/go\nGONOSUMDB=acme.example/*\n")), none);
    assert_eq!(set(&format!("GOPROXY={OWN}/go,direct\n")), ["~/.config/go/env:1:direct"]);
    let other = format!("GOPROXY={OWN}/go|https://go.example,off,direct\nGOPRIVATE=acme.example\n");
    assert_eq!(set(&other), ["~/.config/go/env:1:https://go.example", "~/.config/go/env:2:acme.example"]);
}

/// Settings by which all crates come from the package hosts.
fn replacing() -> String {
    format!("[registries.bowline]\nindex = \"sparse+{OWN}/cargo/\"\n[source.crates-io]\nreplace-with = \"bowline\"\n")
}

#[test]
fn registries_of_crates_are_found_in_settings_of_cargo() {
    let manifest = || file("Cargo.toml", "[dependencies]\nserde = \"1\"\nb = { path = \"../b\" }\n");
    assert_eq!(examined(&[manifest()], Vec::new()), ["Cargo.toml::"], "the public registry");
    let set = |text: &str| examined(&[file("a/.cargo/config.toml", text), manifest()], Vec::new());
    let more = |text: &str| set(&format!("{}{text}", replacing()));
    let none: [&str; 0] = [];
    assert_eq!(more(""), none);
    let other = "[registries.other]\nindex = \"https://git.example/index\"\n";
    assert_eq!(more(other), ["a/.cargo/config.toml:6:https://git.example/index"]);
    let replaced =
        format!("{other}[source.other]\nregistry = \"https://git.example/index\"\nreplace-with = \"bowline\"\n");
    assert_eq!(more(&replaced), none);
    // The registry is set, and nothing leads to it.
    assert_eq!(set(&format!("[registries.bowline]\nindex = \"sparse+{OWN}/cargo/\"\n")), ["a/.cargo/config.toml::"]);
    for (address, shown) in [
        ("registry = \"sparse+https://crates.example/\"", "https://crates.example/"),
        ("directory = \"third-party\"", "third-party"),
    ] {
        let elsewhere = format!(
            "[source.crates-io]\nreplace-with = \"one\"\n[source.one]\nreplace-with = \"two\"\n[source.two]\n{address}\n"
        );
        assert_eq!(set(&elsewhere), [format!("a/.cargo/config.toml:6:{shown}"), "a/.cargo/config.toml::".into()]);
    }

    let home = tempfile::tempdir().expect("a directory");
    std::fs::write(home.path().join("config.toml"), replacing()).expect("a file is written");
    let settings = || settings::of_cargo(home.path(), "$CARGO_HOME").expect("the files are read");
    assert_eq!(examined(&[manifest()], settings()), none);
    let flags = file(".cargo/config", "[build]\njobs = 2\n");
    assert_eq!(examined(&[flags, manifest()], settings()), none);
}

#[test]
fn crates_of_repositories_and_other_registries_are_found() {
    let manifest = "[workspace.dependencies]\na = { git = \"https://git.example/a\", tag = \"v1\" }\n\
                    [target.'cfg(unix)'.dev-dependencies.b]\ngit = \"ssh://git@git.example/b\"\n[patch.crates-io]\n\
                    c = { git = \"https://git.example/c\" }\nd = { path = \"d\" }\n[build-dependencies]\n\
                    e = { version = \"1\", registry-index = \"sparse+https://crates.example/\" }\n";
    let settings = || vec![file("~/.cargo/config.toml", &replacing())];
    let wanted = [
        "Cargo.toml:9:https://crates.example/",
        "Cargo.toml:2:https://git.example/a",
        "Cargo.toml:4:ssh://git.example/b",
        "Cargo.toml:6:https://git.example/c",
    ];
    assert_eq!(examined(&[file("Cargo.toml", manifest)], settings()), wanted);

    let public = concat!("registry+https://github.com/rust-lang/crates", ".io-index");
    let locked = |name: &str, source: &str| format!("[[package]]\nname = \"{name}\"\nsource = \"{source}\"\n");
    let lock = [
        "version = 4\n[[package]]\nname = \"app\"\nversion = \"0.1.0\"\n".to_owned(),
        locked("a", public),
        locked("b", "git+https://git.example/b?branch=main#0123"),
        locked("c", "sparse+https://crates.example/index/"),
        locked("d", &format!("sparse+{OWN}/cargo/~acme/")),
    ];
    let wanted = ["Cargo.lock:10:https://git.example/b", "Cargo.lock:13:https://crates.example/index/"];
    assert_eq!(examined(&[file("Cargo.lock", &lock.concat())], settings()), wanted);
}

#[test]
fn settings_count_for_installers_of_the_project() {
    let variables = |name: &str| match name {
        "PIP_EXTRA_INDEX_URL" => Some("https://one.example/simple https://two.example/simple".to_owned()),
        "UV_INDEX" => Some("torch=https://torch.example/whl".to_owned()),
        "npm_config_registry" => Some(format!("{OWN}/javascript/")),
        _ => None,
    };
    let home = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory is made");
        std::fs::write(path, text).expect("a file is written");
    };
    write(
        ".config/pip/pip.conf",
        &format!("[global]\nindex-url = {OWN}/python/simple/\nextra-index-url =\n  https://three.example/simple\n"),
    );
    write(".npmrc", "registry=https://npm.example/\n");
    write(".gradle/init.d/other.gradle", "repositories { mavenCentral() }\n");
    let settings = Settings {
        environment: settings::of_environment(&variables),
        home: settings::of_home(home.path()).expect("the files are read"),
    };
    let pip = with(&[file("requirements.txt", "flask==3\n")], &settings);
    let wanted = [
        "$PIP_EXTRA_INDEX_URL::https://one.example/simple",
        "$PIP_EXTRA_INDEX_URL::https://two.example/simple",
        "~/.config/pip/pip.conf:4:https://three.example/simple",
    ];
    assert_eq!(pip, wanted);
    assert_eq!(with(&[file("package.json", "{}")], &settings), Vec::<String>::new(), "the environment goes first");
    let uv = with(&[file("uv.lock", "package = []\n")], &settings);
    assert_eq!(uv, ["$UV_INDEX::https://torch.example/whl", "uv.lock::"]);
    let gradle = with(&[file("build.gradle", "")], &settings);
    assert_eq!(gradle, ["~/.gradle/init.d/other.gradle:1:mavenCentral()", "build.gradle::"]);
}

#[test]
fn what_was_installed_is_not_the_project() {
    let project = tempfile::tempdir().expect("a directory");
    for (name, text) in [
        ("a/package.json", "{}"),
        ("a/node_modules/b/package.json", "{"),
        (".git/requirements.txt", "x"),
        (".cargo/config.toml", ""),
        (".cargo/registry/src/Cargo.toml", ""),
        ("a/config.toml", ""),
    ] {
        let path = project.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory is made");
        std::fs::write(path, text).expect("a file is written");
    }
    let names: Vec<String> =
        project::files(project.path()).expect("it is read").into_iter().map(|file| file.name).collect();
    assert_eq!(names, [".cargo/config.toml", "a/package.json"]);
    assert!(project::files(&project.path().join("absent")).is_err());
}

#[test]
fn locked_files_of_one_host_are_one_way_around() {
    let entry = |name: &str, host: &str| format!("{name}@1:\n  resolved \"https://{host}/{name}.tgz#x\"\n");
    let lock: String = (0..20_000).map(|number| entry(&format!("a{number}"), "npm.example")).collect();
    let lock = format!("# yarn lockfile v1\n{lock}{}", entry("b", "other.example"));
    let project = [file("yarn.lock", &lock), file(".npmrc", &format!("registry={OWN}/javascript/\n"))];
    let wanted = ["yarn.lock:3:https://npm.example/a0.tgz", "yarn.lock:40003:https://other.example/b.tgz"];
    assert_eq!(examined(&project, Vec::new()), wanted);
}
