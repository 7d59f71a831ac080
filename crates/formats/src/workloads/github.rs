use super::{Expectation, SampleToken, SampleTokens, TokenTrust, WorkloadProblem, literal, path};

/// Jobs of a repository of GitHub Actions.
#[derive(Clone, Copy, Debug)]
pub struct GithubJobs<'a> {
    /// Its owner and its name, with a slash.
    pub repo: &'a str,
    pub subject: GithubSubject<'a>,
    pub ids: GithubIds<'a>,
    /// Host of GitHub Enterprise Server.
    pub host: Option<&'a str>,
    /// Absent for the address of the server.
    pub audience: Option<&'a str>,
}

/// Which jobs of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GithubSubject<'a> {
    All,
    Branch(&'a str),
    Tag(&'a str),
    Environment(&'a str),
}

/// How the subject names the repository. Tokens of newer repositories have the numbers of owner and repository beside
/// their names: a new owner of the same name has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GithubIds<'a> {
    /// `owner/name`, as in tokens of older repositories.
    Names,
    /// With numbers beside both: `owner@1/name@2`.
    Numbers { owner: &'a str, repository: &'a str },
    /// Both forms, with these numbers.
    Both { owner: &'a str, repository: &'a str },
}

impl GithubJobs<'_> {
    /// What an identity of these jobs expects.
    ///
    /// # Errors
    /// The repository is not OWNER/NAME, or a number is not decimal.
    pub fn trust(&self) -> Result<TokenTrust, WorkloadProblem> {
        let repo = path("repo", self.repo)?;
        self.require_numbers()?;
        let names = self.forms(repo);
        let rest = of_subject(self.subject);
        let subject = match (names.as_slice(), rest) {
            ([name], Some(rest)) => Expectation::Exact(format!("repo:{name}:{rest}")),
            (names, rest) => {
                let rest = rest.map_or_else(|| ".+".to_owned(), |rest| literal(&rest));
                let names: Vec<String> = names.iter().map(|name| literal(name)).collect();
                let names = if names.len() == 1 { names.concat() } else { format!("({})", names.join("|")) };
                Expectation::Pattern(format!("repo:{names}:{rest}"))
            }
        };
        Ok(TokenTrust { issuer: self.issuer(), subject, audience: self.audience.map(str::to_owned) })
    }

    fn issuer(&self) -> String {
        match self.host {
            None => "https://token.actions.githubusercontent.com".to_owned(),
            Some(host) => format!("https://{host}/_services/token"),
        }
    }

    fn require_numbers(&self) -> Result<(), WorkloadProblem> {
        let (GithubIds::Numbers { owner, repository } | GithubIds::Both { owner, repository }) = self.ids else {
            return Ok(());
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        for (field, text) in [("owner-id", owner), ("repository-id", repository)] {
            if !is_number(text) {
                return Err(WorkloadProblem { field, description: "must be the number that GitHub gives it" });
            }
        }
        Ok(())
    }

    /// The repository as its tokens name it.
    fn forms(&self, repo: &str) -> Vec<String> {
        let numbered = |owner: &str, repository: &str| match repo.split_once('/') {
            Some((first, name)) => format!("{first}@{owner}/{name}@{repository}"),
            None => repo.to_owned(),
        };
        match self.ids {
            GithubIds::Names => vec![repo.to_owned()],
            GithubIds::Numbers { owner, repository } => vec![numbered(owner, repository)],
            GithubIds::Both { owner, repository } => vec![repo.to_owned(), numbered(owner, repository)],
        }
    }

    /// Tokens of these jobs, and of others.
    pub fn samples(&self) -> SampleTokens {
        let forms = self.forms(self.repo);
        let own = forms.iter().map(|name| {
            let holder = if name.contains('@') { "the job, by numbers" } else { "the job, by names" };
            self.token(holder, name, self.subject)
        });
        let name = forms.last().map_or(self.repo, String::as_str);
        let mut others = Vec::new();
        let mut other = |holder: &str, name: &str, rest: String, why: &'static str| {
            others.push((self.sample(holder, name, &rest), why));
        };
        other("a job on another branch", name, of("heads", "another-branch"), "everyone who may push a branch");
        other("a job of a pull request", name, "pull_request".into(), "everyone who may open a pull request");
        let (owner, _) = name.split_once('/').unwrap_or((name, ""));
        other(
            "another repository of the owner",
            &format!("{owner}/another"),
            of("heads", "main"),
            "jobs of the owner's other repositories",
        );
        let foreign = name.replacen('/', "-x/", 1);
        other("an owner with a similar name", &foreign, of("heads", "main"), "everyone at GitHub");
        if self.ids == GithubIds::Names {
            let numbered = self.repo.replacen('/', "@1/", 1) + "@2";
            let rest = of_subject(self.subject).unwrap_or_else(|| of("heads", "main"));
            let mut token = self.sample("the same job of a newer repository, by numbers", &numbered, &rest);
            token.claims.retain(|(claim, _)| *claim == "iss" || *claim == "sub");
            others.push((token, "the repository's own jobs"));
        }
        SampleTokens { own: own.collect(), others }
    }

    fn token(&self, holder: &str, name: &str, subject: GithubSubject<'_>) -> SampleToken {
        let rest = of_subject(subject).unwrap_or_else(|| of("heads", "main"));
        self.sample(holder, name, &rest)
    }

    fn sample(&self, holder: &str, name: &str, rest: &str) -> SampleToken {
        let plain: Vec<&str> = name.split('/').map(|part| part.split('@').next().unwrap_or(part)).collect();
        let mut claims = vec![
            ("iss", self.issuer()),
            ("sub", format!("repo:{name}:{rest}")),
            ("repository", plain.join("/")),
            ("repository_owner", plain.first().copied().unwrap_or_default().to_owned()),
        ];
        if let Some(reference) = rest.strip_prefix("ref:") {
            claims.push(("ref", reference.to_owned()));
        }
        if let Some(environment) = rest.strip_prefix("environment:") {
            claims.push(("environment", environment.to_owned()));
        }
        SampleToken { holder: holder.to_owned(), claims }
    }
}

fn of(kind: &str, name: &str) -> String {
    format!("ref:refs/{kind}/{name}")
}

/// The end of a subject; absent for any.
fn of_subject(subject: GithubSubject<'_>) -> Option<String> {
    match subject {
        GithubSubject::All => None,
        GithubSubject::Branch(name) => Some(of("heads", name)),
        GithubSubject::Tag(name) => Some(of("tags", name)),
        GithubSubject::Environment(name) => Some(format!("environment:{name}")),
    }
}
