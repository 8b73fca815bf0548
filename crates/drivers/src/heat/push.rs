//! Writes the metadata of a server where its agent reads them: to an object of Swift (`POLL_TEMP_URL`) or a queue of Zaqar
//! (`ZAQAR_MESSAGE`).

use kiln_resource::shared_software::{METADATA_OBJECT, METADATA_QUEUE, PushedServer, add_for_agent};
use kiln_resource::{Context, Failure, FailureKind};
use kiln_value::{Class, Value, text};

use crate::swift::object;
use crate::zaqar::user_queue;

/// How often one step writes when the deployments change meanwhile.
const ATTEMPTS: usize = 5;

/// Writes the metadata of a server after a change of its deployments has been stored.
///
/// Several deployments may do so at once. Each reads the deployments again after it has written, so that the last one to
/// write has written all of them.
pub(super) async fn to_server(cx: &Context<'_>, server: &str) -> Result<(), Failure> {
    let Some(mut written) = cx.software.pushed_server(server).await? else { return Ok(()) };
    for _ in 0..ATTEMPTS {
        write(cx, &written).await?;
        match cx.software.pushed_server(server).await? {
            Some(now) if now != written => written = now,
            _ => return Ok(()),
        }
    }
    Err(busy())
}

/// Writes the object of a server once more. os-collect-config compares whole seconds: it does not notice a second change
/// within the same second.
pub(super) async fn again(cx: &Context<'_>, server: &str) -> Result<(), Failure> {
    match cx.software.pushed_server(server).await? {
        Some(pushed) if pushed.data.contains_key(METADATA_OBJECT) => to_server(cx, server).await,
        _ => Ok(()),
    }
}

/// Writes the metadata of the server itself.
pub(crate) async fn own(cx: &Context<'_>) -> Result<(), Failure> {
    let mut written = read_own(cx).await?;
    for _ in 0..ATTEMPTS {
        write(cx, &written).await?;
        let now = read_own(cx).await?;
        if now == written {
            return Ok(());
        }
        written = now;
    }
    Err(busy())
}

async fn read_own(cx: &Context<'_>) -> Result<PushedServer, Failure> {
    let deployed = match cx.facts.physical_id.as_deref() {
        Some(server) => cx.software.deployed(server).await?,
        None => Vec::new(),
    };
    let mut metadata = cx.facts.metadata.as_map().cloned().unwrap_or_default();
    add_for_agent(&cx.facts.data, &deployed, &mut metadata);
    Ok(PushedServer { data: cx.facts.data.clone(), metadata })
}

fn busy() -> Failure {
    Failure::new(FailureKind::Busy, Class::Conflict, "the deployments of the server change all the time")
}

async fn write(cx: &Context<'_>, server: &PushedServer) -> Result<(), Failure> {
    if let Some(place) = server.data.get(METADATA_OBJECT) {
        let part = |key: &str| place.str_at(key).unwrap_or_default();
        let content = text::json(&Value::Map(server.metadata.clone()));
        match object::put(cx, part("container"), part("object"), &content).await {
            // The container is deleted with the server.
            Err(failure) if failure.is_not_found() => {}
            outcome => outcome?,
        }
    }
    if let Some(place) = server.data.get(METADATA_QUEUE)
        && let (Some(queue), Some(signature)) = (place.str_at("queue"), place.get("signature"))
    {
        user_queue::post(cx, queue, signature, &server.metadata).await?;
    }
    Ok(())
}
