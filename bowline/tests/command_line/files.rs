//! Generic files, published and downloaded by the command line.

use bowline_testkit::{Engine, TestServer};

use crate::support::{Terminal, ended, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_downloaded_as_they_were_published_and_replace_none() {
    let server = TestServer::start(Engine::Sqlite).await;
    let organization = server.organization("acme").await;
    let owner = Terminal::new(&server);
    owner.sign_in_as(&server.actor("owner", &organization).await);
    let path = |name: &str| owner.home.path().join(name).to_str().expect("UTF-8").to_owned();
    for (name, content) in [("tool", "the tool"), ("notes", "the notes")] {
        std::fs::write(path(name), content).expect("a file is written");
    }
    let publish = ["libraries", "publish", "files", "pkg:generic/tool@1.2.0", &path("tool"), &path("notes")];
    ended(&owner.run(&publish).await, 0);

    let out = path("out");
    let download = async |more: &[&str]| owner.run(&[&["libraries", "download"], more, &["--to", &out]].concat()).await;
    let first = download(&["pkg:generic/tool@1.2.0", "tool"]).await;
    ended(&first, 0);
    assert!(text(&first.stderr).contains("tool: downloaded"), "{}", text(&first.stderr));
    assert_eq!(std::fs::read_to_string(path("out/tool")).expect("a file"), "the tool");
    assert!(!std::path::Path::new(&path("out/notes")).exists(), "one path was asked for");

    let again = download(&["pkg:generic/tool@1.2.0"]).await;
    ended(&again, 0);
    assert!(text(&again.stderr).contains("tool: is there, with the same bytes"), "{}", text(&again.stderr));
    assert_eq!(std::fs::read_to_string(path("out/notes")).expect("a file"), "the notes");

    std::fs::write(path("out/tool"), "mine").expect("a file is written");
    let refused = download(&["pkg:generic/tool@1.2.0"]).await;
    ended(&refused, 1);
    assert!(text(&refused.stderr).contains("is there with other bytes, and stays"), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read_to_string(path("out/tool")).expect("a file"), "mine");

    for (what, hint) in [
        (vec!["pkg:generic/tool@9.9.9"], "`bowline libraries files list GROUP` shows what a group published"),
        (vec!["pkg:generic/other@1.2.0"], "`bowline libraries files list GROUP` shows what a group published"),
        (vec!["pkg:generic/tool@1.2.0", "absent"], "without a path, all files of the version are downloaded"),
    ] {
        let absent = download(&what).await;
        ended(&absent, 6);
        assert!(text(&absent.stderr).contains(hint), "{what:?}: {}", text(&absent.stderr));
    }
}
