//! Long lists in pages: `NextToken` of a response leads to the next page.

use std::str::FromStr;

use futures::{StreamExt, stream};
use http::StatusCode;
use kiln_store::Stack;
use kiln_value::{Map, Value};

use crate::call::Call;
use crate::fault::Fault;

/// Stacks of a page that are read at the same time.
const AT_ONCE: usize = 8;

/// The page of a list that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page<T> {
    /// The last entry of the page before.
    pub(crate) marker: Option<T>,
    /// One more than the size of a page, to see whether there are more entries.
    pub(crate) limit: u64,
}

impl<T: FromStr> Page<T> {
    /// Reads the token of a request.
    pub(crate) fn of(call: &Call) -> Result<Self, Fault> {
        let marker = call.params.get("NextToken").map(|token| token.parse().map_err(|_| bad_token())).transpose()?;
        let mut size = call.options().page;
        if let Some(text) = call.params.get("MaxResults") {
            let most = text.parse::<u64>().ok().filter(|most| *most > 0);
            let bad = || Fault::invalid(&format!("MaxResults must be a positive number, not \"{text}\""));
            size = size.min(most.ok_or_else(bad)?);
        }
        Ok(Self { marker, limit: size.saturating_add(1) })
    }

    /// Cuts off the entry that does not belong to the page; returns the token of the next page.
    pub(crate) fn cut<R>(self, rows: &mut Vec<R>, token: impl FnOnce(&R) -> String) -> Option<String> {
        let size = usize::try_from(self.limit - 1).unwrap_or(usize::MAX).max(1);
        if rows.len() <= size {
            return None;
        }
        rows.truncate(size);
        rows.last().map(token)
    }
}

/// Reads an entry for each stack of a page, several at the same time. A stack that cannot be read, such as one with a
/// damaged template, has a brief entry, so that the others are shown.
pub(crate) async fn entries<'a, T, Read>(
    stacks: &'a [Stack],
    read: impl Fn(&'a Stack) -> Read,
    brief: impl Fn(&Stack) -> T,
) -> Result<Vec<T>, Fault>
where
    Read: Future<Output = Result<T, Fault>>,
{
    let reads: Vec<Read> = stacks.iter().map(read).collect();
    let mut reads = stream::iter(reads).buffered(AT_ONCE).zip(stream::iter(stacks));
    let mut entries = Vec::with_capacity(stacks.len());
    while let Some((entry, stack)) = reads.next().await {
        entries.push(match entry {
            Err(fault) if fault.status != StatusCode::SERVICE_UNAVAILABLE => {
                tracing::warn!(stack = %stack.id, reason = fault.message, "a stack cannot be read for a list");
                brief(stack)
            }
            entry => entry?,
        });
    }
    Ok(entries)
}

/// The page of a list that is the same for all requests, with the token of the next one.
pub(crate) fn numbered<T>(call: &Call, list: impl IntoIterator<Item = T>) -> Result<(Vec<T>, Option<String>), Fault> {
    let page: Page<usize> = Page::of(call)?;
    let mut rest: Vec<(usize, T)> = list.into_iter().enumerate().skip(page.marker.unwrap_or(0)).collect();
    let next = page.cut(&mut rest, |(index, _)| (index + 1).to_string());
    Ok((rest.into_iter().map(|(_, entry)| entry).collect(), next))
}

/// The page of a list whose entries have IDs, with the token of the next one.
pub(crate) fn marked<T>(
    call: &Call,
    mut list: Vec<T>,
    id: impl Fn(&T) -> String,
) -> Result<(Vec<T>, Option<String>), Fault> {
    let page: Page<String> = Page::of(call)?;
    if let Some(marker) = &page.marker {
        let before = list.iter().position(|entry| id(entry) == *marker).ok_or_else(bad_token)?;
        list.drain(..=before);
    }
    let next = page.cut(&mut list, &id);
    Ok((list, next))
}

/// The error for a token of another list.
pub(crate) fn bad_token() -> Fault {
    Fault::invalid("NextToken is not the token of a page.")
}

/// A list with the token of the next page.
pub(crate) fn list(name: &str, entries: Value, next: Option<String>) -> Value {
    let mut result = Map::from([(name.to_owned(), entries)]);
    result.extend(next.map(|token| ("NextToken".to_owned(), token.into())));
    result.into()
}
