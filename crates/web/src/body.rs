//! Request bodies up to a size.

use axum::body::Body;
use futures::StreamExt;

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

/// Reads a body; `length` is the length that the client announced. At most `limit` bytes are stored.
pub async fn read_body(body: Body, length: usize, limit: usize) -> Result<Vec<u8>, BodyError> {
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
