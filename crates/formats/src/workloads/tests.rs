use super::*;

fn github<'a>(subject: GithubSubject<'a>, ids: GithubIds<'a>) -> GithubJobs<'a> {
    GithubJobs { repo: "acme/my.site", subject, ids, host: None, audience: None }
}

#[test]
fn subjects_of_github() {
    let expected = |jobs: GithubJobs<'_>| jobs.trust().unwrap().subject;
    let (names, exact) = (GithubIds::Names, |text: &str| Expectation::Exact(text.into()));
    let pattern = |text: &str| Expectation::Pattern(text.into());
    let main = GithubSubject::Branch("main");
    assert_eq!(expected(github(main, names)), exact("repo:acme/my.site:ref:refs/heads/main"));
    let production = GithubSubject::Environment("prod");
    assert_eq!(expected(github(production, names)), exact("repo:acme/my.site:environment:prod"));
    assert_eq!(expected(github(GithubSubject::All, names)), pattern("repo:acme/my\\.site:.+"));
    let numbers = GithubIds::Numbers { owner: "1", repository: "2" };
    assert_eq!(expected(github(main, numbers)), exact("repo:acme@1/my.site@2:ref:refs/heads/main"));
    let both = GithubIds::Both { owner: "1", repository: "2" };
    assert_eq!(expected(github(main, both)), pattern("repo:(acme/my\\.site|acme@1/my\\.site@2):ref:refs/heads/main"));
    let wrong = |jobs: GithubJobs<'_>| jobs.trust().unwrap_err().field;
    assert_eq!(wrong(GithubJobs { repo: "site", ..github(main, names) }), "repo");
    assert_eq!(wrong(GithubJobs { repo: "acme/site:x", ..github(main, names) }), "repo");
    assert_eq!(wrong(github(main, GithubIds::Numbers { owner: "1", repository: "x" })), "repository-id");
}

#[test]
fn samples_have_the_subject_that_is_expected() {
    for subject in [GithubSubject::Branch("main"), GithubSubject::Tag("v1"), GithubSubject::Environment("prod")] {
        for ids in [GithubIds::Names, GithubIds::Numbers { owner: "1", repository: "2" }] {
            let jobs = github(subject, ids);
            let samples = jobs.samples();
            let Expectation::Exact(expected) = jobs.trust().unwrap().subject else { panic!("a pattern") };
            let is_expected = |token: &SampleToken| token.claims.contains(&("sub", expected.clone()));
            assert!(samples.own.iter().all(is_expected), "{samples:?}");
            assert!(!samples.others.iter().any(|(token, _)| is_expected(token)), "{samples:?}");
        }
    }
    let jobs = GitlabJobs { project: "acme/site", branch: Some("main"), tag: None, host: "gitlab.com", audience: None };
    let subject = "project_path:acme/site:ref_type:branch:ref:main".to_owned();
    assert_eq!(jobs.trust().unwrap().subject, Expectation::Exact(subject.clone()));
    assert!(jobs.samples().own[0].claims.contains(&("sub", subject)));
}

#[test]
fn principals_of_aws() {
    let role = AwsPrincipal {
        account: "123456789012",
        role_name: Some("build"),
        user_name: None,
        principal_id: Some("AROA1"),
        partition: "aws",
    };
    assert_eq!(
        role.trust().unwrap().members(),
        [
            ("aws_account", "123456789012".to_owned()),
            ("arn_pattern", "arn:aws:sts::123456789012:assumed-role/build/.+".to_owned()),
            ("user_id_pattern", "AROA1:.+".to_owned()),
        ]
    );
    let user = AwsPrincipal { role_name: None, user_name: Some("ada"), principal_id: None, ..role };
    assert_eq!(user.trust().unwrap().members()[1], ("arn", "arn:aws:iam::123456789012:user/ada".to_owned()));
    assert_eq!(AwsPrincipal { account: "1", ..role }.trust().unwrap_err().field, "account");
    assert_eq!(AwsPrincipal { role_name: None, ..role }.trust().unwrap_err().field, "role-name");
}
