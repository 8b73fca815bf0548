//! Lists that are sent in parts, so that a long one does not fill the memory.

use std::future::Future;
use std::io;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use http::StatusCode;
use serde::Serialize;

use super::reply;
use crate::error::ApiError;

/// A part of a list as JSON: its entries without brackets.
#[derive(Debug, Default)]
pub(crate) struct Part {
    text: BytesMut,
}

impl Part {
    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: &impl Serialize) {
        let start = self.text.len();
        if start > 0 {
            self.text.put_u8(b',');
        }
        if let Err(error) = serde_json::to_writer((&mut self.text).writer(), entry) {
            tracing::error!(%error, "failed to serialize an entry of a list");
            self.text.truncate(start);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// The entries of a list, part by part. A part may be empty; `None`: there are no more.
pub(crate) trait Parts: Send + 'static {
    /// The next part.
    fn next(&mut self) -> impl Future<Output = Result<Option<Part>, ApiError>> + Send;
}

/// A list as JSON: `{"<key>": [<entries>]}`.
pub(crate) enum List {
    /// Its text.
    Whole(Bytes),
    /// Part by part.
    InParts(Body),
}

impl IntoResponse for List {
    fn into_response(self) -> Response {
        match self {
            Self::Whole(text) => reply::json_bytes(StatusCode::OK, text.into()),
            Self::InParts(body) => reply::json_bytes(StatusCode::OK, body),
        }
    }
}

/// Begins to read a list. The first part is read before the response begins, so that its errors have a status; if it is
/// the last one, the response has a length. A later error breaks the connection.
pub(crate) async fn list(key: &'static str, mut parts: impl Parts) -> Result<List, ApiError> {
    let first = parts.next().await?.unwrap_or_default();
    let mut text = BytesMut::from(format!("{{\"{key}\":[").as_bytes());
    let mut any = !first.is_empty();
    text.extend_from_slice(&first.text);
    drop(first);
    let second = parts.next().await?;
    let Some(second) = second else {
        text.extend_from_slice(b"]}");
        return Ok(List::Whole(text.freeze()));
    };
    push(&mut text, &second, &mut any);
    let state = (Some(text.freeze()), Some(parts), any);
    let body = stream::unfold(state, |(ready, parts, mut any)| async move {
        if let Some(ready) = ready {
            return Some((Ok::<Bytes, io::Error>(ready), (None, parts, any)));
        }
        let mut parts = parts?;
        match parts.next().await {
            Ok(Some(part)) => {
                let mut text = BytesMut::with_capacity(part.text.len() + 1);
                push(&mut text, &part, &mut any);
                Some((Ok(text.freeze()), (None, Some(parts), any)))
            }
            Ok(None) => Some((Ok(Bytes::from_static(b"]}")), (None, None, any))),
            Err(error) => {
                tracing::warn!(?error, "a list ended too early");
                Some((Err(io::Error::other("the list cannot be read")), (None, None, any)))
            }
        }
    });
    Ok(List::InParts(Body::from_stream(body)))
}

fn push(text: &mut BytesMut, part: &Part, any: &mut bool) {
    if part.is_empty() {
        return;
    }
    if *any {
        text.put_u8(b',');
    }
    text.extend_from_slice(&part.text);
    *any = true;
}
