//! The tools of MCP: each line of standard output is a message of the protocol.

use std::process::Stdio;

use bowline_testkit::{Engine, TestServer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::support::{Terminal, ended, text};

/// A client at the program's pipes.
struct Client {
    running: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    id: u64,
}

impl Client {
    async fn start(terminal: &Terminal, arguments: &[&str]) -> Client {
        let mut command = terminal.command();
        command.arg("mcp").args(arguments).args(["--api", &terminal.api]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().expect("the binary runs");
        let input = running.stdin.take().expect("a pipe");
        let output = BufReader::new(running.stdout.take().expect("a pipe")).lines();
        let mut client = Client { running, input, output, id: 0 };
        let info = json!({ "name": "test", "version": "1" });
        let begin = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
        let begun = client.call("initialize", begin).await;
        assert_eq!(begun["result"]["serverInfo"]["name"], "bowline", "{begun}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.expect("the message is read");
    }

    /// The response to a call; every line before it is a message too.
    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        loop {
            let line = self.output.next_line().await.expect("a line").expect("the program responds");
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if message["id"] == id {
                return message;
            }
        }
    }

    async fn tools(&mut self) -> Vec<Value> {
        let listed = self.call("tools/list", json!({})).await;
        listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}")).clone()
    }

    /// Whether the tool failed, and its text.
    async fn tool(&mut self, name: &str, arguments: Value) -> (bool, String) {
        let called = self.call("tools/call", json!({ "name": name, "arguments": arguments })).await;
        let result = &called["result"];
        let content = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{called}")).to_owned();
        (result["isError"] == true, content)
    }

    /// Ends the conversation as clients do; the program ends by itself, and nothing is left on its output.
    async fn end(mut self) {
        drop(self.input);
        assert_eq!(self.output.next_line().await.expect("the end"), None);
        assert!(self.running.wait().await.expect("the program ends").success());
    }
}

async fn owner(server: &TestServer) -> (String, Terminal) {
    let organization = server.organization("acme").await;
    let terminal = Terminal::new(server);
    terminal.sign_in_as(&server.actor("owner", &organization).await);
    (organization, terminal)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_methods_are_tools() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    for name in ["one", "two", "three"] {
        server.group(&organization, name).await;
    }
    let mut client = Client::start(&terminal, &["--verbose"]).await;
    let tools = client.tools().await;
    assert!(tools.len() > 60, "{}", tools.len());
    for tool in &tools {
        let hints = &tool["annotations"];
        assert_eq!((&hints["readOnlyHint"], &hints["destructiveHint"]), (&json!(true), &json!(false)), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 10), "{tool}");
    }
    let list = tools.iter().find(|tool| tool["name"] == "iam_list_groups").expect("a tool");
    assert!(list["inputSchema"]["properties"]["pageToken"]["description"].is_string(), "{list}");

    let filter = json!({ "childrenOf": organization });
    let (failed, page) = client.tool("iam_list_groups", json!({ "uidp": filter, "pageSize": 2 })).await;
    let page: Value = serde_json::from_str(&page).unwrap_or_else(|error| panic!("{error}: {page}"));
    let token = page["nextPageToken"].as_str().expect("a token");
    assert_eq!((failed, page["groups"].as_array().map(Vec::len)), (false, Some(2)));
    let (_, next) = client.tool("iam_list_groups", json!({ "uidp": filter, "pageSize": 2, "page_token": token })).await;
    assert_eq!(serde_json::from_str::<Value>(&next).expect("JSON")["groups"].as_array().map(Vec::len), Some(1));

    for (name, arguments, named) in [
        ("iam_list_groups", json!({ "nmae": "x" }), "did you mean name?"),
        ("iam_list_groups", json!({ "pageSize": "many" }), "page"),
        ("iam_get_group", json!({ "uid": "ab".repeat(20) }), "hint: "),
    ] {
        let (failed, message) = client.tool(name, arguments).await;
        assert!(failed && message.contains(named), "{name}: {message}");
    }
    // What changes something is no tool, and neither is what no one knows.
    for name in ["iam_create_group", "iam_lsit_groups"] {
        let called = client.call("tools/call", json!({ "name": name, "arguments": {} })).await;
        assert!(called["error"]["message"].as_str().is_some_and(|text| text.contains(name)), "{called}");
    }
    client.end().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writing_methods_are_tools_where_that_is_allowed() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let mut client = Client::start(&terminal, &["--allow-writes", "--domains", "iam"]).await;
    let tools = client.tools().await;
    assert!(tools.iter().all(|tool| tool["name"].as_str().is_some_and(|name| name.starts_with("iam_"))));
    let delete = tools.iter().find(|tool| tool["name"] == "iam_delete_group").expect("a tool");
    assert_eq!(
        (&delete["annotations"]["readOnlyHint"], &delete["annotations"]["destructiveHint"]),
        (&json!(false), &json!(true))
    );
    let create = json!({ "parent": organization, "group": { "name": "made" } });
    let (failed, made) = client.tool("iam_create_group", create).await;
    assert!(!failed, "{made}");
    let uid = serde_json::from_str::<Value>(&made).expect("JSON")["uid"].clone();
    let (failed, message) = client.tool("iam_delete_group", json!({ "uid": uid })).await;
    assert!(!failed, "{message}");
    client.end().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_have_the_rights_of_the_caller() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    // No one is signed in: the tools are listed, and each says what to do.
    let nobody_yet = Terminal::new(&server);
    let mut client = Client::start(&nobody_yet, &[]).await;
    assert!(!client.tools().await.is_empty());
    let (failed, message) = client.tool("iam_list_groups", json!({})).await;
    assert!(failed && message.contains("bowline auth login"), "{message}");
    // A sign-in meanwhile counts.
    nobody_yet.sign_in_as(&server.actor("viewer", &organization).await);
    let (failed, message) = client.tool("iam_list_groups", json!({})).await;
    assert!(!failed && message.contains("acme"), "{message}");
    client.end().await;
    let operator = server.operator().await.token.expect("a token");
    let file = terminal.home.path().join("operator");
    std::fs::write(&file, operator).expect("a file is written");
    let mut client = Client::start(&nobody_yet, &["--token-file", file.to_str().expect("UTF-8")]).await;
    assert!(client.tools().await.iter().any(|tool| tool["name"] == "operator_get_health"));
    client.end().await;

    for (arguments, named) in [
        (&["mcp", "--token-file", "-"][..], "standard input carries the protocol"),
        (&["mcp", "--domains", "iaam"], "did you mean iam?"),
    ] {
        let refused = terminal.run(arguments).await;
        ended(&refused, 2);
        assert!(text(&refused.stderr).contains(named), "{}", text(&refused.stderr));
    }
    server.stop().await;
}
