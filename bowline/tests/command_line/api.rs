//! Any method by its name.

use bowline_testkit::{Engine, TestServer};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Terminal, ended, text};

/// An organization with an owner at the terminal.
async fn owner(server: &TestServer) -> (String, Terminal) {
    let organization = server.organization("acme").await;
    let terminal = Terminal::new(server);
    terminal.sign_in_as(&server.actor("owner", &organization).await);
    (organization, terminal)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_over_both_transports_are_the_same() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let parent = format!("parent={organization}");
    for (name, transport) in [("one", None), ("two", Some("--rest"))] {
        let name = format!("group.name=team-{name}");
        let mut create = vec!["api", "CreateGroup", "-f", &parent, "-f", &name, "-f", "group.description=a b&c"];
        create.extend(transport);
        let made = terminal.json(&create).await;
        let uid = made["uid"].as_str().expect("a UIDP").to_owned();
        let mut update = vec!["api", "UpdateGroup", "--input", "-", "-f", "update_mask=description"];
        update.extend(transport);
        let request = json!({ "group": { "uid": uid, "description": "new" } }).to_string();
        ended(&terminal.run_with(&update, request.as_bytes()).await, 0);
        let mut get = vec!["api", "GroupsService.GetGroup", "-f"];
        let field = format!("uid={uid}");
        get.push(&field);
        get.extend(transport);
        let got = terminal.json(&get).await;
        assert_eq!((&got["uid"], &got["description"]), (&json!(uid), &json!("new")));
    }
    let filter = format!("uidp.children_of={organization}");
    let list = ["api", "ListGroups", "-f", &filter, "-f", "page_size=1", "--paginate", "--jsonpath"];
    for transport in [&[][..], &["--rest"]] {
        let listed = ended(&terminal.run(&[&list[..], &["{.groups[*].name}"], transport].concat()).await, 0);
        let mut pages: Vec<&str> = listed.lines().collect();
        pages.sort_unstable();
        assert_eq!(pages, ["team-one", "team-two"], "a page each");
    }
    let jq = [&list[..7], &["--jq", ".groups[].name"]].concat();
    let by_jq = ended(&terminal.run(&jq).await, 0);
    assert_eq!(by_jq.lines().collect::<std::collections::BTreeSet<_>>(), ["team-one", "team-two"].into(), "{by_jq}");
    let yaml = ended(&terminal.run(&["api", "ListGroups", "-f", &filter, "-o", "yaml"]).await, 0);
    assert!(yaml.contains("groups:\n- createTime: \"2") && yaml.contains("  description: new\n"), "{yaml}");
    let deleted = terminal.run(&["api", "DeleteGroup", "-f", &format!("uid={organization}")]).await;
    ended(&deleted, 1);
    assert!(text(&deleted.stderr).contains("\nhint: "), "{}", text(&deleted.stderr));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slips_are_named_with_what_was_meant() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, terminal) = owner(&server).await;
    for (arguments, named) in [
        (&["api", "ListGrups"][..], "did you mean ListGroups?"),
        (&["api", "CreateRepo"], "several methods are called CreateRepo"),
        (&["api", "ListGroups", "-f", "nam=x"], "unknown field `nam` of ListGroupsRequest; did you mean name?"),
        (&["api", "ListGroups", "-f", "uidp.in_rot=true"], "did you mean in_root?"),
        (&["api", "ListGroups", "-f", "uidp.in_root=yes"], "neither true nor false"),
        (&["api", "ListGroups", "-f", "name"], "look like group.name=acme"),
        (&["api", "ListGroups", "-f", "page_size=many"], "page_size"),
        (&["api", "GetGroup", "-f", "uid=x", "--paginate"], "GroupsService.GetGroup has no pages"),
        (&["api", "ListGroups", "-o", "jsn"], "did you mean json?"),
        (&["api", "ListGroups", "--jsonpath", "{.groups"], "without its `}`"),
        (&["api", "ListGroups", "--jq", ".groups["], "not a jq filter"),
        (&["api", "ListGroups", "--jq", ".", "-o", "yaml"], "cannot be used with"),
        (&["api"], "<METHOD>"),
    ] {
        let refused = terminal.run(arguments).await;
        ended(&refused, 2);
        let message = text(&refused.stderr).replace("pageSize", "page_size");
        assert!(message.contains(named), "{arguments:?}: {message}");
    }
    let wrong = terminal.run_with(&["api", "CreateGroup", "--input", "-"], br#"{"group": {"nme": "x"}}"#).await;
    ended(&wrong, 2);
    assert!(
        text(&wrong.stderr).contains("unknown field `nme` of Group; did you mean name?"),
        "{}",
        text(&wrong.stderr)
    );
    let absent = terminal.run(&["api", "ListGroups", "--jsonpath", "{.group}"]).await;
    ended(&absent, 1);
    assert!(text(&absent.stderr).contains("did you mean groups?"), "{}", text(&absent.stderr));
    ended(&terminal.run(&["api", "GetGroup", "-f", &format!("uid={}", "ab".repeat(20))]).await, 4);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_can_be_read() {
    let server = TestServer::start(Engine::Sqlite).await;
    let terminal = Terminal::new(&server);
    let listed = ended(&terminal.run(&["api", "--list"]).await, 0);
    for method in server.server().parts().contract.methods() {
        assert!(listed.contains(&method.full_name), "{} is not listed", method.full_name);
    }
    let part = ended(&terminal.run(&["api", "--list", "watch"]).await, 0);
    assert_eq!(part.lines().nth(1).and_then(|line| line.split('\t').nth(1)), Some("GET /audit/v1/entries:watch"));
    let described = ended(&terminal.run(&["api", "--describe", "UpdateRole"]).await, 0);
    for line in ["REST      PATCH /iam/v2/roles/{role.uid=**} (body: role)", "roles.update at role.uid", "role.name "] {
        assert!(described.contains(line), "{line}: {described}");
    }
    // No one needs to sign in for what is public.
    assert!(ended(&terminal.run(&["api", "v2.PingService.Ping"]).await, 0).contains('{'));
    server.stop().await;
}

/// A method of every service that has a handler is called by its name, with an empty request. That every method has a
/// name and a request is tested with the lookup, in the command line's own crate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_service_can_be_called() {
    let server = TestServer::start(Engine::Sqlite).await;
    let contract = server.server().parts().contract.clone();
    let (_, terminal) = owner(&server).await;
    let implemented = bowline_services::implemented(&contract);
    let mut wrong = Vec::new();
    let service = |index: usize| contract.method(index).grpc_path.rsplit_once('/').map(|(service, _)| service);
    let mut services = std::collections::BTreeSet::new();
    let first = implemented.iter().copied().filter(|index| services.insert(service(*index)));
    for (at, index) in first.collect::<Vec<_>>().into_iter().enumerate() {
        let method = contract.method(index);
        // Streams without a scope are refused like the others; a path without its variable is another route.
        let rest = (at % 4 == 0 && !method.bindings.is_empty()).then_some("--rest");
        let mut arguments = vec!["api", &method.full_name];
        arguments.extend(rest);
        let output = terminal.run(&arguments).await;
        let message = text(&output.stderr);
        let is_response = match output.status.code() {
            Some(0) => true,
            Some(1 | 3 | 4 | 6) => message.starts_with("error: ") && message.contains("\nhint: "),
            Some(5) => rest.is_some(),
            _ => false,
        };
        if !is_response || message.contains("defect") {
            wrong.push(format!("{arguments:?}: {:?} {message}", output.status.code()));
        }
    }
    server.stop().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A proxy that forwards HTTP/1.1 and nothing else: to anything else it responds as such proxies do.
async fn old_proxy(server: &TestServer) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let target = server.base().trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let target = target.clone();
            tokio::spawn(async move {
                let mut first = [0; 3];
                if client.read_exact(&mut first).await.is_err() {
                    return;
                }
                if &first == b"PRI" {
                    let refusal = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                    let _ = client.write_all(refusal).await;
                    // Closing with unread bytes would reset the connection, and the response be lost.
                    let _ = tokio::io::copy(&mut client, &mut tokio::io::sink()).await;
                    return;
                }
                let mut upstream = tokio::net::TcpStream::connect(target).await.expect("the server listens");
                upstream.write_all(&first).await.expect("the server reads");
                let _ = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
            });
        }
    });
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_pass_a_proxy_without_http2() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let proxy = old_proxy(&server).await;
    let token = terminal.home.path().join("token");
    let kept = std::fs::read(terminal.kept(&terminal.api, "oidc-token")).expect("a token");
    std::fs::write(&token, kept).expect("a file is written");
    let token = token.to_str().expect("UTF-8").to_owned();
    let behind = Terminal { home: tempfile::tempdir().expect("a directory"), api: proxy };
    let made = behind.run(&["registry", "repos", "create", "acme/nginx", "--token-file", &token]).await;
    assert!(ended(&made, 0).starts_with(&organization));
    let listed = ended(&behind.run(&["registry", "repos", "list", "acme", "--token-file", &token]).await, 0);
    assert!(listed.contains("\tnginx\t"), "{listed}");
    let missing = behind.run(&["registry", "repos", "get", "acme/none", "--token-file", &token]).await;
    ended(&missing, 6);
    server.stop().await;
}
