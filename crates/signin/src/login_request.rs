//! The request of a sign-in.

use bowline_core::Uidp;
use bowline_identity::people::Choice;
use serde::{Deserialize, Serialize};

use bowline_formats::percent;

use crate::headless;
use crate::parameters::Parameters;
use crate::problem::Problem;
use crate::redirect::Redirects;

/// Longest of any one value that has no rule of its own.
const LONGEST: usize = 4096;
/// Maximum number of audiences, and of groups.
const MAX_ELEMENTS: usize = 50;
/// The client that published command lines name when they mean any provider of the operator.
const ANY_CLIENT: &str = "auth0";

/// First page of the console.
pub(crate) const CONSOLE: &str = "/console/";

/// Where the result goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Destination {
    /// Nowhere: the browser is signed in.
    Page,
    /// To the console, which shows this path of its own.
    Console(String),
    /// To a program or a site that listens at this address.
    Redirect(String),
    /// To the holder of the private key of this public one.
    Headless(String),
    /// To the holder of the device code of this digest.
    Device {
        /// What the row is found by, as text.
        hash: String,
        /// The code on the device's screen.
        user_code: String,
        /// Address that the device's request came from.
        address: String,
        /// How the device's program calls itself.
        client_id: String,
    },
}

/// The validated request of a sign-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoginRequest {
    #[serde(rename = "exit")]
    pub(crate) destination: Destination,
    pub(crate) audiences: Vec<String>,
    pub(crate) identity: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) refresh: bool,
    pub(crate) skip_registration: bool,
    pub(crate) invite: Option<String>,
    pub(crate) screen_hint: Option<String>,
}

/// Which provider a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProviderHint {
    One(Choice),
    /// The one of the operator's with this id, if there is one.
    Client(String),
    /// Any of the operator's: the only one, or the person chooses.
    Any,
    /// None: the person chooses.
    Nothing,
}

impl LoginRequest {
    /// Reads the parameters of `GET /oauth`, but for those that name a provider.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn read(
        parameters: &Parameters,
        redirects: &Redirects,
        audience: &str,
    ) -> Result<LoginRequest, Problem> {
        let refresh = parameters.flag("create_refresh_token")?;
        let request = LoginRequest {
            destination: destination(parameters, redirects)?,
            audiences: audiences(parameters.one("audience")?, audience)?,
            identity: parameters.one("identity")?.map(identity).transpose()?,
            scopes: scopes(parameters)?,
            refresh,
            skip_registration: parameters.flag("skip_registration")?,
            invite: short(parameters, "invite")?,
            screen_hint: short(parameters, "screen_hint")?.filter(|hint| is_word(hint)),
        };
        match request.destination {
            Destination::Headless(_) => request.without_what_headless_lacks(),
            Destination::Console(_) => request.for_console(parameters, audience),
            _ => Ok(request),
        }
    }

    /// The result of a headless sign-in is an id token, which says who someone is and nothing more.
    fn without_what_headless_lacks(self) -> Result<LoginRequest, Problem> {
        if self.refresh {
            return Err(Problem::bad("A headless sign-in has no refresh token."));
        }
        let narrowing = [("identity", self.identity.is_some()), ("scope", !self.scopes.is_empty())];
        match narrowing.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => Err(Problem::bad(format!(
                "A headless sign-in knows no parameter {name}: exchange its result with it at /sts/exchange instead."
            ))),
            None => Ok(self),
        }
    }
}

impl LoginRequest {
    /// The console calls the API as the person, and as nothing else.
    fn for_console(self, parameters: &Parameters, audience: &str) -> Result<LoginRequest, Problem> {
        let given = ["audience", "identity", "scope", "create_refresh_token"];
        for name in given {
            if parameters.all(name).next().is_some() {
                return Err(Problem::bad(format!("A sign-in to the console has no parameter {name}.")));
            }
        }
        Ok(LoginRequest { audiences: vec![audience.to_owned()], ..self })
    }
}

impl ProviderHint {
    /// Reads the parameters that name a provider.
    ///
    /// # Errors
    /// They name more than one.
    pub(crate) fn read(parameters: &Parameters) -> Result<ProviderHint, Problem> {
        let idp = short(parameters, "idp_id")?;
        let connection = short(parameters, "connection")?;
        let client = short(parameters, "client_id")?;
        match (idp, connection, client) {
            (Some(_), Some(_), _) => {
                Err(Problem::bad("The parameters idp_id and connection name two providers: give one of them."))
            }
            (Some(idp), None, _) => Ok(ProviderHint::One(match Uidp::parse(&idp) {
                Ok(uid) => Choice::Provider(uid),
                Err(_) => Choice::Organization(idp),
            })),
            (None, Some(id), _) => Ok(ProviderHint::One(Choice::Operator(id))),
            (None, None, Some(client)) if client == ANY_CLIENT => Ok(ProviderHint::Any),
            (None, None, Some(client)) => Ok(ProviderHint::Client(client)),
            (None, None, None) => Ok(ProviderHint::Nothing),
        }
    }
}

fn destination(parameters: &Parameters, redirects: &Redirects) -> Result<Destination, Problem> {
    let redirect = parameters.one("redirect")?;
    let headless = parameters.one("headless_code")?;
    match (parameters.one("exit")?, redirect, headless) {
        (_, Some(_), Some(_)) => {
            Err(Problem::bad("The parameters redirect and headless_code exclude each other: give one of them."))
        }
        (Some("redirect"), Some(redirect), None) => {
            let refused = |why| Problem::bad(format!("The parameter redirect is not allowed: {why}."));
            Ok(Destination::Redirect(redirects.validate(redirect).map_err(refused)?.as_str().into()))
        }
        (Some("console"), None, None) => {
            Ok(Destination::Console(short(parameters, "return")?.unwrap_or_else(|| CONSOLE.to_owned())))
        }
        (Some("console"), ..) => Err(Problem::bad("The parameter exit=console excludes redirect and headless_code.")),
        (Some("redirect"), None, _) => Err(Problem::bad("The parameter exit=redirect needs the parameter redirect.")),
        (Some(_), ..) => Err(Problem::bad("The parameter exit knows two values: redirect and console.")),
        (None, Some(_), None) => Err(Problem::bad("The parameter redirect needs exit=redirect.")),
        (None, None, Some(code)) => {
            let public_key = headless::public_key(code).ok_or_else(|| {
                Problem::bad(
                    "The parameter headless_code is no X25519 public key: 32 bytes in base64url without padding.",
                )
            })?;
            // Whatever the client wrote: the one text of that key, which it asks with as well.
            Ok(Destination::Headless(crate::secrets::text_of(&public_key)))
        }
        (None, None, None) => Ok(Destination::Page),
    }
}

/// The audiences of a list with commas; the API's where there is none. Whether they exist is checked at the issuing.
pub(crate) fn audiences(list: Option<&str>, default: &str) -> Result<Vec<String>, Problem> {
    let Some(list) = list else {
        return Ok(vec![default.to_owned()]);
    };
    let mut audiences: Vec<String> = list.split(',').map(|one| one.trim().to_owned()).collect();
    audiences.dedup();
    if audiences.len() > MAX_ELEMENTS || audiences.iter().any(|one| one.is_empty() || !is_plain(one)) {
        return Err(Problem::bad("The parameter audience is a list of audiences with commas between them."));
    }
    Ok(audiences)
}

fn identity(text: &str) -> Result<String, Problem> {
    Uidp::parse(text)
        .map(|uid| uid.as_str().to_owned())
        .map_err(|_| Problem::bad("The parameter identity is the UIDP of an identity."))
}

/// Published clients escape groups once more than the query needs; neither UIDPs nor names have a percent sign.
fn scopes(parameters: &Parameters) -> Result<Vec<String>, Problem> {
    let mut scopes = Vec::new();
    for given in parameters.all("scope").filter(|given| !given.is_empty()) {
        let scope = percent::decode(&given.replace('+', " ")).map(String::from);
        scopes.push(scope.ok_or_else(|| Problem::bad("The parameter scope has a broken escape."))?);
    }
    let wrong = |scope: &String| scope.len() > LONGEST || scope.chars().any(char::is_control);
    if scopes.len() > MAX_ELEMENTS || scopes.iter().any(wrong) {
        return Err(Problem::bad("The parameter scope is the UIDP or the name of a group, at most fifty times."));
    }
    Ok(scopes)
}

fn short(parameters: &Parameters, name: &str) -> Result<Option<String>, Problem> {
    match parameters.one(name)? {
        Some(value) if value.len() > LONGEST || value.chars().any(char::is_control) => {
            Err(Problem::bad(format!("The parameter {name} is too long, or has characters that no text has.")))
        }
        value => Ok(value.map(str::to_owned)),
    }
}

fn is_plain(text: &str) -> bool {
    text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_word(text: &str) -> bool {
    text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0123456789012345678901234567890123456789/0123456789abcdef";

    fn read(query: &str) -> Result<LoginRequest, Problem> {
        LoginRequest::read(&Parameters::read(query.as_bytes()).unwrap(), &Redirects::default(), "https://api.example")
    }

    #[test]
    fn what_the_published_client_sends() {
        let request = read(
            "exit=redirect&redirect=http%3A%2F%2Flocalhost%3A4%2Fcallback%3Ftoken%3Dtrue%26error%3Dtrue\
             &audience=https%3A%2F%2Fapi.example%2Cregistry.example&create_refresh_token=true&skip_registration=true\
             &client_id=auth0&screen_hint=signup&scope=a%252Fb&scope=my+group",
        )
        .unwrap();
        assert_eq!(
            request.destination,
            Destination::Redirect("http://localhost:4/callback?token=true&error=true".into())
        );
        assert_eq!(request.audiences, ["https://api.example", "registry.example"]);
        assert_eq!(request.scopes, ["a/b", "my group"]);
        assert!(request.refresh && request.skip_registration);
        assert_eq!(request.screen_hint.as_deref(), Some("signup"));
    }

    #[test]
    fn without_anything_the_browser_signs_in() {
        let request = read("").unwrap();
        assert_eq!(
            (request.destination, request.audiences),
            (Destination::Page, vec!["https://api.example".to_owned()])
        );
    }

    #[test]
    fn wrong_parameters_are_named() {
        let headless = format!("headless_code={}", crate::secrets::text_of(&[9; 32]));
        for (query, name) in [
            ("exit=redirect".to_owned(), "redirect"),
            ("exit=page".into(), "exit"),
            ("redirect=http%3A%2F%2Flocalhost%2F".into(), "exit=redirect"),
            ("exit=redirect&redirect=https%3A%2F%2Fevil.example".into(), "redirect"),
            ("exit=redirect&redirect=http://localhost&redirect=http://localhost".into(), "redirect"),
            (format!("exit=redirect&redirect=http://localhost&{headless}"), "headless_code"),
            (format!("exit=redirect&{headless}"), "redirect"),
            (format!("create_refresh_token=true&{headless}"), "refresh"),
            (format!("identity={UID}&{headless}"), "identity"),
            (format!("scope=team&{headless}"), "scope"),
            ("headless_code=yolo".into(), "headless_code"),
            ("identity=me".into(), "identity"),
            ("audience=a,,b".into(), "audience"),
            ("audience=a%20b".into(), "audience"),
            ("skip_registration=1".into(), "skip_registration"),
            ("invite=a%00b".into(), "invite"),
        ] {
            let problem = read(&query).expect_err(&query);
            assert_eq!(problem.status, 400, "{query}");
            assert!(problem.text.contains(name), "{query}: {}", problem.text);
        }
        assert!(matches!(read(&headless).unwrap().destination, Destination::Headless(_)));
    }

    #[test]
    fn providers_are_named_in_one_way() {
        let named = |query: &str| ProviderHint::read(&Parameters::read(query.as_bytes()).unwrap());
        assert_eq!(
            named(&format!("idp_id={UID}")).unwrap(),
            ProviderHint::One(Choice::Provider(Uidp::parse(UID).unwrap()))
        );
        assert_eq!(named("idp_id=acme").unwrap(), ProviderHint::One(Choice::Organization("acme".into())));
        assert_eq!(
            named("client_id=auth0&connection=google").unwrap(),
            ProviderHint::One(Choice::Operator("google".into()))
        );
        assert_eq!(named("client_id=auth0").unwrap(), ProviderHint::Any);
        assert_eq!(named("client_id=other").unwrap(), ProviderHint::Client("other".into()));
        assert_eq!(named("").unwrap(), ProviderHint::Nothing);
        assert!(named("idp_id=acme&connection=google").is_err());
    }
}
