//! Request bodies up to a size.

use axum::body::Body;
use futures::StreamExt;
use http::header::CONTENT_LENGTH;
use http::request::Parts;

/// A body that is too large is still received and discarded, up to this multiple of the limit: many clients do not read
/// the response before they have sent everything.
const PATIENCE: usize = 16;

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It has more bytes than allowed: at least this number.
    #[error("the body has {0} bytes")]
    TooLarge(usize),
    /// The connection failed.
    #[error("the connection failed")]
    Broken,
}

/// The length of the body that the client announced; 0: none.
pub fn announced_length(head: &Parts) -> usize {
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    length.unwrap_or(0)
}

/// Reads the body of a request. At most `limit` bytes are stored.
pub async fn read_body(head: &Parts, body: Body, limit: usize) -> Result<Vec<u8>, BodyError> {
    let length = announced_length(head);
    let mut bytes = Vec::with_capacity(length.min(limit));
    let mut arrived = 0;
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| BodyError::Broken)?;
        arrived += chunk.len();
        if arrived <= limit {
            bytes.extend_from_slice(&chunk);
        } else if arrived > limit.saturating_mul(PATIENCE) {
            break;
        }
    }
    let size = length.max(arrived);
    if size > limit { Err(BodyError::TooLarge(size)) } else { Ok(bytes) }
}
