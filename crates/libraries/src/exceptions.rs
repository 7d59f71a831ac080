//! Exceptions of single versions: requested, approved, ended by time or by someone.
//!
//! Their rows are deleted when they end; the audit log has what became of them. Rows that time has ended are passed over, and go with
//! the next exception of their organization.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::package_exceptions::{
    ApproveException, CreateException, EndException, ListExceptions, RequestException, SetExceptionApproval,
};
use bowline_core::{Error, FieldViolation, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::kinds::{EXCEPTION_APPROVAL, PACKAGE_EXCEPTION};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};

use super::ecosystems::Language;
use super::policy::decide::Exception;
use super::policy::purl::Pattern;
use super::{require_organization, stored_uid};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListExceptions>(handler!(list))
        .validate::<RequestException>(violations)
        .write::<RequestException>(handler!(request))
        .validate::<CreateException>(violations)
        .write::<CreateException>(handler!(create))
        .write::<ApproveException>(handler!(approve))
        .write::<EndException>(handler!(end))
        .write::<SetExceptionApproval>(handler!(set_approval))
}

/// Exceptions that an organization may have in force, and as many requests.
const MAX_IN_ORGANIZATION: usize = 200;
/// Requests of one caller that may wait in an organization.
const MAX_REQUESTS: usize = 20;
/// Hours of an exception that does not say.
const DEFAULT_HOURS: i32 = 24;
/// Hours of an exception at most: seven days.
const MAX_HOURS: i32 = 7 * 24;
const HOUR: Micros = 3600 * 1_000_000;

/// An exception as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExceptionRow {
    uid: Uidp,
    language: Language,
    package: String,
    purl: String,
    bypass_malware: bool,
    bypass_freeze: bool,
    justification: String,
    hours: i32,
    requester: String,
    created_at: Micros,
    /// Empty while it is requested.
    approver: String,
    ends_at: Micros,
}

const COLUMNS: &str = "uid, ecosystem, package, purl, bypass_malware, bypass_freeze, justification, hours, requester, \
                       created_at, approver, ends_at";

impl ExceptionRow {
    fn read(row: &Row<'_>) -> Result<ExceptionRow> {
        Ok(ExceptionRow {
            uid: stored_uid(&row.text(0)?)?,
            language: Language::of_number(row.int(1)?)?,
            package: row.text(2)?,
            purl: row.text(3)?,
            bypass_malware: row.bool(4)?,
            bypass_freeze: row.bool(5)?,
            justification: row.text(6)?,
            hours: i32::try_from(row.int(7)?).map_err(Error::internal)?,
            requester: row.text(8)?,
            created_at: row.int(9)?,
            approver: row.text(10)?,
            ends_at: row.int(11)?,
        })
    }

    /// The exception that a request describes.
    fn of(call: &Authorized<own::CreatePackageExceptionRequest>, organization: &Uidp) -> Result<ExceptionRow> {
        let request = call.request();
        let wrong = |text: String| Error::invalid_field("purl", text);
        let pattern = Pattern::parse(&request.purl).map_err(wrong)?;
        let (language, package, _) = pattern.one_version().ok_or_else(|| wrong(ONE_VERSION.into()))?;
        Ok(ExceptionRow {
            uid: call.new_child(organization),
            language,
            package,
            purl: pattern.text(),
            bypass_malware: request.bypass_malware,
            bypass_freeze: request.bypass_freeze,
            justification: request.justification.clone(),
            hours: if request.hours == 0 { DEFAULT_HOURS } else { request.hours },
            requester: call.principal().subject().to_owned(),
            created_at: call.now(),
            approver: String::new(),
            ends_at: call.now() + Micros::from(MAX_HOURS) * HOUR,
        })
    }

    /// The same in force from now on.
    fn approved(&self, approver: &str, now: Micros) -> ExceptionRow {
        let ends_at = now + Micros::from(self.hours) * HOUR;
        ExceptionRow { approver: approver.to_owned(), ends_at, ..self.clone() }
    }

    fn is_in_force(&self) -> bool {
        !self.approver.is_empty()
    }

    fn shown(&self) -> own::PackageException {
        let state = if self.is_in_force() {
            own::PackageExceptionState::InForce
        } else {
            own::PackageExceptionState::Requested
        };
        own::PackageException {
            uid: self.uid.as_str().into(),
            purl: self.purl.clone(),
            bypass_malware: self.bypass_malware,
            bypass_freeze: self.bypass_freeze,
            justification: self.justification.clone(),
            hours: self.hours,
            state: state as i32,
            requested_by: self.requester.clone(),
            request_time: timestamp(self.created_at),
            approved_by: self.approver.clone(),
            expire_time: timestamp(self.ends_at),
        }
    }

    /// The exception as decisions read it.
    ///
    /// # Errors
    /// INTERNAL for a stored package URL that cannot be read.
    pub(super) fn ready(&self) -> Result<Exception> {
        let wrong = |wrong| Error::internal(format!("a stored exception has {:?}, which {wrong}", self.purl));
        Ok(Exception {
            pattern: Pattern::parse(&self.purl).map_err(wrong)?,
            bypass_malware: self.bypass_malware,
            bypass_freeze: self.bypass_freeze,
            ends_at: self.ends_at,
        })
    }
}

const ONE_VERSION: &str = "must name one version, such as pkg:npm/left-pad@1.3.0";

fn violations(request: &own::CreatePackageExceptionRequest) -> Vec<FieldViolation> {
    let mut violations = Vec::new();
    let mut refuse = |field: &str, description: String| {
        violations.push(FieldViolation { field: field.into(), description });
    };
    match Pattern::parse(&request.purl) {
        Err(wrong) => refuse("purl", wrong),
        Ok(pattern) if pattern.one_version().is_none() => refuse("purl", ONE_VERSION.into()),
        Ok(_) => {}
    }
    if !(0..=MAX_HOURS).contains(&request.hours) {
        refuse("hours", format!("must be 1 to {MAX_HOURS}; leave it out for {DEFAULT_HOURS}"));
    }
    violations
}

/// The exceptions of an organization that time has not ended, by package URL.
async fn of_organization(tx: &mut ReadTx, organization: &Uidp, now: Micros) -> Result<Vec<ExceptionRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM package_exceptions WHERE parent = $1 AND ends_at > $2 ORDER BY purl, created_at, uid"
    );
    tx.query(&sql, &[Value::from(organization.as_str()), Value::Int(now)], ExceptionRow::read).await
}

/// The exceptions of an organization that are in force.
pub(super) async fn in_force(tx: &mut ReadTx, organization: &Uidp, now: Micros) -> Result<Vec<ExceptionRow>> {
    let mut rows = of_organization(tx, organization, now).await?;
    rows.retain(ExceptionRow::is_in_force);
    Ok(rows)
}

/// The exceptions of versions of one package that are in force.
pub(super) async fn of_package(
    tx: &mut ReadTx,
    organization: &Uidp,
    (language, package): (Language, &str),
    now: Micros,
) -> Result<Vec<ExceptionRow>> {
    let mut sql = Sql::new(format!("SELECT {COLUMNS} FROM package_exceptions"));
    sql.bind(" WHERE parent = ", organization.as_str()).bind(" AND ecosystem = ", language.number());
    let (column, name) = language.in_patterns(package);
    sql.bind(&format!(" AND {column} = "), &name).bind(" AND ends_at > ", now).push(" AND approver <> '' ORDER BY uid");
    tx.query(&sql.text, &sql.params, ExceptionRow::read).await
}

/// The exception of a version that is in force; of several, the one that ends last.
pub(super) async fn of_version(
    tx: &mut ReadTx,
    organization: &Uidp,
    (language, package, version): (Language, &str, &str),
    now: Micros,
) -> Result<Option<own::PackageException>> {
    let mut latest: Option<ExceptionRow> = None;
    for row in of_package(tx, organization, (language, package), now).await? {
        let is_later = latest.as_ref().is_none_or(|latest| row.ends_at > latest.ends_at);
        if is_later && row.ready()?.pattern.names(language, package, version) {
            latest = Some(row);
        }
    }
    Ok(latest.as_ref().map(ExceptionRow::shown))
}

async fn require(tx: &mut ReadTx, uid: &Uidp, now: Micros) -> Result<ExceptionRow> {
    let sql = format!("SELECT {COLUMNS} FROM package_exceptions WHERE uid = $1 AND ends_at > $2");
    let found = tx.query_opt(&sql, &[Value::from(uid.as_str()), Value::Int(now)], ExceptionRow::read).await?;
    found.ok_or_else(|| Error::not_found(PACKAGE_EXCEPTION, uid.as_str()))
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListPackageExceptionsRequest>,
) -> Result<own::ListPackageExceptionsResponse> {
    let organization = require_organization(tx, call).await?;
    let rows = of_organization(tx, &organization, call.now()).await?;
    Ok(own::ListPackageExceptionsResponse {
        exceptions: rows.iter().map(ExceptionRow::shown).collect(),
        second_person: needs_second_person(tx, &organization).await?,
    })
}

async fn request(
    tx: &mut WriteTx,
    call: &Authorized<own::CreatePackageExceptionRequest>,
) -> Result<Changed<own::PackageException>> {
    let organization = require_organization(tx, call).await?;
    let row = ExceptionRow::of(call, &organization)?;
    insert(tx, &organization, &row, call.now()).await?;
    Ok(changed(&row, (None, Some(&row)), row.shown()))
}

async fn create(
    tx: &mut WriteTx,
    call: &Authorized<own::CreatePackageExceptionRequest>,
) -> Result<Changed<own::PackageException>> {
    let organization = require_organization(tx, call).await?;
    let requested = ExceptionRow::of(call, &organization)?;
    if needs_second_person(tx, &organization).await? {
        return Err(second_person(&organization, "request the exception, and have someone else approve it"));
    }
    let row = requested.approved(&requested.requester, call.now());
    insert(tx, &organization, &row, call.now()).await?;
    Ok(changed(&row, (None, Some(&row)), row.shown()))
}

/// Stores an exception; those that time has ended go.
async fn insert(tx: &mut WriteTx, organization: &Uidp, row: &ExceptionRow, now: Micros) -> Result<()> {
    let sql = "DELETE FROM package_exceptions WHERE parent = $1 AND ends_at <= $2";
    tx.execute(sql, &[Value::from(organization.as_str()), Value::Int(now)]).await?;
    let others = of_organization(tx, organization, now).await?;
    require_room(organization, &others, row.is_in_force())?;
    let waits = |other: &&ExceptionRow| !other.is_in_force() && other.requester == row.requester;
    if !row.is_in_force() && others.iter().filter(waits).count() >= MAX_REQUESTS {
        let text = format!("{MAX_REQUESTS} of your requests wait for approval; ask someone to approve or decline them");
        return Err(Error::quota(organization.as_str(), text));
    }
    let sql = format!(
        "INSERT INTO package_exceptions (parent, {COLUMNS})
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
    );
    let params = [
        Value::from(organization.as_str()),
        Value::from(row.uid.as_str()),
        Value::Int(row.language.number()),
        Value::from(&row.package),
        Value::from(&row.purl),
        Value::Bool(row.bypass_malware),
        Value::Bool(row.bypass_freeze),
        Value::from(&row.justification),
        Value::from(row.hours),
        Value::from(&row.requester),
        Value::Int(row.created_at),
        Value::from(&row.approver),
        Value::Int(row.ends_at),
    ];
    tx.execute(&sql, &params).await?;
    Ok(())
}

/// Refuses one more exception in force, or one more request: requests leave room for what is approved.
fn require_room(organization: &Uidp, all: &[ExceptionRow], is_in_force: bool) -> Result<()> {
    if all.iter().filter(|row| row.is_in_force() == is_in_force).count() < MAX_IN_ORGANIZATION {
        return Ok(());
    }
    let kind = if is_in_force { "exceptions in force" } else { "requested exceptions" };
    let text = format!("an organization may have {MAX_IN_ORGANIZATION} {kind}; end some first");
    Err(Error::quota(organization.as_str(), text))
}

async fn approve(
    tx: &mut WriteTx,
    call: &Authorized<own::ApprovePackageExceptionRequest>,
) -> Result<Changed<own::PackageException>> {
    let uid = call.require_scope()?;
    let before = require(tx, uid, call.now()).await?;
    if before.is_in_force() {
        return Ok(Changed::nothing(before.shown()));
    }
    let (organization, approver) = (uid.root(), call.principal().subject());
    if approver == before.requester && needs_second_person(tx, &organization).await? {
        return Err(second_person(&organization, "have someone else approve what you requested"));
    }
    require_room(&organization, &of_organization(tx, &organization, call.now()).await?, true)?;
    let after = before.approved(approver, call.now());
    let sql = "UPDATE package_exceptions SET approver = $2, ends_at = $3 WHERE uid = $1";
    tx.execute(sql, &[Value::from(uid.as_str()), Value::from(approver), Value::Int(after.ends_at)]).await?;
    Ok(changed(&after, (Some(&before), Some(&after)), after.shown()))
}

async fn end(tx: &mut WriteTx, call: &Authorized<own::EndPackageExceptionRequest>) -> Result<Changed<()>> {
    let uid = call.require_scope()?;
    let before = require(tx, uid, call.now()).await?;
    tx.execute("DELETE FROM package_exceptions WHERE uid = $1", &[Value::from(uid.as_str())]).await?;
    Ok(changed(&before, (Some(&before), None), ()))
}

/// The change of an exception, with an event that has all of it.
fn changed<T>(
    row: &ExceptionRow,
    (before, after): (Option<&ExceptionRow>, Option<&ExceptionRow>),
    response: T,
) -> Changed<T> {
    let [before, after] = [before, after].map(|row| row.map(ExceptionRow::shown));
    let changed = Changed::one(PACKAGE_EXCEPTION, &row.uid, before.as_ref(), after.as_ref(), response);
    changed.with_event(&row.uid, &row.shown())
}

async fn needs_second_person(tx: &mut ReadTx, organization: &Uidp) -> Result<bool> {
    let sql = "SELECT 1 FROM package_exception_approvals WHERE parent = $1";
    let found = tx.query_opt(sql, &[Value::from(organization.as_str())], |row| row.int(0).map_err(Error::from)).await?;
    Ok(found.is_some())
}

fn second_person(organization: &Uidp, advice: &str) -> Error {
    let text = format!("exceptions of this organization are approved by a second person: {advice}");
    Error::precondition("PACKAGE_EXCEPTION_SECOND_PERSON", organization.as_str(), text)
}

async fn set_approval(
    tx: &mut WriteTx,
    call: &Authorized<own::SetExceptionApprovalRequest>,
) -> Result<Changed<own::ExceptionApproval>> {
    let organization = require_organization(tx, call).await?;
    let before = own::ExceptionApproval { second_person: needs_second_person(tx, &organization).await? };
    let after = own::ExceptionApproval { second_person: call.request().second_person };
    if before == after {
        return Ok(Changed::nothing(after));
    }
    let sql = if after.second_person {
        "INSERT INTO package_exception_approvals (parent) VALUES ($1)"
    } else {
        "DELETE FROM package_exception_approvals WHERE parent = $1"
    };
    tx.execute(sql, &[Value::from(organization.as_str())]).await?;
    let changed = Changed::one(EXCEPTION_APPROVAL, &organization, Some(&before), Some(&after), after);
    Ok(changed.with_event(&organization, call.request()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_leave_room_for_what_is_approved() {
        let organization = Uidp::parse("0123456789abcdef0123456789abcdef01234567").expect("a uid");
        let requested = ExceptionRow {
            uid: organization.clone(),
            language: Language::Python,
            package: "foo".into(),
            purl: "pkg:pypi/foo@1.0".into(),
            bypass_malware: false,
            bypass_freeze: false,
            justification: "why".into(),
            hours: 1,
            requester: "someone".into(),
            created_at: 0,
            approver: String::new(),
            ends_at: 1,
        };
        let approved = requested.approved("other", 0);
        let requests = vec![requested; MAX_IN_ORGANIZATION];
        assert!(require_room(&organization, &requests, false).is_err());
        assert!(require_room(&organization, &requests, true).is_ok());
        let in_force = vec![approved; MAX_IN_ORGANIZATION];
        assert!(require_room(&organization, &in_force, false).is_ok());
        assert!(require_room(&organization, &in_force, true).is_err());
    }
}
