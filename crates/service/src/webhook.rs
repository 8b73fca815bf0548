//! Webhooks: users make, change and test them, look at their deliveries and send these again.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use kiln_identity::Caller;
use kiln_stack::Backends;
use kiln_store::webhook::{DeliveryQuery, EventPattern, Receiver, WebhookKey};
use kiln_store::{Author, StackId, Webhook, WebhookDelivery, WebhookId, WebhookMessage, WebhookStore, WebhookTerms};
use kiln_value::Secret;
use url::Url;
use uuid::Uuid;

use crate::Error;

/// What is sent if nothing else is requested: everything except the events of single resources.
const USUAL: [&str; 4] = ["stack.*", "plan.*", "guard.*", "drift.*"];
/// Patterns of a webhook.
const MOST_PATTERNS: usize = 20;
/// Characters of a URL, and of a description.
const LONGEST: usize = 2_000;
/// How long a key that was replaced still signs.
const OLD_KEY: SignedDuration = SignedDuration::from_hours(24);
/// How often a change is tried again, if others change the webhook.
const ATTEMPTS: usize = 3;

/// Webhooks of projects.
#[derive(Clone)]
pub struct Webhooks {
    /// Their store.
    pub store: Arc<dyn WebhookStore>,
    /// Time and randomness.
    pub backends: Backends,
    /// Maximum number of a project.
    pub most: usize,
    /// Whether users cannot do without the handshake.
    pub handshake_required: bool,
}

/// What a user sets of a webhook; what is absent stays as it is, or has its default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookChange {
    /// Where events are sent.
    pub url: Option<String>,
    /// Patterns of types of events.
    pub events: Option<Vec<String>>,
    /// Only events of this root stack; `Some(None)`: of all stacks.
    pub stack: Option<OnlyStack>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether the receiver must allow Kiln to send.
    pub handshake: Option<bool>,
    /// Whether events are sent.
    pub enabled: Option<bool>,
}

/// Which stacks a webhook is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnlyStack {
    /// All stacks of the project.
    All,
    /// The tree of a root stack.
    One(StackId),
}

impl Webhooks {
    /// Makes a webhook, with a new key.
    ///
    /// # Errors
    /// [`Error::Value`], [`Error::Limit`], and errors of the store.
    pub async fn create(&self, caller: &Caller, change: &WebhookChange) -> Result<Webhook, Error> {
        if change.url.is_none() {
            return Err(Error::Value("A webhook needs a 'url'.".to_owned()));
        }
        if self.store.webhooks(&caller.project_id).await?.len() >= self.most {
            return Err(Error::Limit(format!("You have reached the maximum webhooks per project, {}.", self.most)));
        }
        let usual = USUAL.iter().filter_map(|pattern| EventPattern::new(pattern).ok());
        let mut terms = WebhookTerms {
            url: Secret::new(String::new()),
            keys: vec![self.new_key()],
            events: usual.collect(),
            stack: None,
            description: String::new(),
            handshake: true,
            disabled: None,
        };
        self.apply(change, &mut terms)?;
        let webhook = Webhook {
            id: WebhookId(self.backends.chance.uuid()),
            project: caller.project_id.clone(),
            terms,
            receiver: Receiver::default(),
            author: Author { user_id: caller.user_id.clone(), username: caller.username.clone() },
            created: self.backends.clock.now(),
            version: 1,
        };
        self.store.add_webhook(&webhook).await?;
        tracing::info!(webhook = %webhook.id, project = webhook.project, user = caller.user_id, "webhook made");
        Ok(webhook)
    }

    /// The webhooks of the project of the caller, oldest first.
    pub async fn list(&self, caller: &Caller) -> Result<Vec<Webhook>, Error> {
        Ok(self.store.webhooks(&caller.project_id).await?)
    }

    /// A webhook of the project of the caller.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub async fn webhook(&self, caller: &Caller, id: &str) -> Result<Webhook, Error> {
        let found = match id.parse() {
            Ok(id) => self.store.webhook(id).await?,
            Err(_) => None,
        };
        found
            .filter(|webhook| webhook.project == caller.project_id)
            .ok_or_else(|| Error::NotFound(format!("Webhook {id}")))
    }

    /// Changes a webhook. Its receiver is asked again whether it takes events.
    ///
    /// # Errors
    /// [`Error::Value`], [`Error::NotFound`], and errors of the store.
    pub async fn change(&self, caller: &Caller, id: &str, change: &WebhookChange) -> Result<Webhook, Error> {
        self.edit(caller, id, |terms| self.apply(change, terms)).await
    }

    /// Gives a webhook a new key. The present one signs too for a day.
    ///
    /// # Errors
    /// [`Error::NotFound`], and errors of the store.
    pub async fn rotate(&self, caller: &Caller, id: &str) -> Result<Webhook, Error> {
        let now = self.backends.clock.now();
        self.edit(caller, id, |terms| {
            let mut keys = vec![self.new_key()];
            keys.extend(terms.keys.first().map(|key| WebhookKey { until: Some(now + OLD_KEY), ..key.clone() }));
            terms.keys = keys;
            Ok(())
        })
        .await
    }

    /// Removes a webhook.
    ///
    /// # Errors
    /// [`Error::NotFound`], and errors of the store.
    pub async fn remove(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let webhook = self.webhook(caller, id).await?;
        if !self.store.remove_webhook(&webhook.project, webhook.id).await? {
            return Err(Error::NotFound(format!("Webhook {id}")));
        }
        tracing::info!(webhook = %webhook.id, project = webhook.project, user = caller.user_id, "webhook removed");
        Ok(())
    }

    /// Sends an event that only says that the webhook works; returns the ID of its delivery.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Value`]: it is disabled; and errors of the store.
    pub async fn test(&self, caller: &Caller, id: &str) -> Result<Uuid, Error> {
        let webhook = self.enabled(caller, id).await?;
        let message = WebhookMessage::test(&webhook, self.backends.chance.uuid(), self.backends.clock.now());
        Ok(self.store.send_to_webhook(webhook.id, &message).await?)
    }

    /// Deliveries, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`], and errors of the store.
    pub async fn deliveries(
        &self,
        caller: &Caller,
        id: &str,
        query: &DeliveryQuery,
    ) -> Result<Vec<WebhookDelivery>, Error> {
        let webhook = self.webhook(caller, id).await?;
        Ok(self.store.deliveries(webhook.id, query).await?)
    }

    /// Sends a delivery again.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Value`]: the webhook is disabled; and errors of the store.
    pub async fn redeliver(&self, caller: &Caller, id: &str, delivery: &str) -> Result<(), Error> {
        let webhook = self.enabled(caller, id).await?;
        let found = match delivery.parse() {
            Ok(delivery) => self.store.redeliver(webhook.id, delivery).await?,
            Err(_) => false,
        };
        if found { Ok(()) } else { Err(Error::NotFound(format!("Delivery {delivery}"))) }
    }

    async fn enabled(&self, caller: &Caller, id: &str) -> Result<Webhook, Error> {
        let webhook = self.webhook(caller, id).await?;
        match &webhook.terms.disabled {
            None => Ok(webhook),
            Some(why) => Err(Error::Value(format!("The webhook is disabled: {why}. Enable it first."))),
        }
    }

    async fn edit(
        &self,
        caller: &Caller,
        id: &str,
        edit: impl Fn(&mut WebhookTerms) -> Result<(), Error>,
    ) -> Result<Webhook, Error> {
        for _ in 0..ATTEMPTS {
            let mut webhook = self.webhook(caller, id).await?;
            edit(&mut webhook.terms)?;
            if self.store.change_webhook(&webhook).await? {
                tracing::info!(webhook = %webhook.id, project = webhook.project, user = caller.user_id, "webhook changed");
                return self.webhook(caller, id).await;
            }
        }
        Err(Error::Value(format!("The webhook {id} is being changed by others. Try it again.")))
    }

    fn apply(&self, change: &WebhookChange, terms: &mut WebhookTerms) -> Result<(), Error> {
        if let Some(url) = &change.url {
            terms.url = Secret::new(url_of(url)?);
        }
        if let Some(events) = &change.events {
            if events.is_empty() || events.len() > MOST_PATTERNS {
                return Err(Error::Value(format!("'events' must have 1 to {MOST_PATTERNS} patterns.")));
            }
            let patterns = events.iter().map(|pattern| EventPattern::new(pattern));
            terms.events = patterns.collect::<Result<_, _>>().map_err(|error| Error::Value(format!("{error}.")))?;
        }
        if let Some(stack) = change.stack {
            terms.stack = match stack {
                OnlyStack::All => None,
                OnlyStack::One(root) => Some(root),
            };
        }
        if let Some(description) = &change.description {
            if description.chars().count() > LONGEST {
                return Err(Error::Value(format!("'description' is longer than {LONGEST} characters.")));
            }
            terms.description.clone_from(description);
        }
        if let Some(handshake) = change.handshake {
            if !handshake && self.handshake_required {
                return Err(Error::Value(
                    "The operator requires the handshake: the receiver must allow Kiln to send.".to_owned(),
                ));
            }
            terms.handshake = handshake;
        }
        match change.enabled {
            Some(true) => terms.disabled = None,
            Some(false) if terms.disabled.is_none() => terms.disabled = Some("a user has disabled it".to_owned()),
            Some(false) | None => {}
        }
        Ok(())
    }

    fn new_key(&self) -> WebhookKey {
        let random = [self.backends.chance.uuid(), self.backends.chance.uuid()].map(Uuid::into_bytes).concat();
        WebhookKey { secret: Secret::new(format!("whsec_{}", STANDARD.encode(random))), until: None }
    }
}

/// The key that is shown after a create or a rotate: the newest.
pub fn newest_key(webhook: &Webhook) -> Option<&Secret<String>> {
    webhook.terms.keys.first().map(|key| &key.secret)
}

/// Checks a URL. Whether its address may be called is known when it is called.
fn url_of(text: &str) -> Result<String, Error> {
    // Without the URL itself, which may contain a password.
    let invalid = |why: &str| Error::Value(format!("The URL of the webhook {why}."));
    let url: Url = text.parse().map_err(|error| invalid(&format!("is not valid: {error}")))?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(invalid("does not begin with https:// or http://"));
    }
    if url.fragment().is_some() {
        return Err(invalid("has a fragment (#)"));
    }
    if url.as_str().len() > LONGEST {
        return Err(invalid(&format!("is longer than {LONGEST} characters")));
    }
    Ok(url.into())
}

/// When a key that was replaced ends, if one still signs.
pub fn old_key_until(webhook: &Webhook, now: Timestamp) -> Option<Timestamp> {
    webhook.terms.keys.iter().filter_map(|key| key.until).find(|until| now < *until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_checked_and_an_error_does_not_repeat_it() {
        assert_eq!(
            url_of("https://user:secret@example.com/x?token=secret").unwrap(),
            "https://user:secret@example.com/x?token=secret"
        );
        let long = format!("https://secret.example/{}", "x".repeat(LONGEST));
        for refused in ["ftp://secret.example", "https://", "secret", "https://example.com/#secret", long.as_str()] {
            let error = url_of(refused).unwrap_err().to_string();
            assert!(error.contains("The URL of the webhook") && !error.contains("secret"), "{error}");
        }
    }
}
