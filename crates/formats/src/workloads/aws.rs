use super::{Expectation, WorkloadProblem, literal};

/// A role or a user of AWS.
#[derive(Clone, Copy, Debug)]
pub struct AwsPrincipal<'a> {
    /// Number of the account.
    pub account: &'a str,
    /// Name of the role that workloads assume.
    pub role_name: Option<&'a str>,
    /// Name of the user, where it is no role.
    pub user_name: Option<&'a str>,
    /// Id of the role or user: a new one of the same name has another.
    pub principal_id: Option<&'a str>,
    pub partition: &'a str,
}

/// The principals that an identity trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsTrust {
    pub account: String,
    pub arn: Expectation,
    pub user_id: Expectation,
}

impl AwsTrust {
    /// The members of the message of an identity of AWS.
    pub fn members(&self) -> Vec<(&'static str, String)> {
        vec![
            ("aws_account", self.account.clone()),
            self.arn.member("arn", "arn_pattern"),
            self.user_id.member("user_id", "user_id_pattern"),
        ]
    }
}

impl AwsPrincipal<'_> {
    /// What an identity of this principal expects.
    ///
    /// # Errors
    /// The account is no number, or neither a role nor a user is named.
    pub fn trust(&self) -> Result<AwsTrust, WorkloadProblem> {
        let (partition, account) = (self.partition, self.account);
        if account.len() != 12 || !account.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(WorkloadProblem { field: "account", description: "must have 12 digits" });
        }
        let (arn, user_id) = match (self.role_name, self.user_name) {
            (Some(role), _) => {
                let arn =
                    format!("arn:{}:sts::{}:assumed-role/{}/.+", literal(partition), literal(account), literal(role));
                let id = self.principal_id.map_or("[A-Z0-9]+".to_owned(), literal);
                (Expectation::Pattern(arn), Expectation::Pattern(format!("{id}:.+")))
            }
            (None, Some(user)) => {
                let id = self.principal_id.map(str::to_owned).map(Expectation::Exact);
                let any = || Expectation::Pattern("[A-Z0-9]+".to_owned());
                (Expectation::Exact(format!("arn:{partition}:iam::{account}:user/{user}")), id.unwrap_or_else(any))
            }
            (None, None) => {
                return Err(WorkloadProblem { field: "role-name", description: "or user-name must be given" });
            }
        };
        Ok(AwsTrust { account: account.to_owned(), arn, user_id })
    }
}
