//! Any method by its name.

use bowline_cli::CliError;
use bowline_cli::api::ApiCommand;
use bowline_client::ClientError;
use bowline_contract::{Auth, MethodInfo};
use bowline_testkit::{Actor, Engine, TestServer};
use clap::{Args as _, FromArgMatches as _};
use futures_util::StreamExt as _;
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

/// Calls in flight of the test of every method.
const AT_ONCE: usize = 8;

/// How `bowline api` with these arguments ends, in this process.
async fn called_in_process(arguments: &[&str]) -> Result<(), CliError> {
    let command = ApiCommand::augment_args(clap::Command::new("api").no_binary_name(true));
    let matches = command.try_get_matches_from(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
    let command = ApiCommand::from_arg_matches(&matches).expect("the arguments are those of the command");
    bowline_cli::api::run(command).await
}

/// Why the end of a call is neither a response nor an error of the method's own.
fn not_called(method: &MethodInfo, result: &Result<(), CliError>) -> Option<String> {
    match result {
        Ok(()) => None,
        Err(CliError::Client(ClientError::Refused { code, .. })) => match code {
            12 => Some("unimplemented".into()),
            // Other methods have a token of their own, which the request lacks.
            16 if matches!(method.auth, Auth::Capabilities { .. }) => Some("unauthenticated".into()),
            _ => None,
        },
        Err(error) => Some(format!("{error:?}")),
    }
}

/// Every method that has a handler is called by its name, with an empty request: over gRPC, and over REST where the path
/// of the method needs no field. The operator calls, so that most requests reach what the method does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_method_can_be_called() {
    let server = TestServer::start(Engine::Sqlite).await;
    let contract = server.server().parts().contract.clone();
    let organization = server.organization("acme").await;
    let directory = tempfile::tempdir().expect("a directory");
    let token_of = |actor: &Actor, name: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, actor.token.as_deref().expect("a token")).expect("a file is written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let operator = token_of(&server.operator().await, "operator");
    let owner = token_of(&server.actor("owner", &organization).await, "owner");
    let implemented = bowline_services::implemented(&contract);
    let calls = implemented.iter().map(|index| contract.method(*index)).flat_map(|method| {
        let is_bare = method.bindings.first().is_some_and(|binding| !binding.template.to_string().contains('{'));
        [false, true].into_iter().filter(move |rest| !rest || is_bare).map(move |rest| (method, rest))
    });
    let calls: Vec<_> = calls.collect();
    assert!(calls.len() > implemented.len() && implemented.len() > 250, "hardly any method: {}", implemented.len());
    let (base, operator, owner) = (server.base(), &operator, &owner);
    let results = futures_util::stream::iter(calls).map(|(method, rest)| async move {
        // A stream without an end is for the operator alone; to others it is refused.
        let token = if method.server_streaming && !method.finite_stream { owner } else { operator };
        let mut arguments = vec![&*method.full_name, "--api", base, "--token-file", token, "-o", "name"];
        arguments.extend(rest.then_some("--rest"));
        let result = called_in_process(&arguments).await;
        not_called(method, &result)
            .map(|why| format!("{} {}: {why}", method.full_name, if rest { "--rest" } else { "" }))
    });
    let wrong: Vec<String> = results.buffer_unordered(AT_ONCE).filter_map(|wrong| async { wrong }).collect().await;
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
