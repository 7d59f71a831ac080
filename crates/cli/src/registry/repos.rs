use bowline_client::{Api, ClientError};
use bowline_contract::chainguard::platform::common::UidpFilter;
use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::rpc::repos_service as methods;
use bowline_contract::v2::registry::rpc::tags_service::ListTags;
use bowline_contract::{Contract, Method as _};
use bowline_terminal::{Form, Output, Table, note, time};
use clap::{Args, Subcommand};
use prost::Message as _;
use prost_types::FieldMask;

use crate::error::CliError;
use crate::input;
use crate::pages::ListOutput;
use crate::registry::targets;
use crate::resolve as groups;
use crate::resources::{self, DryRun, Generated, Repos};
use crate::session::Access;
use crate::{pages, print};

/// `bowline registry repos`.
#[derive(Subcommand)]
pub enum ReposCommand {
    /// List repositories
    List(ListCommand),
    /// Show one repository
    Get(GetCommand),
    /// Create a repository; prints its UIDP
    Create(CreateCommand),
    /// Change a repository
    Update(UpdateCommand),
    /// Delete a repository with everything in it
    Delete(DeleteCommand),
    #[command(flatten)]
    Generated(Generated<Repos>),
}

#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    access: Access,
    /// Organization or group, by path of names or UIDP; all that the caller may see where none is named
    #[arg(value_name = "GROUP")]
    group: Option<String>,
    /// The same as GROUP
    #[arg(long, value_name = "GROUP", conflicts_with = "group")]
    parent: Option<String>,
    /// Only those of this name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    output: ListOutput,
}

#[derive(Args)]
pub struct GetCommand {
    #[command(flatten)]
    access: Access,
    /// Repository: organization/name, organization/group/name, or UIDP
    #[arg(value_name = "REPO")]
    repo: String,
    #[command(flatten)]
    output: Output,
}

/// The fields of a repository that options set.
#[derive(Args)]
struct RepoArgs {
    /// Summary of at most 512 characters
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Labels of catalog collections, comma-separated; "" for none
    #[arg(long, value_name = "LABEL,...", value_delimiter = ',')]
    bundles: Option<Vec<String>>,
    /// Other references of equivalent images as name:tag, comma-separated; "" for none
    #[arg(long, value_name = "IMAGE,...", value_delimiter = ',')]
    aliases: Option<Vec<String>>,
    /// Tags that are maintained, comma-separated; "" for none
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    active_tags: Option<Vec<String>>,
    /// Where it takes what it lacks from: a repository here, or one of another registry; "" for nowhere
    #[arg(long, value_name = "REPO")]
    source: Option<String>,
    /// Read-me file in Markdown, or - for standard input
    #[arg(long, value_name = "FILE")]
    readme: Option<std::path::PathBuf>,
}

#[derive(Args)]
pub struct CreateCommand {
    #[command(flatten)]
    access: Access,
    /// Path of the new repository: organization/name or organization/group/name
    #[arg(value_name = "PATH")]
    path: String,
    #[command(flatten)]
    args: RepoArgs,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct UpdateCommand {
    #[command(flatten)]
    access: Access,
    /// Repository: organization/name, organization/group/name, or UIDP
    #[arg(value_name = "REPO")]
    repo: String,
    /// New name, in the same group
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    args: RepoArgs,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct DeleteCommand {
    #[command(flatten)]
    access: Access,
    /// Repository: organization/name, organization/group/name, or UIDP
    #[arg(value_name = "REPO")]
    repo: String,
    #[command(flatten)]
    dry_run: DryRun,
}

/// Longest read-me file that is sent, in bytes; the server may take less.
const README_BYTES: u64 = 10 << 20;

pub(crate) async fn run(command: ReposCommand) -> Result<(), CliError> {
    match command {
        ReposCommand::List(command) => list(command).await,
        ReposCommand::Get(command) => get(command).await,
        ReposCommand::Create(command) => create(command).await,
        ReposCommand::Update(command) => update(command).await,
        ReposCommand::Delete(command) => delete(command).await,
        ReposCommand::Generated(command) => resources::run(command).await,
    }
}

async fn list(command: ListCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let uidp = match command.group.as_ref().or(command.parent.as_ref()) {
        Some(group) => Some(UidpFilter { descendants_of: groups::group(&api, group).await?, ..UidpFilter::default() }),
        None => None,
    };
    let request = v2::ListReposRequest { uidp, name: command.name, page_size: 200, ..v2::ListReposRequest::default() };
    pages::print::<methods::ListRepos, v2::Repo>(
        &api,
        request,
        &command.output,
        &["uidp", "name", "updated", "description"],
        |request| &mut request.page_token,
        |page| (page.repos, page.next_page_token),
        |repo| vec![repo.uid.clone(), repo.name.clone(), time(repo.update_time), repo.description.clone()],
    )
    .await
}

async fn get(command: GetCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let api = session.api().await?;
    let uid = targets::repo(&session, &api, &command.repo).await?;
    let repo = api.call::<methods::GetRepo>(&v2::GetRepoRequest { uid }).await?;
    let mut table = Table::new(&["field", "value"]);
    for (field, value) in [
        ("uidp", repo.uid.clone()),
        ("name", repo.name.clone()),
        ("description", repo.description.clone()),
        ("bundles", repo.bundles.join(",")),
        ("aliases", repo.aliases.join(",")),
        ("active tags", repo.active_tags.join(",")),
        ("source", repo.sync_config.as_ref().map(|sync| sync.source.clone()).unwrap_or_default()),
        ("created", time(repo.create_time)),
        ("updated", time(repo.update_time)),
    ] {
        table.push([field.to_owned(), value]);
    }
    print(&command.output.message(&table, &repo)?)
}

async fn create(command: CreateCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let readme = command.args.readme()?;
    let api = session.api().await?;
    let (group, name) = targets::split(session.without_registry(&command.path))?;
    let mut repo = v2::Repo { name: name.into(), ..v2::Repo::default() };
    command.args.fill(&mut repo);
    let request = v2::CreateRepoRequest { parent: groups::group(&api, group).await?, repo: Some(repo) };
    let Some(made) = command.dry_run.call::<methods::CreateRepo>(&api, &request, command.output.form()).await? else {
        return Ok(());
    };
    if let Some(content) = readme {
        write_readme(&api, &made.uid, content, command.dry_run).await?;
    }
    // Images of an organization that is not verified are named by its UIDP, which is right for the others too.
    let parent = made.uid.rsplit_once('/').map_or("", |(parent, _)| parent);
    note(&format!("its images are {}/{parent}/{}\n", session.registry(), made.name));
    shown(&made, command.output)
}

async fn update(command: UpdateCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let readme = command.args.readme()?;
    let mut repo = v2::Repo::default();
    let mut paths = command.args.fill(&mut repo);
    if let Some(name) = command.name {
        repo.name = name;
        paths.push("name");
    }
    if paths.is_empty() && readme.is_none() {
        return Err(ClientError::Usage("nothing to change: name a field, such as --description".into()).into());
    }
    let api = session.api().await?;
    repo.uid = targets::repo(&session, &api, &command.repo).await?;
    if let Some(content) = readme {
        write_readme(&api, &repo.uid, content, command.dry_run).await?;
    }
    if paths.is_empty() && command.dry_run.is_on() {
        return Ok(());
    }
    if paths.is_empty() {
        let uid = repo.uid;
        return shown(&api.call::<methods::GetRepo>(&v2::GetRepoRequest { uid }).await?, command.output);
    }
    let update_mask = Some(FieldMask { paths: paths.into_iter().map(String::from).collect() });
    let request = v2::UpdateRepoRequest { repo: Some(repo), update_mask };
    match command.dry_run.call::<methods::UpdateRepo>(&api, &request, command.output.form()).await? {
        Some(repo) => shown(&repo, command.output),
        None => Ok(()),
    }
}

async fn delete(command: DeleteCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let api = session.api().await?;
    let uid = targets::repo(&session, &api, &command.repo).await?;
    let dry_run = command.dry_run;
    dry_run.confirm(&format!("Delete the repository {} with {}", command.repo, contents(&api, &uid).await?))?;
    let request = v2::DeleteRepoRequest { uid: uid.clone() };
    if dry_run.call::<methods::DeleteRepo>(&api, &request, &Form::Table).await?.is_none() {
        return Ok(());
    }
    note(&format!("the repository {} ({uid}) is deleted\n", command.repo));
    Ok(())
}

/// How many tags go along with a repository.
async fn contents(api: &Api, uid: &str) -> Result<String, ClientError> {
    let filter = UidpFilter { children_of: uid.into(), ..UidpFilter::default() };
    let request = v2::ListTagsRequest { uidp: Some(filter), page_size: 1, ..v2::ListTagsRequest::default() };
    // A caller that may delete a repository need not be able to list its tags.
    let total = match api.call::<ListTags>(&request).await {
        Ok(page) => page.total_count,
        Err(error) if error.is_permission_denied() => None,
        Err(error) => return Err(error),
    };
    Ok(match total {
        None => "everything in it".into(),
        Some(1) => "1 tag and everything in it".into(),
        Some(total) => format!("{total} tags and everything in it"),
    })
}

/// The UIDP of a repository that was made or changed, which scripts continue with.
fn shown(repo: &v2::Repo, output: Output) -> Result<(), CliError> {
    let mut table = Table::without_head();
    table.push([repo.uid.clone()]);
    print(&output.message(&table, repo)?)
}

/// Why the contract refuses a read-me.
fn unfit(content: &str) -> Option<String> {
    let contract = Contract::load();
    let message = contract.by_full_name(methods::UpdateRepoReadme::FULL_NAME)?.input.full_name().to_owned();
    let readme = v2::RepoReadme { content: content.into(), ..v2::RepoReadme::default() };
    let request = v2::UpdateRepoReadmeRequest { repo_readme: Some(readme), update_mask: None }.encode_to_vec();
    let validated = ["content".to_owned()];
    let violations = contract.field_rules().validate(&message, &request, Some("repo_readme"), Some(&validated));
    violations.list.into_iter().next().map(|violation| violation.description)
}

async fn write_readme(api: &Api, uid: &str, content: String, dry_run: DryRun) -> Result<(), CliError> {
    let readme = v2::RepoReadme { uid: uid.into(), content };
    let request = v2::UpdateRepoReadmeRequest { repo_readme: Some(readme), update_mask: None };
    dry_run.call::<methods::UpdateRepoReadme>(api, &request, &Form::Table).await.map(|_| ())
}

impl RepoArgs {
    /// Fills in what was given; the fields that it was given for.
    fn fill(&self, repo: &mut v2::Repo) -> Vec<&'static str> {
        let mut paths = Vec::new();
        if let Some(description) = &self.description {
            repo.description.clone_from(description);
            paths.push("description");
        }
        if let Some(source) = &self.source {
            let sync = v2::SyncConfig { source: source.clone(), ..v2::SyncConfig::default() };
            repo.sync_config = (!source.is_empty()).then_some(sync);
            paths.push("sync_config");
        }
        for (given, list, path) in [
            (&self.bundles, &mut repo.bundles, "bundles"),
            (&self.aliases, &mut repo.aliases, "aliases"),
            (&self.active_tags, &mut repo.active_tags, "active_tags"),
        ] {
            if let Some(given) = given {
                *list = given.iter().filter(|one| !one.is_empty()).cloned().collect();
                paths.push(path);
            }
        }
        paths
    }

    fn readme(&self) -> Result<Option<String>, ClientError> {
        let Some(path) = &self.readme else { return Ok(None) };
        let refused = |why: &str| ClientError::Usage(format!("--readme {}: {why}", path.display()));
        let text = String::from_utf8(input::read(path, README_BYTES)?).map_err(|_| refused("must be UTF-8"))?;
        // It is sent after the repository was made, which is too late to be refused.
        match unfit(&text) {
            Some(why) => Err(refused(&why)),
            None => Ok(Some(text)),
        }
    }
}
