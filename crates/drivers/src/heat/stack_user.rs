//! The Keystone user of a resource, who sends its signals: in the domain of stack users, with a project for each tree
//! of stacks.
//!
//! Project and user have names that only their resource gives, and the secrets are stored before they are used. So
//! every call may be repeated: an object that a lost call created is found by its name.

use kiln_resource::{CloudRequest, Context, Facts, Failure, FailureKind, Found, Method, Step, UserDomain};
use kiln_value::{Class, Value, value};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use std::time::Duration;

use crate::call::{KEYSTONE, made_id, take, unreadable};
use crate::path::segment;

/// Entries of a resource's data.
pub(crate) const USER: &str = "user_id";
pub(crate) const PASSWORD: &str = "password";
pub(crate) const ACCESS: &str = "access_key";
pub(crate) const SECRET: &str = "secret_key";
pub(crate) const CREDENTIAL: &str = "credential_id";

/// Maximum length of names in Keystone.
const NAME_LIMIT: usize = 64;

/// Steps of the create.
const CREATE_USER: &str = "user";
const GRANT_ROLE: &str = "user role";
const CREATE_KEYS: &str = "user keys";
const READY: &str = "user ready";

/// The first step of a create: secrets, and the project if the stack has none yet.
pub(crate) async fn start(cx: &Context<'_>) -> Result<Step, Failure> {
    let domain = domain(cx).await?;
    let project = match &cx.facts.stack.user_project_id {
        Some(project) => project.clone(),
        None => create_project(cx, &domain).await?,
    };
    Ok(begun(cx, project))
}

/// The next step of a create, with an EC2 key or without; `None`: the user is ready.
pub(crate) async fn poll(cx: &Context<'_>, state: &Value, keys: bool) -> Result<Option<Step>, Failure> {
    let next = |state: &str| Step::wait(state, Duration::ZERO);
    let domain = async || domain(cx).await;
    Ok(match state.as_str() {
        Some(CREATE_USER) => {
            let user = create_user(cx, &domain().await?).await?;
            Some(next(GRANT_ROLE).data(USER, user.as_str()).id(user))
        }
        Some(GRANT_ROLE) => {
            grant_role(cx, &domain().await?).await?;
            Some(next(if keys { CREATE_KEYS } else { READY }))
        }
        Some(CREATE_KEYS) => {
            let id = create_keys(cx, &domain().await?).await?;
            Some(next(READY).data(CREDENTIAL, id))
        }
        _ => None,
    })
}

/// The last step of a create with an EC2 key, for a user who was created without one.
pub(crate) async fn create_keys_of(cx: &Context<'_>) -> Result<Step, Failure> {
    let id = create_keys(cx, &domain(cx).await?).await?;
    Ok(Step::wait(READY, Duration::ZERO).data(CREDENTIAL, id))
}

/// The first step of a create of a key only, for a user in the data: its ID is the access key.
pub(crate) fn begun_keys(cx: &Context<'_>) -> Step {
    let mut rng = StdRng::from_seed(cx.seed);
    let access = format!("{:032x}", rand::Rng::random::<u128>(&mut rng));
    let secret = password(&mut rng);
    Step::wait(CREATE_KEYS, Duration::ZERO).id(access.as_str()).data(ACCESS, access).data(SECRET, secret)
}

/// Deletes the key of a user who remains.
pub(crate) async fn delete_keys(cx: &Context<'_>) -> Result<(), Failure> {
    let Some(access) = text(cx.facts, ACCESS) else { return Ok(()) };
    let domain = domain(cx).await?;
    let id = text(cx.facts, CREDENTIAL).map_or_else(|| hash(access), str::to_owned);
    KEYSTONE.delete(&admin(cx, &domain), format!("/v3/credentials/{}", segment(&id))).await
}

/// Looks for what a lost first step has created.
pub(crate) async fn find(cx: &Context<'_>) -> Result<Found, Failure> {
    if let Some(project) = &cx.facts.stack.user_project_id {
        return Ok(Found::Made(begun(cx, project.clone())));
    }
    let domain = domain(cx).await?;
    Ok(match find_project(cx, &domain).await? {
        Some(project) => Found::Made(begun(cx, project)),
        None => Found::NotMade,
    })
}

/// Deletes the user with its keys.
pub(crate) async fn delete(cx: &Context<'_>) -> Result<(), Failure> {
    let (user, project) = (text(cx.facts, USER), &cx.facts.stack.user_project_id);
    if user.is_none() && project.is_none() {
        return Ok(());
    }
    let domain = domain(cx).await?;
    let admin = admin(cx, &domain);
    if let Some(credential) = text(cx.facts, CREDENTIAL) {
        KEYSTONE.delete(&admin, format!("/v3/credentials/{}", segment(credential))).await?;
    }
    // The ID is not known if the response to the create was lost.
    let user = match user {
        Some(user) => Some(user.to_owned()),
        None => find_user(cx, &domain).await?,
    };
    match user {
        Some(user) => KEYSTONE.delete(&admin, format!("/v3/users/{}", segment(&user))).await,
        None => Ok(()),
    }
}

/// Disables or enables the user.
pub(crate) async fn enable(cx: &Context<'_>, enabled: bool) -> Result<(), Failure> {
    let Some(user) = text(cx.facts, USER) else { return Ok(()) };
    let body = value!({"user": {"enabled": enabled}});
    let request = CloudRequest::new("identity", Method::Patch, format!("/v3/users/{}", segment(user))).body(body);
    domain(cx).await?.cloud.call(request).await.map(drop)
}

/// A token of the user for the project of the stack's users.
pub(crate) async fn token(cx: &Context<'_>) -> Result<String, Failure> {
    let (Some(user), Some(password)) = (text(cx.facts, USER), text(cx.facts, PASSWORD)) else {
        return Err(Failure::other(Class::ValueError, "Can't get user token, user not yet created"));
    };
    let body = value!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": {"id": user, "password": password}}},
        "scope": {"project": {"id": (cx.facts.stack.user_project_id.clone())}},
    }});
    let request = CloudRequest::new("identity", Method::Post, "/v3/auth/tokens").query("nocatalog", "").body(body);
    let response = domain(cx).await?.cloud.call(request).await?;
    let token = response.headers.get("x-subject-token").and_then(Value::as_str);
    token.map(str::to_owned).ok_or_else(|| unreadable("a token was issued without an ID"))
}

/// The ID of the domain of stack users.
pub(crate) async fn domain_id(cx: &Context<'_>) -> Result<String, Failure> {
    Ok(domain(cx).await?.id)
}

/// The name of the user: the physical name, or the end of it.
pub(crate) fn user_name(facts: &Facts) -> String {
    let excess = facts.physical_name.chars().count().saturating_sub(NAME_LIMIT);
    facts.physical_name.chars().skip(excess).collect()
}

/// An entry of the resource's data.
pub(crate) fn text<'a>(facts: &'a Facts, key: &str) -> Option<&'a str> {
    facts.data.get(key).and_then(Value::as_str)
}

async fn domain(cx: &Context<'_>) -> Result<UserDomain, Failure> {
    cx.cloud.user_domain().await?.ok_or_else(|| {
        let text = "The users of stacks need a domain: set [DEFAULT] stack_user_domain_id, stack_domain_admin and \
                    stack_domain_admin_password";
        Failure::other(Class::NotSupported, text)
    })
}

fn admin<'a>(cx: &Context<'a>, domain: &'a UserDomain) -> Context<'a> {
    Context { cloud: &*domain.cloud, ..*cx }
}

/// The state after the first step. Secrets are stored before they are used.
fn begun(cx: &Context<'_>, project: String) -> Step {
    let mut rng = StdRng::from_seed(cx.seed);
    let access = format!("{:032x}", rand::Rng::random::<u128>(&mut rng));
    let (password, secret) = (password(&mut rng), password(&mut rng));
    let step = Step::wait(CREATE_USER, Duration::ZERO).user_project(project);
    step.data(PASSWORD, password).data(ACCESS, access).data(SECRET, secret)
}

/// Heat's passwords: 32 characters with at least one of each class.
fn password(rng: &mut StdRng) -> String {
    const CLASSES: [&str; 4] = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", "!@#%^&*"];
    let all: Vec<char> = CLASSES.concat().chars().collect();
    let mut text: Vec<char> =
        CLASSES.iter().filter_map(|class| class.chars().collect::<Vec<_>>().choose(rng).copied()).collect();
    while let (true, Some(next)) = (text.len() < 32, all.choose(rng)) {
        text.push(*next);
    }
    text.shuffle(rng);
    text.into_iter().collect()
}

/// Heat's name of the project of a stack's users.
fn project_name(facts: &Facts) -> String {
    format!("{}-{}", facts.stack.project_id, facts.stack.root_id).chars().take(NAME_LIMIT).collect()
}

/// Another resource of the stack may create it at the same time.
async fn create_project(cx: &Context<'_>, domain: &UserDomain) -> Result<String, Failure> {
    let admin = admin(cx, domain);
    let project = value!({
        "name": (project_name(cx.facts)),
        "domain_id": (domain.id.as_str()),
        "description": "Heat stack user project",
    });
    match KEYSTONE.post(&admin, "/v3/projects", value!({"project": project})).await {
        Ok(body) => Ok(made_id(take(body, "project").str_at("id"), "project")?.to_owned()),
        Err(failure) if failure.kind == FailureKind::Conflict => find_project(cx, domain).await?.ok_or(failure),
        Err(failure) => Err(failure),
    }
}

async fn find_project(cx: &Context<'_>, domain: &UserDomain) -> Result<Option<String>, Failure> {
    let name = project_name(cx.facts);
    let query = [("name", name.as_str()), ("domain_id", domain.id.as_str())];
    let found = KEYSTONE.list(&admin(cx, domain), "/v3/projects", &query, "projects").await?;
    Ok(found.first().and_then(|project| project.str_at("id")).map(str::to_owned))
}

async fn create_user(cx: &Context<'_>, domain: &UserDomain) -> Result<String, Failure> {
    let admin = admin(cx, domain);
    let password = text(cx.facts, PASSWORD).unwrap_or_default();
    // The rules of Keystone for passwords of people do not apply: nobody can renew that of a server.
    let options = value!({
        "ignore_change_password_upon_first_use": true,
        "ignore_password_expiry": true,
        "ignore_lockout_failure_attempts": true,
    });
    let body = value!({"user": {
        "name": (user_name(cx.facts)),
        "password": password,
        "enabled": true,
        "options": options,
        "default_project_id": (cx.facts.stack.user_project_id.clone()),
        "domain_id": (domain.id.as_str()),
    }});
    match KEYSTONE.post(&admin, "/v3/users", body).await {
        Ok(body) => Ok(made_id(take(body, "user").str_at("id"), "user")?.to_owned()),
        Err(failure) if failure.kind == FailureKind::Conflict => find_user(cx, domain).await?.ok_or(failure),
        Err(failure) => Err(failure),
    }
}

/// The user of the resource, by its name and project.
async fn find_user(cx: &Context<'_>, domain: &UserDomain) -> Result<Option<String>, Failure> {
    let name = user_name(cx.facts);
    let query = [("name", name.as_str()), ("domain_id", domain.id.as_str())];
    let found = KEYSTONE.list(&admin(cx, domain), "/v3/users", &query, "users").await?;
    let own = |user: &&Value| user.str_at("default_project_id") == cx.facts.stack.user_project_id.as_deref();
    Ok(found.iter().find(own).and_then(|user| user.str_at("id")).map(str::to_owned))
}

async fn grant_role(cx: &Context<'_>, domain: &UserDomain) -> Result<(), Failure> {
    let admin = admin(cx, domain);
    let roles = KEYSTONE.list(&admin, "/v3/roles", &[("name", domain.role.as_str())], "roles").await?;
    let name = user_name(cx.facts);
    let role = roles.first().and_then(|role| role.str_at("id")).ok_or_else(|| {
        let text = format!("Failed to add user {name} to role {}, check role exists!", domain.role);
        Failure::other(Class::Error, text)
    })?;
    let project = cx.facts.stack.user_project_id.as_deref().unwrap_or_default();
    let user = text(cx.facts, USER).unwrap_or_default();
    let path = format!("/v3/projects/{}/users/{}/roles/{}", segment(project), segment(user), segment(role));
    admin.cloud.call(CloudRequest::new("identity", Method::Put, path)).await.map(drop)
}

/// Keystone derives the ID of EC2 credentials from the access key.
async fn create_keys(cx: &Context<'_>, domain: &UserDomain) -> Result<String, Failure> {
    let admin = admin(cx, domain);
    let [access, secret, user] = [ACCESS, SECRET, USER].map(|key| text(cx.facts, key).unwrap_or_default());
    let blob = kiln_value::text::json(&value!({"access": access, "secret": secret}));
    let body = value!({"credential": {
        "user_id": user,
        "project_id": (cx.facts.stack.user_project_id.clone()),
        "type": "ec2",
        "blob": blob,
    }});
    match KEYSTONE.post(&admin, "/v3/credentials", body).await {
        Ok(body) => Ok(made_id(take(body, "credential").str_at("id"), "credential")?.to_owned()),
        Err(failure) if failure.kind == FailureKind::Conflict => Ok(hash(access)),
        Err(failure) => Err(failure),
    }
}

fn hash(text: &str) -> String {
    use sha2::Digest as _;
    format!("{:x}", sha2::Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_have_every_class() {
        for seed in 0..50 {
            let text = password(&mut StdRng::seed_from_u64(seed));
            assert_eq!(text.len(), 32);
            let has = |class: fn(char) -> bool| text.chars().any(class);
            assert!(has(|c| c.is_ascii_lowercase()) && has(|c| c.is_ascii_uppercase()), "{text}");
            assert!(has(|c| c.is_ascii_digit()) && has(|c| "!@#%^&*".contains(c)), "{text}");
        }
    }

    #[test]
    fn names_fit_keystone() {
        let mut facts = Facts { physical_name: format!("{}-end", "x".repeat(80)), ..Facts::default() };
        (facts.stack.project_id, facts.stack.root_id) = ("p".repeat(32), "s".repeat(36));
        assert_eq!((user_name(&facts).len(), &user_name(&facts)[60..]), (64, "-end"));
        assert_eq!(project_name(&facts), format!("{}-{}", "p".repeat(32), "s".repeat(31)));
    }
}
