//! Creates the domain of stack users in Keystone.

use kiln_resource::{Cloud, CloudRequest, Failure, FailureKind, Method};
use kiln_value::{Class, Value, value};

/// The role of the domain's administrator.
const ROLE: &str = "admin";

/// A domain with its administrator.
pub struct Domain {
    /// The ID.
    pub id: String,
    /// What existed already.
    pub warnings: Vec<String>,
}

/// Creates a domain and its administrator, with the credentials of an administrator of the cloud. What exists is kept.
///
/// # Errors
/// If Keystone refuses a call, or has no role of an administrator.
pub async fn create(cloud: &dyn Cloud, name: &str, admin: &str, password: &str) -> Result<Domain, Failure> {
    let mut keystone = Keystone { cloud, warnings: Vec::new() };
    let domain = value!({ "name": name, "description": "Contains users and projects created by heat" });
    let (id, _) = keystone.create(("domain", name), domain, &[]).await?;
    let user = value!({
        "name": admin, "password": password, "domain_id": (id.as_str()), "description": "Heat domain admin",
    });
    let (user, is_new) = keystone.create(("user", admin), user, &[("domain_id", &id)]).await?;
    if !is_new {
        keystone.warnings.push(format!("the password of user {admin} is not changed"));
    }
    let role = keystone.find(("role", ROLE), &[]).await?;
    keystone.call(Method::Put, format!("/v3/domains/{id}/users/{user}/roles/{role}"), None, &[]).await?;
    Ok(Domain { id, warnings: keystone.warnings })
}

/// Keystone, with the credentials of an administrator.
struct Keystone<'a> {
    cloud: &'a dyn Cloud,
    warnings: Vec<String>,
}

impl Keystone<'_> {
    async fn call(
        &self,
        method: Method,
        path: String,
        body: Option<Value>,
        query: &[(&str, &str)],
    ) -> Result<Value, Failure> {
        let request = CloudRequest::new("identity", method, path);
        let request = query.iter().fold(request, |request, (key, value)| request.query(*key, *value));
        let request = match body {
            Some(body) => request.body(body),
            None => request,
        };
        Ok(self.cloud.call(request).await?.body)
    }

    /// The ID of an object, and whether it was created. One with this name is used as it is.
    async fn create(
        &mut self,
        (kind, name): (&str, &str),
        body: Value,
        query: &[(&str, &str)],
    ) -> Result<(String, bool), Failure> {
        let made = self.call(Method::Post, format!("/v3/{kind}s"), Some(value!({ (kind): body })), &[]).await;
        match made {
            Ok(made) => match made.get(kind).and_then(|made| made.str_at("id")) {
                Some(id) => Ok((id.to_owned(), true)),
                None => Err(missing(format!("the {kind} {name} is created, but its ID is not in the response"))),
            },
            Err(failure) if failure.kind == FailureKind::Conflict => {
                self.warnings.push(format!("the {kind} {name} already exists"));
                Ok((self.find((kind, name), query).await?, false))
            }
            Err(failure) => Err(failure),
        }
    }

    /// The ID of the object with a name.
    async fn find(&self, (kind, name): (&str, &str), query: &[(&str, &str)]) -> Result<String, Failure> {
        let query = [&[("name", name)], query].concat();
        let body = self.call(Method::Get, format!("/v3/{kind}s"), None, &query).await?;
        let found = body.get(&format!("{kind}s")).and_then(Value::as_list).unwrap_or_default();
        // Keystone may ignore the filter.
        let found = found.iter().find(|one| one.str_at("name") == Some(name)).and_then(|one| one.str_at("id"));
        found.map(str::to_owned).ok_or_else(|| missing(format!("there is no {kind} {name}")))
    }
}

fn missing(message: String) -> Failure {
    Failure::other(Class::NotFound, message)
}
