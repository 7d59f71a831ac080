//! Reading what identities may do: the statements of the crate of identities, and what they return.

use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{CapabilitySet, Error, Micros, Result};
use bowline_store::{BoxFuture, ReadTx, Row, Value};

use crate::grants::{Direct, Grants, NamedOperators, OperatorStanding};
use crate::principal::OPERATOR;

impl Direct {
    /// Those of the local operator.
    pub(crate) fn of_operator() -> Direct {
        Direct { operator: Some(OperatorStanding::Local), everywhere: CapabilitySet::ALL, ..Direct::default() }
    }

    /// Takes the role of a named operator, while the operator's providers still include the person's.
    fn name_operator(&mut self, row: &OperatorRow, named: &NamedOperators) {
        if !row.has_stored_provider && !named.issuers.contains(&row.issuer) {
            return;
        }
        let (standing, everywhere) = match row.role.as_str() {
            "operator.admin" => (OperatorStanding::Admin, CapabilitySet::ALL),
            "operator.viewer" => (OperatorStanding::Viewer, named.viewer),
            _ => return,
        };
        (self.operator, self.everywhere) = (Some(standing), everywhere);
    }

    fn add_rows(&mut self, rows: &[BindingRow], subject: &str) -> Result<()> {
        for row in rows {
            if let (Some(group), Some(bytes)) = (&row.group, &row.capabilities) {
                let set = CapabilitySet::from_bytes(bytes)
                    .ok_or_else(|| Error::internal(format!("a role of {subject} has damaged capabilities")))?;
                self.add(group, &set);
            }
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, group: &str, capabilities: &CapabilitySet) {
        let held = self.by_group.entry(group.into()).or_default();
        *held = held.union(capabilities);
    }
}

/// A role at a group, and facts of what it hangs on.
struct BindingRow {
    expires_at: Option<Micros>,
    deactivated: bool,
    group: Option<String>,
    capabilities: Option<Vec<u8>>,
    operator: Option<OperatorRow>,
}

/// The role of a named operator.
struct OperatorRow {
    role: String,
    issuer: String,
    /// Whether a provider of the operator's in the database has the issuer.
    has_stored_provider: bool,
}

/// How the gate reads identities, roles and groups: statements that the crate of identities writes, because their tables
/// are its own. Parameters are named by what they take.
#[derive(Debug)]
pub struct Access {
    /// The revision of all permissions, which every change of one raises. Read on SQLite alone.
    pub revision: &'static str,
    /// By identity: when it ends, whether it is deactivated, its groups with the capabilities it has there; and its role as
    /// an operator, its issuer, and whether a stored provider of the operator's has that.
    pub bindings: &'static str,
    /// By session and identity: when it ends, and groups with the capabilities that the session adds.
    pub session: &'static str,
    /// By name: the UIDP of the verified organization.
    pub organization_by_name: &'static str,
    /// The capability that shows an organization's name.
    pub shows_organizations: Capability,
    /// By organization: the ids of the documents that it accepted.
    pub accepted_terms: &'static str,
}

impl Access {
    /// The grants of an identity as the store has them, without a token's narrowing; absent if it or the session is gone
    /// or deactivated. What is granted later must not rest on a role of an operator's, which is left out.
    pub async fn load_grants(&self, tx: &mut ReadTx, subject: &str, session: Option<&str>) -> Result<Option<Grants>> {
        if subject == OPERATOR {
            return Ok(Some(Grants::of(Direct::of_operator())));
        }
        let direct = self.read_direct(tx, subject, session, None).await?;
        Ok(direct.map(Grants::of))
    }

    /// The same with the identity's role as a named operator: for explanations to those who may list operators.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn load_with_operator(
        &self,
        tx: &mut ReadTx,
        subject: &str,
        named: &NamedOperators,
    ) -> Result<Option<Grants>> {
        let direct = self.read_direct(tx, subject, None, Some(named)).await?;
        Ok(direct.map(Grants::of))
    }

    pub(crate) fn read_direct<'a>(
        &'a self,
        tx: &'a mut ReadTx,
        subject: &'a str,
        session: Option<&'a str>,
        named: Option<&'a NamedOperators>,
    ) -> BoxFuture<'a, Result<Option<Direct>>> {
        Box::pin(async move {
            let row = |row: &Row<'_>| {
                Ok::<_, Error>(BindingRow {
                    expires_at: row.opt_int(0)?,
                    deactivated: row.bool(1)?,
                    group: row.opt_text(2)?,
                    capabilities: row.opt_bytes(3)?,
                    operator: match row.opt_text(4)? {
                        Some(role) => {
                            Some(OperatorRow { role, issuer: row.text(5)?, has_stored_provider: row.bool(6)? })
                        }
                        None => None,
                    },
                })
            };
            let rows = tx.query(self.bindings, &[Value::from(subject)], row).await?;
            let Some(first) = rows.first().filter(|first| !first.deactivated) else { return Ok(None) };
            let mut direct = Direct { expires_at: first.expires_at, ..Direct::default() };
            if let (Some(row), Some(named)) = (&first.operator, named) {
                direct.name_operator(row, named);
            }
            direct.add_rows(&rows, subject)?;
            let Some(session) = session else { return Ok(Some(direct)) };
            let row = |row: &Row<'_>| {
                Ok::<_, Error>(BindingRow {
                    expires_at: Some(row.int(0)?),
                    deactivated: false,
                    group: row.opt_text(1)?,
                    capabilities: row.opt_bytes(2)?,
                    operator: None,
                })
            };
            let rows = tx.query(self.session, &[Value::from(session), Value::from(subject)], row).await?;
            // Without its row the session has ended.
            let Some(ends) = rows.first().and_then(|first| first.expires_at) else { return Ok(None) };
            direct.expires_at = Some(direct.expires_at.map_or(ends, |end| end.min(ends)));
            direct.add_rows(&rows, subject)?;
            Ok(Some(direct))
        })
    }
}
