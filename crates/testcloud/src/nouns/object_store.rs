//! Swift: containers without objects, and their headers.

use serde_json::json;

use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) fn serve(world: &mut CloudState, request: &ServiceCall, caller: &Caller, segments: &[&str]) -> Outcome {
    let missing = || Refusal::missing("The resource could not be found.");
    match segments {
        [account, ..] if *account != format!("AUTH_{}", caller.project) => {
            Err(Refusal::forbidden("Access was denied."))
        }
        [account] if request.method == "POST" => {
            let mut row = world.nouns.rows.get(account).cloned().unwrap_or_default();
            row.put("id", *account);
            row.put("_noun", "object-store/account");
            row.extend(headers(request, "x-account-"));
            world.nouns.rows.insert(row);
            Ok(Reply::empty(204))
        }
        [account, name] => {
            let key = format!("{account}/{name}");
            match request.method.as_str() {
                "PUT" => {
                    let old = world.nouns.rows.get(&key).cloned();
                    let status = if old.is_some() { 202 } else { 201 };
                    let mut row = old.unwrap_or_default();
                    row.put("id", key);
                    row.put("name", *name);
                    row.put("_noun", "object-store/containers");
                    row.extend(headers(request, "x-container-"));
                    world.nouns.rows.insert(row);
                    Ok(Reply::empty(status))
                }
                "GET" => {
                    let row = world.nouns.rows.get(&key).ok_or_else(missing)?;
                    let objects: Vec<_> = row.texts("_objects").into_iter().map(|name| json!({"name": name})).collect();
                    Ok(Reply::ok(json!(objects)))
                }
                "HEAD" => {
                    world.nouns.rows.get(&key).ok_or_else(missing)?;
                    let reply = Reply::empty(204).header("x-container-object-count", "0");
                    Ok(reply.header("x-container-bytes-used", "0"))
                }
                "DELETE" => {
                    let row = world.nouns.rows.get(&key).ok_or_else(missing)?;
                    if !row.list("_objects").is_empty() {
                        return Err(Refusal::conflict("There was a conflict when trying to complete your request."));
                    }
                    world.nouns.rows.remove(&key);
                    Ok(Reply::empty(204))
                }
                _ => Err(Refusal::no_method()),
            }
        }
        [account, name, object @ ..] if !object.is_empty() => {
            let (key, object) = (format!("{account}/{name}"), object.join("/"));
            let row = world.nouns.rows.get(&key).ok_or_else(missing)?;
            let has = row.texts("_objects").contains(&object);
            match request.method.as_str() {
                "PUT" if !has => drop(world.nouns.rows.edit(&key, |row| row.push("_objects", object))),
                "PUT" => {}
                "DELETE" if has => drop(world.nouns.rows.edit(&key, |row| row.drop_from("_objects", |o| *o == object))),
                _ => return Err(missing()),
            }
            Ok(Reply::empty(if request.method == "PUT" { 201 } else { 204 }))
        }
        _ => Err(Refusal::no_route()),
    }
}

/// The headers of a request that begin with a prefix.
fn headers(request: &ServiceCall, prefix: &str) -> Row {
    let own = request.headers.iter().filter(|(name, _)| name.as_str().starts_with(prefix));
    own.filter_map(|(name, value)| Some((name.as_str().to_owned(), json!(value.to_str().ok()?)))).collect()
}
