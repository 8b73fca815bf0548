//! Lists of a stack that are sent again as they were sent last, until the stack changes. They depend on nothing but the
//! stack and the request: the caller's permission is checked before.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use kiln_store::Stack;

use super::stream::{self, List, Parts};
use crate::call::Call;
use crate::error::ApiError;

/// The longest list that is kept, in bytes.
const LONGEST: usize = 256 << 10;

/// The list that a request asks for.
pub(crate) struct KeptList<'c> {
    call: &'c Call,
    stack: Stack,
    /// Its name among the lists of the stack; `None`: it depends on more than the stack.
    what: Option<String>,
}

impl<'c> KeptList<'c> {
    /// `of_stack`: it depends on nothing but the stack, and may be kept.
    pub(crate) fn new(call: &'c Call, stack: &Stack, of_stack: bool) -> Self {
        let what = of_stack.then(|| format!("{} {}", call.links.base(), call.path_and_query));
        Self { call, stack: stack.clone(), what }
    }

    /// The list as it was sent last, if it is current.
    pub(crate) fn get(&self) -> Option<Response> {
        let (service, backends) = (self.call.service(), self.call.backends());
        let text = service.recent.lists.get(&self.stack, self.what.as_deref()?, backends.clock.monotonic())?;
        Some(List::Whole(Bytes::from_owner(text)).into_response())
    }

    /// Reads and sends the list, and keeps it if it is short.
    pub(crate) async fn read(self, key: &'static str, parts: impl Parts) -> Result<Response, ApiError> {
        let list = stream::list(key, parts).await?;
        if let (List::Whole(text), Some(what)) = (&list, &self.what)
            && text.len() <= LONGEST
        {
            let backends = self.call.backends();
            let (text, now): (Arc<[u8]>, _) = (Arc::from(&**text), backends.clock.monotonic());
            let bytes = text.len();
            self.call.service().recent.lists.put(&self.stack, what, text, bytes, now);
        }
        Ok(list.into_response())
    }
}
