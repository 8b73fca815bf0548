//! The `providers` of a blueprint: which types may be deployed.

use kiln_value::Value;

use super::library::{ComponentTypeId, Library};
use super::model::Requirement;

/// Patterns of type names; `*` is any text.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    /// `None` allows all.
    allow: Option<Vec<String>>,
    deny: Vec<String>,
}

impl Providers {
    /// The patterns of all requirements of the type `providers`.
    pub(crate) fn of(requires: &[Requirement]) -> Self {
        let mut providers = Self::default();
        for requirement in requires.iter().filter(|requirement| requirement.type_name == "providers") {
            let patterns = |name: &str| -> Option<Vec<String>> {
                let items = requirement.attributes.get(name)?.as_list()?;
                Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            };
            if let Some(allow) = patterns("allow") {
                providers.allow.get_or_insert_default().extend(allow);
            }
            providers.deny.extend(patterns("deny").unwrap_or_default());
        }
        providers
    }

    /// Whether a type may be deployed; `Err` contains why not.
    fn admit(&self, name: &str) -> Result<(), String> {
        if let Some(pattern) = self.deny.iter().find(|pattern| matches(pattern, name)) {
            return Err(format!("{name} is denied by {pattern}"));
        }
        match &self.allow {
            Some(allow) if !allow.iter().any(|pattern| matches(pattern, name)) => {
                Err(format!("{name} is not in the allowed providers"))
            }
            _ => Ok(()),
        }
    }

    /// The concrete type that stands for a type. `Err` contains each candidate and why it is not used.
    pub(crate) fn choose<'a>(&self, library: &'a Library, id: ComponentTypeId) -> Result<&'a str, Vec<String>> {
        let kind = library.component(id);
        if !kind.is_abstract {
            return self.admit(&kind.name).map(|()| kind.name.as_str()).map_err(|why| vec![why]);
        }
        let mut why = Vec::new();
        for candidate in kind.concrete.iter().map(|id| library.component(*id)) {
            match self.admit(&candidate.name) {
                Ok(()) => return Ok(&candidate.name),
                Err(reason) => why.push(reason),
            }
        }
        Err(why)
    }
}

/// Whether the pattern matches the whole name. Linear in `pattern × name`: only the last `*` is ever tried again.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn star_is_any_text() {
        assert!(matches("*", "a.b"));
        assert!(matches("org.openstack.*", "org.openstack.nova.Server"));
        assert!(matches("*.Server", "org.jetty.Server"));
        assert!(matches("a*b*c", "aXbYbZc"));
        assert!(!matches("org.openstack.*", "org.openstackx"));
        assert!(!matches("a", "ab"));
    }
}
