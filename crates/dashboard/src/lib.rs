//! The dashboard: pages that show stacks in a browser.
//!
//! [`Dashboard`] serves everything below `/dashboard`: the files of the page (`files`), the session of a browser
//! (`session`, in a sealed cookie), the requests of the page, which it passes with the token of the session to the REST
//! API (`forward`), and the language server of its editor over a WebSocket (`language`). The page has no rights of its own:
//! each request is checked by the policy of the API.
//!
//! `kiln dashboard` runs it alone, for its user ([`Owner`]), before the API of another machine ([`remote`]) or of its own process.
//!
//! The source of the page is in the folder `dashboard/`; `npm run build` there writes `files/`. The threats that this crate
//! answers to are in `docs/dashboard.md`.

mod connection;
mod dashboard;
mod error;
mod files;
mod forward;
mod language;
mod login;
mod owner;
mod page_request;
mod remote;
mod seal;
mod session;

pub use axum::Router;
pub use dashboard::{Dashboard, Parts, Region};
pub use language::{Language, LanguageSession};
pub use owner::{Owner, OwnerAccess};
pub use remote::remote;
