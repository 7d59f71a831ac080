use bowline_client::ClientError;
use bowline_contract::chainguard::platform::common::UidpFilter;
use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::rpc::tags_service::{CreateTag, DeleteTag, ListTags};
use bowline_terminal::{Output, Table, note, time};
use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::pages::ListOutput;
use crate::registry::targets::{self, Image};
use crate::resources::DryRun;
use crate::session::Access;
use crate::{pages, print};

/// `bowline registry tags`.
#[derive(Subcommand)]
pub enum TagsCommand {
    /// List the tags of a repository with the digests that they name
    #[command(after_help = "Example:\n  bowline registry tags list acme/nginx")]
    List(ListCommand),
    /// Print the digest that a tag names
    #[command(after_help = "Example:\n  bowline registry tags resolve acme/nginx:1.0")]
    Resolve(ImageCommand),
    /// Create a tag for a manifest of the repository; prints its UIDP
    #[command(after_help = "Example:\n  bowline registry tags create acme/nginx:stable --digest $DIGEST")]
    Create(CreateCommand),
    /// Delete a tag; the manifest stays as long as retention keeps it
    #[command(after_help = "Example:\n  bowline registry tags delete acme/nginx:stable --yes")]
    Delete(DeleteCommand),
}

#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    access: Access,
    /// Repository: organization/name, organization/group/name, or UIDP
    #[arg(value_name = "REPO")]
    repo: String,
    /// Only tags that name this digest
    #[arg(long)]
    digest: Option<String>,
    /// Also tags that clients made for signatures and their like
    #[arg(long)]
    referrers: bool,
    #[command(flatten)]
    output: ListOutput,
}

#[derive(Args)]
pub struct ImageCommand {
    #[command(flatten)]
    access: Access,
    /// Tag: REPO:TAG
    #[arg(value_name = "REPO:TAG")]
    image: String,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct CreateCommand {
    #[command(flatten)]
    tag: ImageCommand,
    /// Digest of the manifest
    #[arg(long)]
    digest: String,
    #[command(flatten)]
    dry_run: DryRun,
}

#[derive(Args)]
pub struct DeleteCommand {
    #[command(flatten)]
    tag: ImageCommand,
    #[command(flatten)]
    dry_run: DryRun,
}

pub(crate) async fn run(command: TagsCommand) -> Result<(), CliError> {
    match command {
        TagsCommand::List(command) => list(command).await,
        TagsCommand::Resolve(command) => resolve(command).await,
        TagsCommand::Create(command) => create(command).await,
        TagsCommand::Delete(command) => delete(command).await,
    }
}

async fn list(command: ListCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let api = session.api().await?;
    let repo = targets::repo(&session, &api, &command.repo).await?;
    let request = v2::ListTagsRequest {
        uidp: Some(UidpFilter { children_of: repo, ..UidpFilter::default() }),
        digest: command.digest.unwrap_or_default(),
        include_referrers: command.referrers,
        include_dates: true,
        include_epochs: true,
        page_size: 200,
        ..v2::ListTagsRequest::default()
    };
    pages::print::<ListTags, v2::Tag>(
        &api,
        request,
        &command.output,
        &["name", "digest", "updated"],
        |request| &mut request.page_token,
        |page| (page.tags, page.next_page_token),
        |tag| vec![tag.name.clone(), tag.digest.clone(), time(tag.update_time)],
    )
    .await
}

/// Repository and name of a tag.
fn named(text: &str) -> Result<(&str, &str), ClientError> {
    let image = Image::parse(text);
    let name = image.tag.filter(|_| image.digest.is_none());
    let name = name.ok_or_else(|| ClientError::Usage(format!("{text:?} names no tag; it looks like REPO:TAG")))?;
    Ok((image.repo, name))
}

async fn resolve(command: ImageCommand) -> Result<(), CliError> {
    let (repo, name) = named(&command.image)?;
    let session = command.access.session()?;
    let api = session.api().await?;
    let repo = targets::repo(&session, &api, repo).await?;
    let tag = targets::tag(&api, &repo, name).await?;
    let mut table = Table::without_head();
    table.push([tag.digest.clone()]);
    print(&command.output.message(&table, &tag)?)
}

async fn create(command: CreateCommand) -> Result<(), CliError> {
    let (repo, name) = named(&command.tag.image)?;
    let session = command.tag.access.session()?;
    let api = session.api().await?;
    let parent = targets::repo(&session, &api, repo).await?;
    let tag = v2::Tag { name: name.into(), digest: command.digest, ..v2::Tag::default() };
    let request = v2::CreateTagRequest { parent, tag: Some(tag) };
    let Some(tag) = command.dry_run.call::<CreateTag>(&api, &request, command.tag.output.form()).await? else {
        return Ok(());
    };
    let mut table = Table::without_head();
    table.push([tag.uid.clone()]);
    print(&command.tag.output.message(&table, &tag)?)
}

async fn delete(command: DeleteCommand) -> Result<(), CliError> {
    let DeleteCommand { tag: command, dry_run } = command;
    let (repo, name) = named(&command.image)?;
    let session = command.access.session()?;
    let api = session.api().await?;
    let repo = targets::repo(&session, &api, repo).await?;
    let tag = targets::tag(&api, &repo, name).await?;
    dry_run.confirm(&format!("Delete the tag {}, which names {}", command.image, tag.digest))?;
    let request = v2::DeleteTagRequest { uid: tag.uid.clone() };
    if dry_run.call::<DeleteTag>(&api, &request, command.output.form()).await?.is_none() {
        return Ok(());
    }
    note(&format!(
        "the tag {0} is deleted; to undo it: bowline registry tags create {0} --digest {1}\n",
        command.image, tag.digest
    ));
    Ok(())
}
