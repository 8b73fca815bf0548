//! Calls for webhooks. Heat has none of them.

use http::Method;
use kiln_value::{Map, Value};

use crate::client::{segment, unwrap, unwrap_list};
use crate::{Client, Error};

/// A list of deliveries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryFilter {
    /// Only `pending`, `delivered` or `failed` ones.
    pub outcome: Option<String>,
    /// Maximum number.
    pub limit: Option<u64>,
    /// Only deliveries before the one with this ID.
    pub marker: Option<String>,
}

impl Client {
    /// Makes a webhook with these `url`, `events`, `stack`, `description`, `handshake` and `enabled`. The answer has the `key` of
    /// the signatures, which no other call returns.
    pub async fn create_webhook(&self, terms: Map) -> Result<Value, Error> {
        unwrap(self.call(Method::POST, "/webhooks", &vec![], Some(&terms.into())).await?, "webhook")
    }

    /// The webhooks of the project, oldest first.
    pub async fn webhooks(&self) -> Result<Vec<Value>, Error> {
        unwrap_list(self.get("/webhooks", &vec![]).await?, "webhooks")
    }

    /// A webhook.
    pub async fn webhook(&self, id: &str) -> Result<Value, Error> {
        unwrap(self.get(&path(id, ""), &vec![]).await?, "webhook")
    }

    /// Changes a webhook.
    pub async fn change_webhook(&self, id: &str, terms: Map) -> Result<Value, Error> {
        unwrap(self.call(Method::PATCH, &path(id, ""), &vec![], Some(&terms.into())).await?, "webhook")
    }

    /// Deletes a webhook.
    pub async fn delete_webhook(&self, id: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &path(id, ""), &vec![], None).await.map(drop)
    }

    /// Replaces the key of a webhook; the answer has the new `key`.
    pub async fn rotate_webhook_key(&self, id: &str) -> Result<Value, Error> {
        unwrap(self.call(Method::POST, &path(id, "/rotate"), &vec![], None).await?, "webhook")
    }

    /// Sends a test event; returns the ID of its delivery.
    pub async fn test_webhook(&self, id: &str) -> Result<String, Error> {
        let sent = unwrap(self.call(Method::POST, &path(id, "/test"), &vec![], None).await?, "delivery")?;
        Ok(sent.str_at("id").unwrap_or_default().to_owned())
    }

    /// The deliveries of a webhook, newest first.
    pub async fn webhook_deliveries(&self, id: &str, filter: &DeliveryFilter) -> Result<Vec<Value>, Error> {
        let outcome = filter.outcome.clone().map(|outcome| ("outcome".to_owned(), outcome));
        let query = outcome.into_iter().collect();
        self.pages(&path(id, "/deliveries"), "deliveries", query, filter.limit, filter.marker.clone()).await
    }

    /// Sends a delivery again.
    pub async fn redeliver(&self, id: &str, delivery: &str) -> Result<(), Error> {
        let path = path(id, &format!("/deliveries/{}/redeliver", segment(delivery)));
        self.call(Method::POST, &path, &vec![], None).await.map(drop)
    }
}

fn path(id: &str, rest: &str) -> String {
    format!("/webhooks/{}{rest}", segment(id))
}
