use std::borrow::Cow;
use std::fmt;

use bowline_formats::percent;

/// One segment of a template: a literal, `*` or `**`, the latter two part of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    One,
    Many,
}

/// A variable: the request field it fills and the segments that it spans.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    field: String,
    from: usize,
    to: usize,
}

/// A compiled path template of `google.api.http`, such as `/repos/{repo_id=**}/digests/{digest=*}/sbom`.
///
/// Unlike the published grammar, literals may follow `**`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    segments: Vec<Segment>,
    variables: Vec<Variable>,
    verb: Option<String>,
}

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut rest = text.strip_prefix('/').ok_or("must begin with /")?;
        let mut verb = None;
        if let Some(colon) = rest.rfind(':')
            && !rest[colon..].contains(['}', '/'])
        {
            verb = Some(rest[colon + 1..].to_owned());
            rest = &rest[..colon];
        }
        let mut template = Template { text: text.into(), segments: Vec::new(), variables: Vec::new(), verb };
        while !rest.is_empty() {
            rest = if let Some(variable) = rest.strip_prefix('{') {
                let (inner, after) = variable.split_once('}').ok_or("a variable is not closed")?;
                template.variable(inner)?;
                after
            } else {
                let end = rest.find('/').unwrap_or(rest.len());
                template.segments.push(segment(&rest[..end])?);
                &rest[end..]
            };
            rest = match rest.strip_prefix('/') {
                Some(after) => after,
                None if rest.is_empty() => rest,
                None => return Err("segments are parted by /".into()),
            };
        }
        if template.segments.iter().filter(|segment| **segment == Segment::Many).count() > 1 {
            return Err("** may occur once".into());
        }
        Ok(template)
    }

    fn variable(&mut self, inner: &str) -> Result<(), String> {
        let (field, pattern) = inner.split_once('=').unwrap_or((inner, "*"));
        let from = self.segments.len();
        for part in pattern.split('/') {
            self.segments.push(segment(part)?);
        }
        self.variables.push(Variable { field: field.into(), from, to: self.segments.len() });
        Ok(())
    }

    /// The literal segments at the start of the template.
    pub fn literal_prefix(&self) -> Vec<&str> {
        self.segments
            .iter()
            .map_while(|segment| match segment {
                Segment::Literal(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// How specific the template is: more literals first, then without `**` before with it, then more `*`.
    pub fn specificity(&self) -> (usize, bool, usize) {
        let count = |wanted: fn(&Segment) -> bool| self.segments.iter().filter(|segment| wanted(segment)).count();
        (
            count(|segment| matches!(segment, Segment::Literal(_))) + usize::from(self.verb.is_some()),
            !self.segments.contains(&Segment::Many),
            count(|segment| matches!(segment, Segment::One)),
        )
    }

    /// Names of the fields that the path fills.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|variable| variable.field.as_str())
    }

    /// Matches the raw segments of a path and returns the decoded value of each variable; absent if the path
    /// does not match.
    ///
    /// `**` matches any number of segments, including zero. `verb` is what follows the last colon of the last
    /// segment.
    pub fn captures<'t>(&'t self, path: &[&str], verb: Option<&str>) -> Option<Vec<(&'t str, String)>> {
        let mut last_without_verb;
        let segments: &[&str] = match (&self.verb, verb) {
            (None, _) => path,
            (Some(wanted), Some(given)) if wanted == given => {
                last_without_verb = path.to_vec();
                let last = last_without_verb.last_mut()?;
                *last = &last[..last.len() - given.len() - 1];
                &last_without_verb
            }
            _ => return None,
        };
        let spans = self.spans(segments)?;
        let mut values = Vec::with_capacity(self.variables.len());
        for variable in &self.variables {
            let from = spans[variable.from].0;
            let to = spans[variable.to - 1].1;
            let decoded: Option<Vec<Cow<'_, str>>> =
                segments[from..to].iter().map(|part| percent::decode(part)).collect();
            values.push((variable.field.as_str(), decoded?.join("/")));
        }
        Some(values)
    }

    /// The range of path segments that each template segment matches.
    fn spans(&self, path: &[&str]) -> Option<Vec<(usize, usize)>> {
        let fixed = self.segments.len() - usize::from(self.segments.contains(&Segment::Many));
        let spare = path.len().checked_sub(fixed)?;
        if fixed == self.segments.len() && spare > 0 {
            return None;
        }
        let mut spans = Vec::with_capacity(self.segments.len());
        let mut at = 0;
        for segment in &self.segments {
            let width = if *segment == Segment::Many { spare } else { 1 };
            let fits = match segment {
                Segment::Literal(text) => percent::decode(path[at]).is_some_and(|part| part == *text),
                Segment::One => !path[at].is_empty(),
                Segment::Many => true,
            };
            if !fits {
                return None;
            }
            spans.push((at, at + width));
            at += width;
        }
        Some(spans)
    }
}

fn segment(text: &str) -> Result<Segment, String> {
    match text {
        "" => Err("an empty segment".into()),
        "*" => Ok(Segment::One),
        "**" => Ok(Segment::Many),
        text if text.contains(['*', '{', '}']) => Err(format!("segment {text:?}")),
        text => Ok(Segment::Literal(text.into())),
    }
}

impl fmt::Display for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn captures(template: &str, path: &str) -> Option<Vec<String>> {
        let template = Template::parse(template).unwrap();
        let segments: Vec<&str> = path.strip_prefix('/').unwrap().split('/').collect();
        let verb = segments.last().and_then(|last| last.rsplit_once(':')).map(|(_, verb)| verb);
        template.captures(&segments, verb).map(|values| values.into_iter().map(|(_, value)| value).collect())
    }

    #[test]
    fn matches_what_the_contract_uses() {
        assert_eq!(captures("/iam/v2/groups", "/iam/v2/groups"), Some(vec![]));
        assert_eq!(captures("/iam/v2/groups/{uid=**}", "/iam/v2/groups/a/b"), Some(vec!["a/b".into()]));
        assert_eq!(captures("/iam/v2/groups/{uid=**}", "/iam/v2/groups/a%2Fb"), Some(vec!["a/b".into()]));
        assert_eq!(captures("/iam/v2/groups/{uid=**}", "/iam/v2/groups"), Some(vec![String::new()]));
        assert_eq!(captures("/iam/v2/groups:lookupGroup", "/iam/v2/groups:lookupGroup"), Some(vec![]));
        assert_eq!(captures("/iam/v2/groups:lookupGroup", "/iam/v2/groups"), None);
        assert_eq!(
            captures("/r/{id=**}/digests/{digest=*}/sbom", "/r/a/b/digests/sha256:1/sbom"),
            Some(vec!["a/b".into(), "sha256:1".into()])
        );
        assert_eq!(captures("/r/{id=**}:sync", "/r/a/b:sync"), Some(vec!["a/b".into()]));
        assert_eq!(captures("/r/{id=**}/digests", "/r/a/digest"), None);
        assert_eq!(captures("/r/{id=*}", "/r/"), None);
        assert_eq!(captures("/r/{id=**}", "/r/%zz"), None);
    }

    #[test]
    fn refuses_broken_templates() {
        for text in ["x", "/a//b", "/{a", "/{a=**}/{b=**}", "/{a}b", "/a*"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(template in "/[a{}=*:/]{0,12}", path in "/[a%2F:/]{0,12}") {
            if let Ok(template) = Template::parse(&template) {
                let segments: Vec<&str> = path[1..].split('/').collect();
                let verb = segments.last().and_then(|last| last.rsplit_once(':')).map(|(_, verb)| verb);
                let _ = template.captures(&segments, verb);
            }
        }
    }
}
