//! Members of a query or a form.

use bowline_fronts::request::pairs;

use crate::problem::Problem;

/// Maximum bytes of a query or a form.
const MAX_BYTES: usize = 32 << 10;

/// Name and value pairs as they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads a query or a form.
    ///
    /// # Errors
    /// It is too long, or has a broken escape.
    pub(crate) fn read(text: &[u8]) -> Result<Parameters, Problem> {
        if text.len() > MAX_BYTES {
            return Err(Problem::bad("The request is too long."));
        }
        let text = std::str::from_utf8(text).map_err(|_| Problem::bad("The request is not UTF-8."))?;
        let pairs = pairs(text).map_err(|_| Problem::bad("The request has a broken escape."))?;
        Ok(Parameters(pairs))
    }

    /// The value of a name; an empty one counts as none.
    ///
    /// # Errors
    /// The name comes twice: only an attacker gains from choosing one of the two.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.all(name);
        let first = values.next();
        match values.next() {
            None => Ok(first.filter(|value| !value.is_empty())),
            Some(_) => Err(Problem::bad(format!("The parameter {name} is given more than once."))),
        }
    }

    /// The value of a name that must be there.
    ///
    /// # Errors
    /// It is missing, or comes twice.
    pub(crate) fn required(&self, name: &str) -> Result<&str, Problem> {
        self.one(name)?.ok_or_else(|| Problem::bad(format!("The parameter {name} is missing.")))
    }

    /// Whether a name has the value `true`.
    ///
    /// # Errors
    /// It has another value than `true` or `false`, or comes twice.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.one(name)? {
            Some("true") => Ok(true),
            None | Some("false") => Ok(false),
            Some(_) => Err(Problem::bad(format!("The parameter {name} is either true or false."))),
        }
    }

    /// All values of a name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Everything but these names.
    pub(crate) fn without(&self, names: &[&str]) -> impl Iterator<Item = &(String, String)> {
        self.0.iter().filter(move |(key, _)| !names.contains(&key.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_once() {
        let parameters = Parameters::read(b"a=1&b=x&b=y&c=&d=true&e=yes&f=%C3%A4+b").unwrap();
        assert_eq!(parameters.one("a").unwrap(), Some("1"));
        assert!(parameters.one("b").is_err());
        assert_eq!(parameters.one("c").unwrap(), None);
        assert!(parameters.required("c").is_err());
        assert!(parameters.flag("d").unwrap() && !parameters.flag("c").unwrap());
        assert!(parameters.flag("e").is_err());
        assert_eq!(parameters.one("f").unwrap(), Some("ä b"));
        assert!(Parameters::read(b"a=%zz").is_err() && Parameters::read(b"a=\xff").is_err());
        assert!(Parameters::read(&vec![b'a'; MAX_BYTES + 1]).is_err());
    }
}
