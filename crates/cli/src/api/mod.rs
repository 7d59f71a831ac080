//! `bowline api`: any method of the contract by its name.

mod describe;
mod jq;
mod list;

use std::path::{Path, PathBuf};

use bowline_client::{Api, ClientError};
use bowline_contract::{Auth, Contract, MethodInfo};
use bowline_terminal::{Form, Work};
use clap::Args;
use serde_json::{Map, Value};

use crate::error::CliError;
use crate::session::Access;
use crate::{dynamic, input, print};

/// Largest document of `--input`, in bytes.
const INPUT_BYTES: u64 = 100 << 20;

/// Elements of a page, if the request does not say how many.
const PAGE_SIZE: i32 = 200;

const EXAMPLES: &str = "\
Examples:
  bowline api --list
  bowline api --describe CreateGroup
  bowline api ListGroups -f uidp.in_root=true -o jsonpath='{.groups[*].name}'
  bowline api CreateGroup -f group.name=acme -f group.description='Rockets and anvils'
  bowline api ListTags -f uidp.descendants_of=$ORG --paginate
  bowline api UpdateRole --input role.json --rest
  bowline api ListGroups --jq '.groups[] | select(.verified) | .name'";

/// `bowline api`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ApiCommand {
    #[command(flatten)]
    access: Access,
    /// Method: its full name, or an end of it that no other method has, such as ListGroups
    #[arg(value_name = "METHOD", required_unless_present = "list")]
    method: Option<String>,
    /// Field of the request, by its path: group.name=acme; again for each element of a list; =@FILE for the text of a
    /// file
    #[arg(short, long = "field", value_name = "FIELD=VALUE")]
    fields: Vec<String>,
    /// JSON file with the request, or - for standard input; fields are added to it
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Call again for every further page; each page is a document of its own
    #[arg(long)]
    paginate: bool,
    /// Call over REST instead of gRPC
    #[arg(long)]
    rest: bool,
    /// List the methods, or those whose name contains METHOD
    #[arg(long, conflicts_with_all = ["fields", "input", "paginate", "describe"])]
    list: bool,
    /// Describe the method, its fields, and what it needs
    #[arg(long, conflicts_with_all = ["fields", "input", "paginate"])]
    describe: bool,
    /// Values of the response, such as `{.groups[*].name}`
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "output")]
    jsonpath: Option<bowline_terminal::JsonPath>,
    /// Values of the response, by a filter in the language of jq; a line each, texts without quotes
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["output", "jsonpath", "list", "describe"])]
    jq: Option<jq::Filter>,
    /// Form of the output: json, yaml, name, jsonpath=TEMPLATE; for --list also table and csv
    #[arg(short, long, value_name = "FORM")]
    output: Option<Form>,
}

/// Runs `bowline api`.
pub fn run(command: ApiCommand) -> Work<CliError> {
    Box::pin(execute(command))
}

async fn execute(command: ApiCommand) -> Result<(), CliError> {
    let contract = Contract::load();
    if command.list {
        let form = command.output.unwrap_or(Form::Table);
        return print(&list::methods(&contract, command.method.as_deref().unwrap_or_default(), &form)?);
    }
    let method = dynamic::method(&contract, command.method.as_deref().unwrap_or_default())?;
    if command.describe {
        return print(&describe::method(&contract, method));
    }
    let form = match &command.jsonpath {
        Some(template) => Form::JsonPath(template.clone()),
        None => command.output.clone().unwrap_or(Form::Json),
    };
    let mut request = request(&command.fields, command.input.as_deref(), method)?;
    let api = api(&command, method).await?;
    if method.server_streaming {
        return watch(&command, &api, method, &request, &form).await;
    }
    if command.paginate && !dynamic::page_token_field(method) {
        return Err(ClientError::Usage(format!("--paginate: {} has no pages", method.short_name())).into());
    }
    if command.paginate && method.input.get_field_by_name("page_size").is_some() {
        let is_set = ["page_size", "pageSize"].iter().any(|name| request.contains_key(*name));
        if !is_set {
            request.insert("page_size".into(), PAGE_SIZE.into());
        }
    }
    loop {
        let page = dynamic::call(&api, method, &request).await?;
        show(&command, &form, &page)?;
        let next = page.get("nextPageToken").and_then(Value::as_str).unwrap_or_default();
        if !command.paginate || next.is_empty() {
            return Ok(());
        }
        request.remove("pageToken");
        request.insert("page_token".into(), next.into());
    }
}

/// The server, called with a token unless the method takes none.
async fn api(command: &ApiCommand, method: &MethodInfo) -> Result<Api, ClientError> {
    let session = command.access.session()?;
    let api = match method.auth {
        Auth::Public => Api::new(&session.api, None)?,
        // Such a method authenticates by the token that it exchanges, if by any.
        Auth::Own => session.api().await.or_else(|_| Api::new(&session.api, None))?,
        Auth::Capabilities { .. } => session.api().await?,
    };
    Ok(if command.rest { api.over_rest() } else { api })
}

/// The request: the document of `--input` with the fields of `-f`.
///
/// # Errors
/// A file cannot be read, or has what the request does not take.
pub(crate) fn request(
    fields: &[String],
    input: Option<&Path>,
    method: &MethodInfo,
) -> Result<Map<String, Value>, ClientError> {
    let mut request = match input {
        Some(path) => document(path)?,
        None => Map::new(),
    };
    dynamic::require_known(&method.input, &Value::Object(request.clone()))?;
    for field in fields {
        let no_value = || ClientError::Usage(format!("-f {field}: a field and its value look like group.name=acme"));
        let (path, text) = field.split_once('=').ok_or_else(no_value)?;
        match text.strip_prefix('@') {
            Some(file) => dynamic::set(&mut request, &method.input, path, &file_text(Path::new(file))?)?,
            None => dynamic::set(&mut request, &method.input, path, text)?,
        }
    }
    Ok(request)
}

fn document(path: &Path) -> Result<Map<String, Value>, ClientError> {
    let refused = |why: String| ClientError::Usage(format!("--input {}: {why}", path.display()));
    match serde_json::from_slice(&input::read(path, INPUT_BYTES)?) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(refused("a request is a JSON object".into())),
        Err(error) => Err(refused(error.to_string())),
    }
}

fn file_text(path: &Path) -> Result<String, ClientError> {
    let not_text = |_| ClientError::Usage(format!("-f {}: must be UTF-8", path.display()));
    String::from_utf8(input::read(path, INPUT_BYTES)?).map_err(not_text)
}

/// Prints messages as they come, in JSON one per line.
async fn watch(
    command: &ApiCommand,
    api: &Api,
    method: &MethodInfo,
    request: &Map<String, Value>,
    form: &Form,
) -> Result<(), CliError> {
    let wire = dynamic::encoded(&method.input, request)?;
    let mut messages = api.watch(method, &wire).await?;
    while let Some(message) = messages.next().await? {
        let json = dynamic::to_json(&method.output, &message)?;
        match form {
            Form::Json if command.jq.is_none() => print(&format!("{json}\n"))?,
            other => show(command, other, &json)?,
        }
    }
    Ok(())
}

/// Prints a response as the options say.
fn show(command: &ApiCommand, form: &Form, response: &Value) -> Result<(), CliError> {
    match &command.jq {
        Some(filter) => print(&filter.apply(response).map_err(|why| CliError::Document(format!("--jq: {why}")))?),
        None => print(&form.document(response)?),
    }
}
