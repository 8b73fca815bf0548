//! Retention times, batch sizes and lengths, the same for every store.

use std::time::Duration;

/// Characters of a name or tag that PostgreSQL, MariaDB and MySQL store in an index.
pub(crate) const NAME: usize = 255;

/// When a text is referenced again and its time is older than this, the time is updated …
pub(crate) const CONTENT_FRESH: Duration = Duration::from_mins(30);
/// … so that a text with an older time than this, and without references, can be deleted: no transaction that has just
/// seen it lasts half an hour.
pub(crate) const CONTENT_KEPT: Duration = Duration::from_hours(1);
/// How long handled messages are remembered: much longer than a send is repeated.
pub(crate) const HANDLED_KEPT: Duration = Duration::from_hours(1);

/// How long plans are kept after they have expired, so that users see why a plan cannot be executed any more.
pub(crate) const PLAN_KEPT: Duration = Duration::from_hours(7 * 24);

/// How long deliveries of webhooks can be looked at, and sent again.
pub(crate) const DELIVERY_KEPT: Duration = Duration::from_hours(3 * 24);

/// After so long without an attempt, failures of a webhook are a new series: its next event may come much later.
pub(crate) const FAILURE_PAUSE: Duration = Duration::from_hours(6);

/// Stacks, or plans, that one call purges.
pub(crate) const STACKS: usize = 50;
/// Events of one stack, handled messages, or deliveries of webhooks, that one statement deletes. A call that has purged so many events ends.
pub(crate) const EVENTS: usize = 5_000;
/// Events whose stacks one call looks at.
pub(crate) const LOOKED_AT: usize = 1_000;
/// Texts that one call purges.
pub(crate) const CONTENTS: usize = 200;
/// Maximum number of leases that one call claims.
pub(crate) const CLAIMS: usize = 1_000;
/// Stacks of which one call decides when they are compared with their objects.
pub(crate) const WATCHED: usize = 500;
