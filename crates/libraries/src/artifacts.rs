//! Packages and their versions, as both versions of the API show them.

use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::artifacts as methods1;
use bowline_contract::v2::libraries as v2;
use bowline_contract::v2::libraries::rpc::artifacts_service as methods2;
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Handlers, PageRequest, handler};
use bowline_resources::kinds::ARTIFACT;
use bowline_resources::list::{self, timestamp};
use bowline_store::ReadTx;
use prost::Message;

use super::ecosystems::{IN_CONTRACT, Language};
use super::hosted::{self, Readable};
use super::may_look;
use super::search::{self, ArtifactPage, ArtifactRow, Search, With};
use super::versions::{self, Sources, VersionRow};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<methods1::List>(handler!(list_v1))
        .read::<methods1::ListVersions>(handler!(versions_v1))
        .read::<methods1::GetArtifactCount>(handler!(count_v1))
        .read::<methods2::ListArtifacts>(handler!(list_v2))
        .read::<methods2::ListArtifactVersions>(handler!(versions_v2))
        .read::<methods2::GetArtifactCount>(handler!(count_v2))
}

/// The ecosystems of a search: each language once, with the widest requested filter.
fn searched(ecosystems: &[i32], remediated: bool, upstream: bool) -> Result<Vec<(Language, With)>> {
    let mut names: Vec<(Language, With)> = Vec::new();
    for number in ecosystems {
        if *number == v1::Ecosystem::Unknown as i32 {
            return Err(Error::invalid_field(
                "ecosystems",
                "must name ecosystems; leave the field out for all of them",
            ));
        }
        // Other ecosystems have no packages here, which a list says best by showing none.
        let Some((language, is_tier)) = Language::of_wire(*number) else { continue };
        let with = match (remediated || is_tier, upstream) {
            (true, _) => With::Remediated,
            (false, true) => With::Any,
            (false, false) => With::Built,
        };
        match names.iter_mut().find(|place| place.0 == language) {
            Some(place) if place.1 == With::Remediated => place.1 = with,
            Some(_) => {}
            None => names.push((language, with)),
        }
    }
    if ecosystems.is_empty() {
        let with = if remediated {
            With::Remediated
        } else if upstream {
            With::Any
        } else {
            With::Built
        };
        names = IN_CONTRACT.map(|language| (language, with)).into();
    }
    Ok(names)
}

/// Whose packages are listed beside the catalogue: no group's where remediated versions or those for a version of CUDA are meant.
fn listed_beside<T>(call: &Authorized<T>, remediated: bool, cuda_version: &str) -> Result<Readable> {
    if remediated || !cuda_version.is_empty() { Ok(Readable::nothing()) } else { Readable::of(call) }
}

async fn list_v1(tx: &mut ReadTx, call: &Authorized<v1::ArtifactFilter>) -> Result<v1::ArtifactList> {
    let request = call.request();
    let names = searched(&request.ecosystems, request.remediated, request.include_upstream)?;
    let tiers = request.ecosystems.iter().filter_map(|number| Language::of_wire(*number));
    let only_tier =
        |language| tiers.clone().all(|(asked, is_tier)| asked != language || is_tier) && !request.ecosystems.is_empty();
    let rest = v1::ArtifactFilter { page_size: 0, page_token: String::new(), skip: 0, ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        skip: request.skip,
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let search = Search {
        ecosystems: names,
        part: request.query.to_lowercase(),
        cuda_version: request.cuda_version.clone(),
        hosted: listed_beside(call, request.remediated, &request.cuda_version)?,
    };
    let found = if may_look(call) { search.page(tx, call, &page).await? } else { ArtifactPage::nothing() };
    let item = |row: &ArtifactRow| artifact_v1(row, only_tier(row.language), request.include_upstream);
    Ok(v1::ArtifactList {
        items: found.items.iter().map(item).collect(),
        next_page_token: found.next_page_token,
        total_artifacts: i32::try_from(found.total).unwrap_or(i32::MAX),
        skipped: found.skipped,
    })
}

pub(super) fn artifact_v1(row: &ArtifactRow, is_tier: bool, upstream: bool) -> v1::Artifact {
    let (latest, count) =
        if upstream { (&row.latest, row.version_count) } else { (&row.latest_built, row.built_count) };
    v1::Artifact {
        id: row.id.clone(),
        name: row.name.clone(),
        description: row.description.clone(),
        ecosystem: row.language.wire(is_tier) as i32,
        latest_version: latest.clone(),
        version_count: i32::try_from(count).unwrap_or(i32::MAX),
        created_at: timestamp(row.created_at),
        updated_at: timestamp(row.updated_at),
    }
}

/// The artifact of an id; callers who may not look get the same answer for all ids, and for those of packages of groups that
/// they may not read.
async fn require<T>(tx: &mut ReadTx, call: &Authorized<T>, id: &str) -> Result<ArtifactRow> {
    let absent = || Error::not_found(ARTIFACT, id);
    let found = match () {
        () if !may_look(call) => None,
        () if id.starts_with(hosted::ID_PREFIX) => Readable::of(call)?.find(tx, id).await?,
        () => search::find(tx, id).await?,
    };
    found.ok_or_else(absent)
}

async fn versions_v1(tx: &mut ReadTx, call: &Authorized<v1::ArtifactVersionFilter>) -> Result<v1::ArtifactVersionList> {
    let request = call.request();
    let artifact = require(tx, call, &request.id).await?;
    let sources = if request.include_upstream { Sources::All } else { Sources::Built };
    let rows = versions::all(tx, &artifact, sources, call.slice()).await?;
    let item = |row: &VersionRow| v1::ArtifactVersion {
        id: row.id(&artifact),
        name: artifact.name.clone(),
        version: row.version.clone(),
        description: row.description.clone(),
        created_at: timestamp(row.created_at),
        updated_at: timestamp(row.updated_at),
        size_bytes: row.size_bytes,
        source_type: row.source,
        // Nothing is scanned here: only what the block list names counts as examined.
        malware_scanned: row.is_malware,
        malware_malicious: row.is_malware,
        upstream_published_date: row.published_at.and_then(timestamp),
    };
    Ok(v1::ArtifactVersionList { items: rows.iter().map(item).collect() })
}

async fn count_v1(
    tx: &mut ReadTx,
    call: &Authorized<v1::GetArtifactCountRequest>,
) -> Result<v1::GetArtifactCountResponse> {
    let asked: Vec<i32> = match call.request().ecosystems.as_slice() {
        [] => IN_CONTRACT.iter().map(|language| language.number() as i32).collect(),
        asked => asked.to_vec(),
    };
    let counts = counted(tx, call).await?;
    let count = |ecosystem: &i32| v1::get_artifact_count_response::Count {
        ecosystem: *ecosystem,
        total_artifacts: i32::try_from(count_of(&counts, *ecosystem)).unwrap_or(i32::MAX),
    };
    Ok(v1::GetArtifactCountResponse { counts: asked.iter().map(count).collect() })
}

type Counts = Vec<(Language, [i64; 4])>;

async fn counted<T>(tx: &mut ReadTx, call: &Authorized<T>) -> Result<Counts> {
    if !may_look(call) {
        return Ok(Vec::new());
    }
    let mut counts = search::counts(tx).await?;
    for (language, count) in Readable::of(call)?.counts(tx).await? {
        let mut of_groups = [0; 4];
        of_groups[With::Any as usize] = count;
        of_groups[With::Built as usize] = count;
        match counts.iter_mut().find(|row| row.0 == language) {
            Some((_, numbers)) => numbers.iter_mut().zip(of_groups).for_each(|(number, more)| *number += more),
            None => counts.push((language, of_groups)),
        }
    }
    Ok(counts)
}

/// The number of artifacts that lists of an ecosystem show by default.
fn count_of(counts: &Counts, ecosystem: i32) -> i64 {
    let Some((language, is_tier)) = Language::of_wire(ecosystem) else { return 0 };
    let with = if is_tier { With::Remediated } else { With::Built };
    counts.iter().find(|row| row.0 == language).map_or(0, |row| row.1[with as usize])
}

/// Refuses an unspecified ecosystem of v2. The others have the same numbers in v1.
fn of_v2(ecosystems: &[i32]) -> Result<()> {
    if ecosystems.contains(&(v2::Ecosystem::Unspecified as i32)) {
        return Err(Error::invalid_field("ecosystems", "must be ECOSYSTEM_JAVA or ECOSYSTEM_PYTHON"));
    }
    Ok(())
}

async fn list_v2(tx: &mut ReadTx, call: &Authorized<v2::ListArtifactsRequest>) -> Result<v2::ListArtifactsResponse> {
    let request = call.request();
    of_v2(&request.ecosystems)?;
    let search = Search {
        ecosystems: searched(&request.ecosystems, request.remediated, false)?,
        part: request.query.to_lowercase(),
        cuda_version: request.cuda_version.clone().unwrap_or_default(),
        hosted: listed_beside(call, request.remediated, request.cuda_version())?,
    };
    let page = list::paging(request);
    let found = if may_look(call) { search.page(tx, call, &page).await? } else { ArtifactPage::nothing() };
    let item = |row: &ArtifactRow| v2::Artifact {
        uid: row.id.clone(),
        name: row.name.clone(),
        description: row.description.clone(),
        ecosystem: row.language as i32,
        latest_version: row.latest_built.clone(),
        version_count: i32::try_from(row.built_count).unwrap_or(i32::MAX),
        create_time: timestamp(row.created_at),
        update_time: timestamp(row.updated_at),
    };
    Ok(v2::ListArtifactsResponse {
        artifacts: found.items.iter().map(item).collect(),
        next_page_token: found.next_page_token,
        total_count: found.total,
        skipped: found.skipped,
    })
}

async fn versions_v2(
    tx: &mut ReadTx,
    call: &Authorized<v2::ListArtifactVersionsRequest>,
) -> Result<v2::ListArtifactVersionsResponse> {
    let artifact = require(tx, call, &call.request().artifact_id).await?;
    let listing = versions::page(tx, call, &artifact, Sources::Built, &list::paging(call.request())).await?;
    let item = |row: &VersionRow| v2::ArtifactVersion {
        uid: row.id(&artifact),
        name: artifact.name.clone(),
        version: row.version.clone(),
        description: row.description.clone(),
        create_time: timestamp(row.created_at),
        update_time: timestamp(row.updated_at),
        size_bytes: row.size_bytes,
    };
    Ok(v2::ListArtifactVersionsResponse {
        artifact_versions: listing.items.iter().map(item).collect(),
        next_page_token: listing.next_page_token,
        total_count: listing.total_count,
        skipped: listing.skipped,
    })
}

async fn count_v2(
    tx: &mut ReadTx,
    call: &Authorized<v2::GetArtifactCountRequest>,
) -> Result<v2::GetArtifactCountResponse> {
    let request = call.request();
    of_v2(&request.ecosystems)?;
    let counts = counted(tx, call).await?;
    let count = |ecosystem: &i32| v2::get_artifact_count_response::EcosystemCount {
        ecosystem: *ecosystem,
        total_count: count_of(&counts, *ecosystem),
    };
    Ok(v2::GetArtifactCountResponse { counts: request.ecosystems.iter().map(count).collect() })
}
