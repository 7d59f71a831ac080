//! The server of the protocol: lists tools, and calls the method of one.

use std::sync::{Arc, Mutex, PoisonError};

use bowline_client::{Api, ClientError, claims};
use bowline_contract::{Contract, Docs, MethodInfo, ToolHints};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};

use super::tools::{self, Selection};
use crate::dynamic;
use crate::error::CliError;
use crate::session::{OPERATOR, Session};

/// Elements of a page, if the call does not say how many: a model reads all of them.
const PAGE_SIZE: u64 = 25;
/// Largest result, in bytes.
const RESULT_BYTES: usize = 256 << 10;

const INSTRUCTIONS: &str = "\
Tools are methods of the API of a Bowline server: identities and access, container images, vulnerabilities, libraries, \
events and the audit log. Resources are named by UIDPs, hexadecimal paths that lists return as `uid`; `search_search` and \
filters such as `name` find them by name. Lists return a page: pass its `nextPageToken` as `pageToken` to get the next one. \
`iam_explain_access` says why a call was refused.";

/// Serves the tools of one session.
pub(super) struct ToolServer {
    contract: Arc<Contract>,
    session: Session,
    selection: Selection,
    /// The client of the last call, and its token: each client reads the machine's certificates.
    api: Mutex<Option<(String, Api)>>,
}

impl ToolServer {
    /// A server of the selected tools.
    ///
    /// # Errors
    /// A domain is unknown.
    pub(super) async fn new(session: Session, writes: bool, domains: Vec<String>) -> Result<ToolServer, ClientError> {
        let contract = Contract::load();
        // Without a sign-in the tools are listed all the same; each call says what to do.
        let subject = session.token(&session.api).await.ok().and_then(|token| Some(claims(&token)?.sub));
        let selection = Selection { writes, domains, operator: subject.as_deref() == Some(OPERATOR) };
        selection.validate(&contract)?;
        Ok(ToolServer { contract, session, selection, api: Mutex::default() })
    }

    fn tools(&self) -> Vec<Tool> {
        let docs = Docs::load();
        let methods = self.contract.methods().iter();
        methods.filter_map(|method| Some(tool(&self.contract, &docs, method, self.selection.hints(method)?))).collect()
    }

    fn method(&self, name: &str) -> Option<&MethodInfo> {
        let mut methods = self.contract.methods().iter();
        methods.find(|method| self.selection.hints(method).is_some() && tools::name(&self.contract, method) == name)
    }

    /// A client with a token that is valid now: the sign-in may have been renewed or changed since the last call.
    async fn api(&self) -> Result<Api, ClientError> {
        let token = self.session.token(&self.session.api).await?;
        if let Some((last, api)) = self.api.lock().unwrap_or_else(PoisonError::into_inner).as_ref()
            && *last == token
        {
            return Ok(api.clone());
        }
        let api = self.session.api_with(token.clone())?;
        *self.api.lock().unwrap_or_else(PoisonError::into_inner) = Some((token, api.clone()));
        Ok(api)
    }

    /// Calls a method; the response as the API writes it.
    async fn call(&self, method: &MethodInfo, mut request: Map<String, Value>) -> Result<String, CliError> {
        let document = Value::Object(request.clone());
        dynamic::require_known(&method.input, &document)?;
        let names_size = ["pageSize", "page_size"].iter().any(|name| request.contains_key(*name));
        if dynamic::page_token_field(method) && !names_size && method.input.get_field_by_name("page_size").is_some() {
            request.insert("page_size".into(), PAGE_SIZE.into());
        }
        let response = dynamic::call(&self.api().await?, method, &request).await?.to_string();
        if response.len() > RESULT_BYTES {
            return Err(ClientError::Usage(format!(
                "the response has {} bytes, and a tool returns {RESULT_BYTES} at most: ask for fewer elements with \
                 pageSize, or narrow the request",
                response.len()
            ))
            .into());
        }
        Ok(response)
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("bowline", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("there is no tool {}", call.name), None);
        let method = self.method(&call.name).ok_or_else(unknown)?;
        let result = match self.call(method, call.arguments.unwrap_or_default()).await {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(error) => {
                let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                CallToolResult::error(vec![ContentBlock::text(format!("{error}{hint}"))])
            }
        };
        Ok(result.into())
    }
}

fn tool(contract: &Contract, docs: &Docs, method: &MethodInfo, hints: &ToolHints) -> Tool {
    let description = if hints.description.is_empty() { docs.of(&method.full_name) } else { hints.description.clone() };
    let schema = match bowline_schemas::request(contract, docs, method) {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let annotations = ToolAnnotations::from_raw(
        None,
        Some(hints.read_only),
        hints.destructive.or(hints.read_only.then_some(false)),
        Some(hints.idempotent),
        hints.open_world,
    );
    Tool::new(tools::name(contract, method), description, schema).with_annotations(annotations)
}
