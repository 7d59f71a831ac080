//! Metadata of people, which each person sets for themselves alone.

use bowline_contract::v1::events as v1;
use bowline_contract::v1::events::identity_metadata::OnboardingQuestions;
use bowline_contract::v1::events::rpc::identities::UpdateMetadata;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::identities_service::UpdateIdentityMetadata;
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Changed, Handlers, Mask, handler};
use bowline_resources::kinds::IDENTITY;
use bowline_store::{ReadTx, Value, WriteTx};
use prost::Message;

use super::identities::{self, IdentityRow};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.write::<UpdateIdentityMetadata>(handler!(update_v2)).write::<UpdateMetadata>(handler!(update_v1))
}

async fn update_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::UpdateIdentityMetadataRequest>,
) -> Result<Changed<v2::IdentityMetadata>> {
    let given = call.request().identity_metadata.clone().unwrap_or_default();
    update(tx, call, &call.mask(), given).await
}

async fn update_v1(tx: &mut WriteTx, call: &Authorized<v1::IdentityMetadata>) -> Result<Changed<v1::IdentityMetadata>> {
    Ok(update(tx, call, &Mask::whole(), up(call.request().clone())).await?.map(down))
}

/// Changes what the mask covers of the caller's own metadata. Names stay as the sign-in brought them.
async fn update<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    mask: &Mask,
    given: v2::IdentityMetadata,
) -> Result<Changed<v2::IdentityMetadata>> {
    let person = require_person(tx, call).await?;
    identities::refuse_narrowed_self(call.principal(), &person.uid)?;
    let stored = find(tx, &person).await?;
    let before = shown(&person, stored.clone().unwrap_or_default());
    let after = merged(before.clone(), given, mask);
    if stored.is_some() && after == before {
        return Ok(Changed::nothing(after));
    }
    save(tx, call, &person, &after).await?;
    let known = stored.is_some().then_some(&before);
    Ok(Changed::one(IDENTITY, &person.uid, known, Some(&after), after.clone())
        .with_event(&person.uid, &down(after.clone())))
}

async fn require_person<T>(tx: &mut ReadTx, call: &Authorized<T>) -> Result<IdentityRow> {
    let subject = call.principal().subject();
    let row = identities::find(tx, subject).await?.filter(IdentityRow::is_person);
    row.ok_or_else(|| {
        Error::precondition(
            "IDENTITY_NOT_A_PERSON",
            subject,
            "only people have metadata of this kind; this token is a machine's, or the operator's",
        )
    })
}

async fn find(tx: &mut ReadTx, person: &IdentityRow) -> Result<Option<v2::IdentityMetadata>> {
    let sql = "SELECT metadata FROM identity_metadata WHERE identity = $1";
    let stored =
        tx.query_opt(sql, &[Value::from(person.uid.as_str())], |row| row.bytes(0).map_err(Error::from)).await?;
    let decode = |bytes: Vec<u8>| v2::IdentityMetadata::decode(bytes.as_slice()).map_err(Error::internal);
    stored.map(decode).transpose()
}

/// The stored metadata with what the identity itself says.
fn shown(person: &IdentityRow, stored: v2::IdentityMetadata) -> v2::IdentityMetadata {
    v2::IdentityMetadata {
        uid: person.uid.as_str().into(),
        name: person.name.clone(),
        company: person.company.clone(),
        ..stored
    }
}

fn merged(before: v2::IdentityMetadata, given: v2::IdentityMetadata, mask: &Mask) -> v2::IdentityMetadata {
    macro_rules! either {
        ($($field:ident),*) => {
            v2::IdentityMetadata {
                uid: before.uid,
                name: before.name,
                given_name: before.given_name,
                family_name: before.family_name,
                $($field: if mask.covers(stringify!($field)) { given.$field } else { before.$field },)*
            }
        };
    }
    either!(
        company,
        updates_opt_in,
        product,
        job_title,
        utm_campaign,
        utm_content,
        utm_medium,
        utm_source,
        utm_term,
        latest_form_submit_url,
        latest_internal_referring_url,
        hubspot_utk,
        self_serve
    )
}

async fn save<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    person: &IdentityRow,
    metadata: &v2::IdentityMetadata,
) -> Result<()> {
    let sql = "INSERT INTO identity_metadata (identity, metadata, updated_at) VALUES ($1, $2, $3)
               ON CONFLICT (identity) DO UPDATE SET metadata = excluded.metadata, updated_at = excluded.updated_at";
    let bytes = metadata.encode_to_vec();
    let uid = Value::from(person.uid.as_str());
    tx.execute(sql, &[uid, Value::from(&bytes), Value::Int(call.now())]).await?;
    if metadata.company != person.company {
        let sql = "UPDATE identities SET company = $2, updated_at = $3 WHERE uid = $1";
        tx.execute(sql, &[uid, Value::from(&metadata.company), Value::Int(call.now())]).await?;
    }
    Ok(())
}

/// Metadata of v1 in the form of v2. Its list of providers has no field there and is not stored.
fn up(metadata: v1::IdentityMetadata) -> v2::IdentityMetadata {
    let answers = metadata.onboarding_questions.unwrap_or_default();
    v2::IdentityMetadata {
        uid: String::new(),
        name: metadata.name,
        given_name: metadata.given_name,
        family_name: metadata.family_name,
        company: answers.company_name,
        updates_opt_in: metadata.updates_opt_in,
        product: answers.product,
        job_title: answers.job_title,
        utm_campaign: answers.utm_campaign,
        utm_content: answers.utm_content,
        utm_medium: answers.utm_medium,
        utm_source: answers.utm_source,
        utm_term: answers.utm_term,
        latest_form_submit_url: answers.latest_form_submit_url,
        latest_internal_referring_url: answers.latest_internal_referring_url,
        hubspot_utk: answers.hubspot_utk,
        self_serve: answers.self_serve,
    }
}

fn down(metadata: v2::IdentityMetadata) -> v1::IdentityMetadata {
    v1::IdentityMetadata {
        onboarding_questions: Some(OnboardingQuestions {
            company_name: metadata.company,
            providers: Vec::new(),
            product: metadata.product,
            job_title: metadata.job_title,
            utm_campaign: metadata.utm_campaign,
            utm_content: metadata.utm_content,
            utm_medium: metadata.utm_medium,
            utm_source: metadata.utm_source,
            utm_term: metadata.utm_term,
            latest_form_submit_url: metadata.latest_form_submit_url,
            latest_internal_referring_url: metadata.latest_internal_referring_url,
            hubspot_utk: metadata.hubspot_utk,
            self_serve: metadata.self_serve,
        }),
        name: metadata.name,
        given_name: metadata.given_name,
        family_name: metadata.family_name,
        updates_opt_in: metadata.updates_opt_in,
    }
}
