//! Cut-off dates of organizations: set for ecosystems, moved, lifted.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::package_freezes::{FreezePackages, LiftFreeze, ListFreezes};
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{Error, FieldViolation, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, ResourceSnapshot, handler};
use bowline_resources::kinds::PACKAGE_FREEZE;
use bowline_resources::list::{capability, micros, timestamp};
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::{Message, Name};

use super::ecosystems::{LANGUAGES, Language};
use super::policy::decide::Freeze;
use super::require_organization;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListFreezes>(handler!(list))
        .validate::<FreezePackages>(|request| wrong_ecosystems(&request.ecosystems))
        .write::<FreezePackages>(handler!(freeze))
        .validate::<LiftFreeze>(|request| wrong_ecosystems(&request.ecosystems))
        .write::<LiftFreeze>(handler!(lift))
}

/// A freeze as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FreezeRow {
    language: Language,
    cutoff: Micros,
    includes_own: bool,
    justification: String,
    set_by: String,
    created_at: Micros,
}

impl FreezeRow {
    fn read(row: &Row<'_>) -> Result<FreezeRow> {
        Ok(FreezeRow {
            language: Language::of_number(row.int(0)?)?,
            cutoff: row.int(1)?,
            includes_own: row.bool(2)?,
            justification: row.text(3)?,
            set_by: row.text(4)?,
            created_at: row.int(5)?,
        })
    }

    fn shown(&self) -> own::PackageFreeze {
        own::PackageFreeze {
            ecosystem: self.language.own() as i32,
            cutoff_time: timestamp(self.cutoff),
            includes_own: self.includes_own,
            justification: self.justification.clone(),
            frozen_by: self.set_by.clone(),
            freeze_time: timestamp(self.created_at),
        }
    }

    /// Whether it lets through something that the other one does not.
    fn is_laxer_than(&self, other: &FreezeRow) -> bool {
        self.cutoff > other.cutoff || (other.includes_own && !self.includes_own)
    }

    /// Whether it freezes the same, set by anyone at any time.
    fn is_like(&self, other: &FreezeRow) -> bool {
        let of = |row: &FreezeRow| (row.language, row.cutoff, row.includes_own, row.justification.clone());
        of(self) == of(other)
    }
}

/// The freezes of an organization that hold, by ecosystem.
pub(super) async fn in_force(tx: &mut ReadTx, organization: &Uidp) -> Result<Vec<Freeze>> {
    let rows = of_organization(tx, organization).await?;
    let freeze = |row: FreezeRow| Freeze { language: row.language, cutoff: row.cutoff, includes_own: row.includes_own };
    Ok(rows.into_iter().map(freeze).collect())
}

async fn of_organization(tx: &mut ReadTx, organization: &Uidp) -> Result<Vec<FreezeRow>> {
    let sql = "SELECT ecosystem, cutoff, includes_own, justification, set_by, created_at FROM package_freezes
               WHERE parent = $1 ORDER BY ecosystem";
    tx.query(sql, &[Value::from(organization.as_str())], FreezeRow::read).await
}

fn shown(rows: &[FreezeRow]) -> own::PackageFreezeList {
    own::PackageFreezeList { freezes: rows.iter().map(FreezeRow::shown).collect() }
}

fn wrong_ecosystems(ecosystems: &[i32]) -> Vec<FieldViolation> {
    let is_wrong = |ecosystem: &&i32| Language::of_own(**ecosystem).is_none();
    let description = "must be JAVA, PYTHON, JAVASCRIPT, GO, CARGO or GENERIC; leave it out for all of them";
    let violation = |_: &i32| FieldViolation { field: "ecosystems".into(), description: description.into() };
    ecosystems.iter().find(is_wrong).map(violation).into_iter().collect()
}

/// The ecosystems of a request: all of them if it names none.
fn languages(ecosystems: &[i32]) -> Result<Vec<Language>> {
    if ecosystems.is_empty() {
        return Ok(LANGUAGES.into());
    }
    ecosystems.iter().map(|ecosystem| Language::required_own("ecosystems", *ecosystem)).collect()
}

async fn list(tx: &mut ReadTx, call: &Authorized<own::ListPackageFreezesRequest>) -> Result<own::PackageFreezeList> {
    let organization = require_organization(tx, call).await?;
    Ok(shown(&of_organization(tx, &organization).await?))
}

async fn freeze(
    tx: &mut WriteTx,
    call: &Authorized<own::FreezePackagesRequest>,
) -> Result<Changed<own::PackageFreezeList>> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let cutoff = request.cutoff_time.map_or(call.now(), micros);
    if cutoff > call.now() {
        return Err(Error::invalid_field("cutoffTime", "must not be in the future; leave it out for now"));
    }
    let before = of_organization(tx, &organization).await?;
    for language in languages(&request.ecosystems)? {
        let known = before.iter().find(|row| row.language == language);
        // Who only adds to a freeze does not let through what came since.
        let cutoff = known.filter(|_| request.cutoff_time.is_none()).map_or(cutoff, |known| known.cutoff);
        let row = FreezeRow {
            language,
            cutoff,
            includes_own: request.includes_own,
            justification: request.justification.clone(),
            set_by: call.principal().subject().to_owned(),
            created_at: call.now(),
        };
        if known.is_some_and(|known| row.is_laxer_than(known)) {
            let needed = capability(call, Capability::CapLibrariesPolicyBindingDelete);
            call.require_all(organization.as_str(), &needed)?;
        }
        if !known.is_some_and(|known| known.is_like(&row)) {
            put(tx, &organization, &row).await?;
        }
    }
    let after = of_organization(tx, &organization).await?;
    Ok(changed(&organization, &before, &after, &shown(&after)))
}

async fn put(tx: &mut WriteTx, organization: &Uidp, row: &FreezeRow) -> Result<()> {
    let sql = "INSERT INTO package_freezes (parent, ecosystem, cutoff, includes_own, justification, set_by, created_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7)
               ON CONFLICT (parent, ecosystem) DO UPDATE SET
                 cutoff = excluded.cutoff, includes_own = excluded.includes_own,
                 justification = excluded.justification, set_by = excluded.set_by, created_at = excluded.created_at";
    let params = [
        Value::from(organization.as_str()),
        Value::Int(row.language.number()),
        Value::Int(row.cutoff),
        Value::Bool(row.includes_own),
        Value::from(&row.justification),
        Value::from(&row.set_by),
        Value::Int(row.created_at),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

async fn lift(tx: &mut WriteTx, call: &Authorized<own::LiftFreezeRequest>) -> Result<Changed<own::PackageFreezeList>> {
    let organization = require_organization(tx, call).await?;
    let before = of_organization(tx, &organization).await?;
    for language in languages(&call.request().ecosystems)? {
        let sql = "DELETE FROM package_freezes WHERE parent = $1 AND ecosystem = $2";
        tx.execute(sql, &[Value::from(organization.as_str()), Value::Int(language.number())]).await?;
    }
    let after = of_organization(tx, &organization).await?;
    Ok(changed(&organization, &before, &after, call.request()))
}

/// The freezes of an organization after a change, with what that did to them.
fn changed<M: Message + Name>(
    organization: &Uidp,
    before: &[FreezeRow],
    after: &[FreezeRow],
    event: &M,
) -> Changed<own::PackageFreezeList> {
    if before == after {
        return Changed::nothing(shown(after));
    }
    let snapshot =
        |rows: &[FreezeRow]| Some(shown(rows)).filter(|_| !rows.is_empty()).map(|all| ResourceSnapshot::of(&all));
    let change = Change {
        kind: PACKAGE_FREEZE,
        uid: organization.as_str().into(),
        before: snapshot(before),
        after: snapshot(after),
    };
    Changed::many(vec![change], shown(after)).with_event(organization, event)
}
