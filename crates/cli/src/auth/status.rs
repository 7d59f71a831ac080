use bowline_contract::v1::auth::rpc::auth::Validate;
use bowline_contract::v1::auth::{WhoAmI, who_am_i};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::error::CliError;
use crate::print;
use crate::session::{Session, Target};

/// `bowline auth status`.
#[derive(Args)]
pub struct StatusCommand {
    #[command(flatten)]
    target: Target,
    /// Form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Output,
    /// Only say by the exit code whether someone is signed in: 0 yes, 3 no
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

pub(crate) async fn run(command: StatusCommand) -> Result<(), CliError> {
    let session = Session::open(&command.target)?;
    let who = session.api().await?.call::<Validate>(&()).await?;
    if command.quick {
        return Ok(());
    }
    let left = who.expiry.as_ref().map_or(0, |expiry| expiry.seconds - Session::now());
    print(&match command.output {
        Output::Table => table(&session, &who, left),
        Output::Json => format!("{}\n", json(&session, &who, left)),
    })
}

fn table(session: &Session, who: &WhoAmI, left: i64) -> String {
    let mut text = format!("API       {}\nissuer    {}\nidentity  {}\n", session.api, who.issuer, who.subject);
    if !who.email.is_empty() {
        text.push_str(&format!("e-mail    {}\n", who.email));
    }
    text.push_str(&format!("token     good for {} minutes\n", left / 60));
    if who.capabilities.is_empty() {
        text.push_str("\nno role anywhere\n");
        return text;
    }
    text.push_str("\nROLE\tGROUP\tUIDP\n");
    for held in &who.capabilities {
        let (uidp, name) = held.group.as_ref().map_or(("", ""), |group| (group.id.as_str(), group.name.as_str()));
        text.push_str(&format!("{}\t{}\t{uidp}\n", role(held), if name.is_empty() { "-" } else { name }));
    }
    text
}

fn role(held: &who_am_i::Capability) -> String {
    match &held.role {
        Some(role) => role.name.clone(),
        None => format!("({} capabilities)", held.capabilities.len()),
    }
}

fn json(session: &Session, who: &WhoAmI, left: i64) -> serde_json::Value {
    let held: Vec<_> = who
        .capabilities
        .iter()
        .map(|held| {
            json!({
                "group": held.group.as_ref().map(|group| &group.id),
                "name": held.group.as_ref().map(|group| &group.name),
                "role": held.role.as_ref().map(|role| &role.name),
                "capabilities": held.capabilities,
            })
        })
        .collect();
    json!({
        "api": session.api, "issuer": who.issuer, "identity": who.subject, "email": who.email,
        "audience": who.audience, "expires_in": left, "capabilities": held,
    })
}
