use super::*;
use crate::addresses::AddressPolicy;
use crate::test_server::{Reply, TestServer};
use serde_json::json;

const NOW: i64 = 1_704_164_645;
const US: &str = "https://issuer.example";
const IDENTITY_UID: &str = "0123456789abcdef0123456789abcdef01234567/0123456789abcdef";

/// The headers of a good request, in the order of the public client.
fn good() -> Vec<(&'static str, String)> {
    let names = "accept;chainguard-audience;chainguard-identity;host;x-amz-date;x-amz-security-token";
    let credential = "AKID/20240102/us-east-1/sts/aws4_request";
    let signature = "0123456789abcdef".repeat(4);
    vec![
        ("Host", GLOBAL_HOST.into()),
        ("User-Agent", "Go-http-client/1.1".into()),
        ("Content-Length", "0".into()),
        ("Accept", "application/json".into()),
        (
            "Authorization",
            format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"),
        ),
        ("Chainguard-Audience", US.into()),
        ("Chainguard-Identity", IDENTITY_UID.into()),
        ("X-Amz-Date", "20240102T030405Z".into()),
        ("X-Amz-Security-Token", "session".into()),
    ]
}

fn with(name: &str, value: &str) -> Vec<(&'static str, String)> {
    let mut headers = good();
    headers.iter_mut().filter(|header| header.0 == name).for_each(|header| header.1 = value.into());
    headers
}

fn and(name: &'static str, value: &str) -> Vec<(&'static str, String)> {
    [good(), vec![(name, value.into())]].concat()
}

fn written(line: &str, headers: &[(&str, String)], body: &str) -> String {
    let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{line}\r\n{}\r\n{body}", headers.concat())
}

fn token(headers: &[(&str, String)]) -> String {
    BASE64.encode(written("POST /?Action=GetCallerIdentity&Version=2011-06-15 HTTP/1.1", headers, ""))
}

fn parse(headers: &[(&str, String)]) -> Result<SignedRequest, AwsError> {
    SignedRequest::parse(&token(headers))
}

fn sts(url: Option<String>) -> AwsSts {
    let policy = AddressPolicy { allow: Vec::new(), allow_loopback_and_http: true };
    AwsSts::new(GuardedClient::new(policy).unwrap(), vec![GLOBAL_HOST.into()], url)
}

#[test]
fn a_good_request_is_good_for_a_quarter_of_an_hour() {
    let (sts, request) = (sts(None), parse(&good()).unwrap());
    assert_eq!(request.signed_at, NOW);
    let at = |now: i64| sts.check(&request, US, IDENTITY_UID, now);
    assert_eq!((at(NOW), at(NOW + 900), at(NOW - 300)), (Ok(()), Ok(()), Ok(())));
    assert_eq!((at(NOW + 901), at(NOW - 301)), (Err(AwsError::Expired), Err(AwsError::NotYetValid)));
    assert_eq!(sts.check(&request, "https://issuer.example/", IDENTITY_UID, NOW), Err(AwsError::Audience));
    assert_eq!(sts.check(&request, US, &IDENTITY_UID[..40], NOW), Err(AwsError::Identity));
    let unpadded = token(&good()).trim_end_matches('=').to_owned();
    assert!(SignedRequest::parse(&unpadded).is_ok());
}

#[test]
fn only_configured_hosts_are_signed_for() {
    let regional = "sts.eu-west-1.amazonaws.com";
    for host in [regional, "sts.amazonaws.com:443", "STS.amazonaws.com", "sts.amazonaws.com.evil.example", ""] {
        let request = parse(&with("Host", host)).unwrap();
        assert_eq!(sts(None).check(&request, US, IDENTITY_UID, NOW), Err(AwsError::Host), "{host}");
    }
    let open = AwsSts { hosts: vec![regional.into()], ..sts(None) };
    assert_eq!(open.check(&parse(&with("Host", regional)).unwrap(), US, IDENTITY_UID, NOW), Ok(()));
    assert_eq!(open.check(&parse(&good()).unwrap(), US, IDENTITY_UID, NOW), Err(AwsError::Host));
}

#[test]
fn what_counts_must_be_signed() {
    let authorization = good()[4].1.clone();
    for name in ["host;", "x-amz-date;", "chainguard-audience;", "chainguard-identity;"] {
        let fewer = authorization.replace(name, "");
        assert_eq!(parse(&with("Authorization", &fewer)).unwrap_err(), AwsError::Unsigned, "{name}");
    }
    // What the signature does not cover goes nowhere.
    let request = parse(&good()).unwrap();
    let sent: Vec<&str> = request.headers.keys().map(String::as_str).collect();
    assert_eq!(
        sent,
        [
            "accept",
            "authorization",
            "chainguard-audience",
            "chainguard-identity",
            "host",
            "x-amz-date",
            "x-amz-security-token"
        ]
    );
}

#[test]
fn other_shapes_are_refused() {
    let authorization = good()[4].1.clone();
    let authorizations = [
        authorization.replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"),
        authorization.replace("/sts/", "/s3/"),
        authorization.replace("aws4_request", "aws3_request"),
        authorization.replace("Signature=0", "Signature=x"),
        authorization.replace("accept;", "Accept;"),
        authorization.replace("accept;chainguard-audience", "chainguard-audience;accept"),
        authorization.replace("accept;", "accept;accept;"),
        authorization.replace("accept;", "absent;accept;"),
        format!("{authorization}, SignedHeaders=host"),
        format!("{authorization}, Other=x"),
        "Bearer x".into(),
        String::new(),
    ];
    let mut bad: Vec<_> = authorizations.iter().map(|value| with("Authorization", value)).collect();
    for header in good() {
        bad.push([good(), vec![header]].concat());
    }
    bad.push(good().into_iter().filter(|header| header.0 != "Authorization").collect());
    bad.push(and("chainguard-AUDIENCE", US));
    bad.push(and("Transfer-Encoding", "chunked"));
    bad.push(and("Connection", "x-amz-date"));
    bad.push(and("X Y", "z"));
    bad.push(and("X-Tab", "a\tb"));
    bad.push(and("X-Line", "a\nb: c"));
    bad.push(with("Content-Length", "5"));
    bad.push(with("Accept", "text/xml"));
    for date in
        ["20240102T030405", "20241302T030405Z", "2024-01-02T03:04:05Z", "20240102T250405Z", "", "２０240102T0304Z"]
    {
        bad.push(with("X-Amz-Date", date));
    }
    let many: Vec<_> = (0..40).map(|n| (&*Box::leak(format!("X-{n}").into_boxed_str()), String::new())).collect();
    bad.push([good(), many].concat());
    bad.push(and("X-Long", &"x".repeat(MAX_BYTES)));
    for headers in bad {
        assert_eq!(parse(&headers).unwrap_err(), AwsError::Malformed, "{headers:?}");
    }
    for line in [
        "GET /?Action=GetCallerIdentity&Version=2011-06-15 HTTP/1.1",
        "POST / HTTP/1.1",
        "POST /?Action=AssumeRole&Version=2011-06-15 HTTP/1.1",
        "POST /?Version=2011-06-15&Action=GetCallerIdentity HTTP/1.1",
        "POST /?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Signature=0 HTTP/1.1",
        "POST //?Action=GetCallerIdentity&Version=2011-06-15 HTTP/1.1",
        "POST https://sts.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15 HTTP/1.1",
        "POST /?Action=GetCallerIdentity&Version=2011-06-15 HTTP/1.0",
    ] {
        let token = BASE64.encode(written(line, &good(), ""));
        assert_eq!(SignedRequest::parse(&token).unwrap_err(), AwsError::Malformed, "{line}");
    }
    let line = "POST /?Action=GetCallerIdentity&Version=2011-06-15 HTTP/1.1";
    for token in
        ["", "x", "no base64", &BASE64.encode("no request"), &BASE64.encode(written(line, &good(), "Action=x"))]
    {
        assert_eq!(SignedRequest::parse(token).unwrap_err(), AwsError::Malformed, "{token}");
    }
}

fn answer(account: &str) -> Value {
    json!({ "GetCallerIdentityResponse": {
        "GetCallerIdentityResult": { "Account": account, "Arn": "arn:aws:iam::1:user/x", "UserId": "AIDA" },
        "ResponseMetadata": { "RequestId": "1" },
    }})
}

#[tokio::test]
async fn aws_says_who_it_was() {
    let request = parse(&good()).unwrap();
    let server = TestServer::start(|_, _| Reply::Json(answer("123456789012"))).await;
    let caller = sts(Some(server.url.clone())).caller(&request).await.unwrap();
    let expected = Caller {
        account: "123456789012".into(),
        arn: "arn:aws:iam::1:user/x".into(),
        user_id: "AIDA".into(),
        issuer: server.url.clone(),
    };
    assert_eq!(caller, expected);
    assert_eq!(server.hits(), ["/?Action=GetCallerIdentity&Version=2011-06-15"]);
    let location = "location: https://elsewhere.example/\r\n";
    for (reply, error) in [
        (Reply::status(403, ""), AwsError::Rejected),
        (Reply::status(400, ""), AwsError::Rejected),
        (Reply::status(302, location), AwsError::Rejected),
        (Reply::status(500, ""), AwsError::Unavailable("status")),
        (Reply::status(429, ""), AwsError::Unavailable("status")),
        (Reply::Json(answer("12345678901")), AwsError::Unavailable("answer")),
        (Reply::Json(json!({})), AwsError::Unavailable("answer")),
        (Reply::text("<xml/>"), AwsError::Unavailable("answer")),
        (Reply::Endless, AwsError::Unavailable("too_large")),
    ] {
        let reply = std::sync::Mutex::new(Some(reply));
        let server = TestServer::start(move |_, _| reply.lock().unwrap().take().unwrap()).await;
        assert_eq!(sts(Some(server.url.clone())).caller(&request).await.unwrap_err(), error);
    }
    // No one is there.
    let gone = sts(Some("http://127.0.0.1:1".into())).caller(&request).await;
    assert_eq!(gone.unwrap_err(), AwsError::Unavailable("connect"));
}

#[test]
fn requests_to_a_substitute_have_the_signed_host_header() {
    let request = parse(&good()).unwrap();
    let headers = outbound(&request, "http://127.0.0.1:1/").unwrap();
    assert_eq!(
        (headers["host"].as_bytes(), headers["accept"].as_bytes()),
        (&b"sts.amazonaws.com"[..], &b"application/json"[..])
    );
    assert_eq!(outbound(&request, "https://sts.amazonaws.com/").unwrap().get("host"), None);
}

#[test]
fn an_identity_accepts_whole_values_of_its_account() {
    let caller = Caller { account: "1".into(), arn: "arn:a".into(), user_id: "u:s".into(), issuer: String::new() };
    let exact = |text: &str| Some(Expect::Exact(text.into()));
    let pattern = |text: &str| Some(Expect::Pattern(text.into()));
    let validated = |account: &str, arn: Option<Expect>, user_id: Option<Expect>| {
        CallerMatch { account: account.into(), arn, user_id }.mismatch(&caller).unwrap()
    };
    assert_eq!(validated("1", exact("arn:a"), None), None);
    assert_eq!(validated("1", pattern("arn:.*"), pattern("u:.")), None);
    assert_eq!(validated("1", None, exact("u:s")), None);
    assert_eq!(validated("2", exact("arn:a"), None), Some("account"));
    assert_eq!(validated("1", None, None), Some("account"), "nothing is no permission");
    assert_eq!(validated("1", exact("arn:A"), None), Some("arn"));
    assert_eq!(validated("1", pattern("rn:a"), None), Some("arn"));
    assert_eq!(validated("1", exact("arn:a"), pattern("u:")), Some("user_id"));
}

#[test]
fn dates_are_read() {
    assert_eq!(seconds("19700101T000000Z"), Some(0));
    assert_eq!(seconds("20000229T235959Z"), Some(951_868_799));
    assert_eq!(seconds("20240301T000000Z"), Some(1_709_251_200));
}
