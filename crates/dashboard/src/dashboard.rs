//! Which part answers a request.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::header::{CACHE_CONTROL, HOST, HeaderValue, LOCATION};
use http::request::Parts as Head;
use http::{Method, Request, StatusCode};
use kiln_cloud::Connector;
use kiln_value::Secret;
use serde_json::json;
use tokio::net::TcpListener;

use crate::error::PageError;
use crate::files;
use crate::forward;
use crate::language::{Language, Sockets};
use crate::login::{self, Change, Form};
use crate::owner::Owner;
use crate::page_request::{self, Place};
use crate::seal::Seal;
use crate::session::Session;

/// What the dashboard works with.
pub struct Parts {
    /// The REST API, which answers the requests of the page.
    pub api: Router,
    /// Connects to the Keystone where users sign in; `None`: only the owner has a session.
    pub connector: Option<Connector>,
    /// The secret of the service (`auth_encryption_key`): the key of the cookies is derived from it, so that every process of
    /// a service reads the cookies of the others.
    pub secret: Secret<String>,
    /// Whether headers of a proxy tell the address that the browser used.
    pub proxy_headers: bool,
    /// The user who runs the dashboard alone; `None`: it is part of a service.
    pub owner: Option<Owner>,
    /// Where the lists of the cloud come from if nobody signs in; `None`: there are no lists without a connector.
    pub lists: Option<kiln_cloud::Session>,
    /// What checks the texts in the editor of the page.
    pub language: Arc<dyn Language>,
    /// The services of several regions, between which users choose; empty: `api` is the only one.
    pub regions: Vec<Region>,
}

/// The service in a region.
#[derive(Clone)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// The REST API.
    pub api: Router,
    /// Connects to the cloud in this region.
    pub connector: Connector,
}

/// Everything below `/dashboard`. Cheap to clone.
#[derive(Clone)]
pub struct Dashboard {
    inner: Arc<Inner>,
}

struct Inner {
    api: Router,
    connector: Option<Connector>,
    seal: Seal,
    proxy_headers: bool,
    owner: Option<Owner>,
    sockets: Sockets,
    regions: Vec<Region>,
    lists: Option<kiln_cloud::Session>,
}

impl Dashboard {
    /// A dashboard of these parts.
    pub fn new(parts: Parts) -> Self {
        let Parts { api, connector, secret, proxy_headers, owner, language, regions, lists } = parts;
        let (seal, sockets) = (Seal::new(&secret), Sockets::new(language));
        Self { inner: Arc::new(Inner { api, connector, seal, proxy_headers, owner, sockets, regions, lists }) }
    }

    /// Serves the dashboard alone, until `stop` ends.
    ///
    /// # Errors
    /// The listener fails.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
        let service = self.router().into_make_service_with_connect_info::<SocketAddr>();
        // Nobody waits for the requests that run: a stream of events would never end.
        tokio::select! {
            ended = axum::serve(listener, service) => ended,
            () = stop => Ok(()),
        }
    }

    /// The routes, for the listener of the REST API.
    pub fn router(&self) -> Router {
        let answer = |dashboard: Self| {
            any(move |request: Request<Body>| {
                let dashboard = dashboard.clone();
                async move { dashboard.answer(request).await }
            })
        };
        Router::new()
            .route("/dashboard", answer(self.clone()))
            .route("/dashboard/", answer(self.clone()))
            .route("/dashboard/{*path}", answer(self.clone()))
    }

    async fn answer(&self, request: Request<Body>) -> Response {
        let (head, body) = request.into_parts();
        let place = Place::of(&head, self.inner.proxy_headers);
        let path = head.uri.path().strip_prefix("/dashboard").unwrap_or_default().to_owned();
        if let Some(owner) = &self.inner.owner
            && let Some(answer) = self.of_owner(owner, &head, &path, &place)
        {
            let mut response = answer.unwrap_or_else(Into::into);
            page_request::protect(response.headers_mut());
            return response;
        }
        let mut response = match path.as_str() {
            // Relative, so that the prefix of a proxy stays.
            "" => (StatusCode::FOUND, [(LOCATION, "dashboard/")]).into_response(),
            "/lsp" => self.language(head, &place).await.unwrap_or_else(Into::into),
            "/session" | "/projects" => self.session(&head, body, &path, &place).await.unwrap_or_else(Into::into),
            path => match (path.strip_prefix("/api/"), path.strip_prefix("/choices/")) {
                (Some(below), _) => self.forward(head, body, below, &place).await.unwrap_or_else(Into::into),
                (None, Some(constraint)) => self.choices(&head, constraint, &place).await.unwrap_or_else(Into::into),
                (None, None) => files::answer(&head, path.trim_start_matches('/')),
            },
        };
        page_request::protect(response.headers_mut());
        response
    }

    /// Opens the session of the owner, or refuses a request; `None`: another request, at the right address.
    fn of_owner(&self, owner: &Owner, head: &Head, path: &str, place: &Place) -> Option<Result<Response, PageError>> {
        if let Err(refused) = owner.check(place) {
            return Some(Err(refused));
        }
        let session = (path == "/").then(|| owner.open(head)).flatten()?;
        Some(session.and_then(|session| {
            let mut response = (StatusCode::FOUND, [(LOCATION, "./")]).into_response();
            place.set_cookie(response.headers_mut(), &session.sealed(&self.inner.seal)?)?;
            Ok(response)
        }))
    }

    /// Requests of the page about its session.
    async fn session(&self, head: &Head, body: Body, path: &str, place: &Place) -> Result<Response, PageError> {
        page_request::check(head, place)?;
        let Inner { connector, seal, .. } = &*self.inner;
        let current = Session::of(&head.headers, place, seal);
        let keystone = || connector.as_ref().ok_or(PageError::NoKeystone);
        let mut response = match (path, &head.method) {
            ("/session", &Method::GET) => self.told(current.as_ref()),
            ("/session", &Method::POST) => {
                let mut session = login::sign_in(keystone()?, Form::read(body).await?).await?;
                session.region = self.inner.regions.first().map(|region| region.name.clone());
                self.signed_in(&session, place)?
            }
            ("/session", &Method::PUT) => {
                let change = Change::read(body).await?;
                if let Some(name) = change.region.as_ref().filter(|name| self.region(name).is_none()) {
                    return Err(PageError::NoRegion(name.clone()));
                }
                let session = login::change(keystone()?, required(current)?, change).await?;
                self.signed_in(&session, place)?
            }
            ("/session", &Method::DELETE) => {
                if let (Some(session), Some(connector)) = (&current, connector) {
                    login::sign_out(connector, session).await;
                }
                let mut response = self.told(None);
                place.remove_cookie(response.headers_mut());
                response
            }
            ("/projects", &Method::GET) => {
                let session = required(current)?;
                let projects = match connector {
                    Some(connector) => login::projects(connector, &session).await?,
                    None => vec![session.project],
                };
                axum::Json(json!({ "projects": projects })).into_response()
            }
            _ => return Err(PageError::Method),
        };
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    fn region(&self, name: &str) -> Option<&Region> {
        self.inner.regions.iter().find(|region| region.name == name)
    }

    /// The service of a session, and the cloud.
    fn service(&self, session: &Session) -> (&Router, Option<&Connector>) {
        match session.region.as_ref().and_then(|name| self.region(name)) {
            Some(region) => (&region.api, Some(&region.connector)),
            None => (&self.inner.api, self.inner.connector.as_ref()),
        }
    }

    /// What the page is told of a session.
    fn told(&self, session: Option<&Session>) -> Response {
        let regions: Vec<&str> = self.inner.regions.iter().map(|region| &*region.name).collect();
        axum::Json(json!({ "session": session, "regions": regions })).into_response()
    }

    fn signed_in(&self, session: &Session, place: &Place) -> Result<Response, PageError> {
        let mut response = self.told(Some(session));
        place.set_cookie(response.headers_mut(), &session.sealed(&self.inner.seal)?)?;
        Ok(response)
    }

    /// The session of a request of the page, which was checked.
    fn session_of_page(&self, head: &Head, place: &Place) -> Result<Session, PageError> {
        page_request::check(head, place)?;
        let session = required(Session::of(&head.headers, place, &self.inner.seal))?;
        page_request::check_project(head, &session)?;
        Ok(session)
    }

    async fn forward(&self, head: Head, body: Body, path: &str, place: &Place) -> Result<Response, PageError> {
        let session = self.session_of_page(&head, place)?;
        forward::forward(self.service(&session).0, head, body, &format!("/{path}"), &session).await
    }

    /// What the user may choose for a constraint of a parameter. One of few reads of the cloud, with the token of the session.
    async fn choices(&self, head: &Head, constraint: &str, place: &Place) -> Result<Response, PageError> {
        let session = self.session_of_page(head, place)?;
        if head.method != Method::GET {
            return Err(PageError::Method);
        }
        let none = || PageError::NoList(constraint.to_owned());
        let cloud = match self.service(&session).1 {
            Some(connector) => Some(login::cloud(connector, &session)),
            None => self.inner.lists.clone(),
        };
        let choices = login::choices(&cloud.ok_or_else(none)?, constraint).await?.ok_or_else(none)?;
        Ok(axum::Json(json!({ "choices": choices })).into_response())
    }

    /// Opens a socket to the language server, for those who may list the resource types.
    async fn language(&self, head: Head, place: &Place) -> Result<Response, PageError> {
        page_request::check_socket(&head, place)?;
        let session = required(Session::of(&head.headers, place, &self.inner.seal))?;
        page_request::check_project_of_socket(&head, &session)?;
        let (mut asked, ()) = Request::new(()).into_parts();
        asked.headers.extend(head.headers.get(HOST).cloned().map(|host| (HOST, host)));
        asked.extensions = head.extensions.clone();
        let types =
            forward::forward(self.service(&session).0, asked, Body::empty(), "/resource_types", &session).await?;
        if !types.status().is_success() {
            return Ok(types);
        }
        self.inner.sockets.open(head, &session).await
    }
}

fn required(session: Option<Session>) -> Result<Session, PageError> {
    session.ok_or(PageError::SignedOut)
}
