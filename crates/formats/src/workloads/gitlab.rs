use super::{Expectation, SampleToken, SampleTokens, TokenTrust, WorkloadProblem, literal, path};

/// Jobs of a project of GitLab CI.
#[derive(Clone, Copy, Debug)]
pub struct GitlabJobs<'a> {
    /// Its groups and its name, with slashes.
    pub project: &'a str,
    /// Only jobs on this branch.
    pub branch: Option<&'a str>,
    /// Only jobs on this tag; without both, all jobs.
    pub tag: Option<&'a str>,
    pub host: &'a str,
    /// Absent for the address of the server.
    pub audience: Option<&'a str>,
}

impl GitlabJobs<'_> {
    /// What an identity of these jobs expects.
    ///
    /// # Errors
    /// The project is no path.
    pub fn trust(&self) -> Result<TokenTrust, WorkloadProblem> {
        let project = path("project", self.project)?;
        let subject = match self.reference() {
            Some((kind, name)) => Expectation::Exact(subject(project, kind, name)),
            None => Expectation::Pattern(format!("project_path:{}:ref_type:(branch|tag):ref:.+", literal(project))),
        };
        Ok(TokenTrust { issuer: self.issuer(), subject, audience: self.audience.map(str::to_owned) })
    }

    fn issuer(&self) -> String {
        format!("https://{}", self.host)
    }

    fn reference(&self) -> Option<(&str, &str)> {
        self.branch.map(|name| ("branch", name)).or(self.tag.map(|name| ("tag", name)))
    }

    /// Tokens of these jobs, and of others.
    pub fn samples(&self) -> SampleTokens {
        let (kind, name) = self.reference().unwrap_or(("branch", "main"));
        let group = self.project.rsplit_once('/').map_or(self.project, |(group, _)| group);
        let near = self.project.replacen('/', "-x/", 1);
        SampleTokens {
            own: vec![self.sample("the job", self.project, kind, name)],
            others: vec![
                (
                    self.sample("a job on another branch", self.project, "branch", "another-branch"),
                    "everyone who may push a branch",
                ),
                (
                    self.sample("a job on another tag", self.project, "tag", "another-tag"),
                    "everyone who may push a tag",
                ),
                (
                    self.sample("another project of the group", &format!("{group}/another"), "branch", "main"),
                    "jobs of the group's other projects",
                ),
                (self.sample("a group with a similar name", &near, "branch", "main"), "everyone at this host"),
            ],
        }
    }

    fn sample(&self, holder: &str, project: &str, kind: &str, name: &str) -> SampleToken {
        let claims = vec![
            ("iss", self.issuer()),
            ("sub", subject(project, kind, name)),
            ("project_path", project.to_owned()),
            ("ref_type", kind.to_owned()),
            ("ref", name.to_owned()),
        ];
        SampleToken { holder: holder.to_owned(), claims }
    }
}

fn subject(project: &str, kind: &str, name: &str) -> String {
    format!("project_path:{project}:ref_type:{kind}:ref:{name}")
}
