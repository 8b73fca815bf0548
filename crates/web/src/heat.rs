//! A Heat behind Kiln: it gets the requests for the projects that were not switched.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderValue, VIA};
use http::request::Parts;
use http::{Method, StatusCode};
use kiln_cloud::{HttpRequest, Transport, TransportError};
use kiln_store::{Owner, OwnerStore};
use tokio::sync::Semaphore;
use url::Url;

use crate::gateway::{end_to_end, url_at};

/// How often the owner of a project is asked for while the project is being switched.
const ASKED: Duration = Duration::from_millis(250);
/// How long a request waits for the end of a switch. Proxies give up after a minute.
const HELD: Duration = Duration::from_secs(50);
/// How often the signal of a guest is sent again to a Heat that cannot be reached.
const AGAIN: Duration = Duration::from_secs(1);
/// How long Heat may take: it waits itself for its engines, with the settings of kolla for ten minutes.
const LONGEST: Duration = Duration::from_mins(11);
/// The name of Kiln in the header `Via`.
const NAME: &str = "1.1 kiln";

/// An extension of a response that Heat has made: it is not changed.
#[derive(Clone, Copy, Debug)]
pub struct Passed;

/// A Heat behind an API of Kiln.
pub struct Heat {
    owners: Arc<dyn OwnerStore>,
    url: Url,
    transport: Arc<dyn Transport>,
    slots: Semaphore,
}

impl fmt::Debug for Heat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heat").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// Why neither Heat nor Kiln answers a request.
#[derive(Debug, thiserror::Error)]
pub enum NotPassed {
    /// The owner of the project is not known.
    #[error("the database has not answered")]
    Store(#[from] kiln_store::Error),
    /// The project is being switched for a long time.
    #[error("the project is being switched")]
    Held,
    /// Heat has too many requests of Kiln.
    #[error("too many requests wait for Heat")]
    Full,
    /// The URL of Heat leads to Kiln.
    #[error("the URL of Heat leads to Kiln itself")]
    Loop,
    /// Heat has not answered. Clients are not told why: it names hosts.
    #[error("Heat has not answered")]
    Heat(#[from] TransportError),
}

impl NotPassed {
    /// The status of the response. Only with 503 was the request surely not carried out.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Heat(TransportError::Timeout) => StatusCode::GATEWAY_TIMEOUT,
            Self::Heat(TransportError::Broken(_)) => StatusCode::BAD_GATEWAY,
            Self::Loop => StatusCode::LOOP_DETECTED,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl Heat {
    /// The route of the requests that it gets, for metrics and traces.
    pub const ROUTE: &'static str = "heat";

    /// The Heat at a URL, which gets at most so many requests at the same time.
    pub fn new(owners: Arc<dyn OwnerStore>, url: Url, transport: Arc<dyn Transport>, most: usize) -> Self {
        Self { owners, url, transport, slots: Semaphore::new(most) }
    }

    /// Whether Heat answers for a project. While the project is being switched, the request waits: one of a guest, who sends no
    /// signal twice, as long as its connection is there, and also while the database does not answer.
    ///
    /// # Errors
    /// [`NotPassed::Store`] and [`NotPassed::Held`].
    pub async fn answers_for(&self, project: &str, is_of_guest: bool) -> Result<bool, NotPassed> {
        let asked = async {
            let mut waits = false;
            loop {
                match self.owners.owner(project).await {
                    Ok(Owner::Heat) => return Ok(true),
                    Ok(Owner::Kiln) => return Ok(false),
                    Ok(Owner::Moving) => tokio::time::sleep(ASKED).await,
                    Err(error) if is_of_guest => {
                        if !std::mem::replace(&mut waits, true) {
                            tracing::warn!(project, "a signal waits for the database: {error}");
                        }
                        tokio::time::sleep(AGAIN).await;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        if is_of_guest {
            return asked.await;
        }
        tokio::time::timeout(HELD, asked).await.unwrap_or(Err(NotPassed::Held))
    }

    /// Heat's response to a request for a project, as it is. The signal of a guest is sent again until Heat can be reached, as long
    /// as its connection is there; `None` if the project has come under Kiln meanwhile. `address`: the one that the client used,
    /// as [`crate::address`] says.
    ///
    /// # Errors
    /// [`NotPassed::Full`], [`NotPassed::Loop`] and [`NotPassed::Heat`].
    pub async fn pass_on(
        &self,
        (project, is_of_guest): (&str, bool),
        head: &Parts,
        body: &Bytes,
        client: Option<IpAddr>,
        address: &str,
    ) -> Result<Option<Response>, NotPassed> {
        // A signal that waits keeps its slot, so that a Heat that is down holds as few connections as one that hangs.
        let _slot = self.slots.try_acquire().map_err(|_| NotPassed::Full)?;
        let mut waits = false;
        loop {
            match self.send(head, body.clone(), client, address).await {
                Err(error) if is_of_guest && error.status() == StatusCode::SERVICE_UNAVAILABLE => {
                    if !std::mem::replace(&mut waits, true) {
                        tracing::warn!(project, "a signal waits for Heat: {error}");
                    }
                    tokio::time::sleep(AGAIN).await;
                    if !self.answers_for(project, is_of_guest).await? {
                        return Ok(None);
                    }
                }
                answered => return answered.map(Some),
            }
        }
    }

    async fn send(
        &self,
        head: &Parts,
        body: Bytes,
        client: Option<IpAddr>,
        address: &str,
    ) -> Result<Response, NotPassed> {
        let is_own = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains(NAME));
        if head.headers.get_all(VIA).iter().any(is_own) {
            return Err(NotPassed::Loop);
        }
        let mut headers = end_to_end(&head.headers);
        headers.remove(CONTENT_LENGTH);
        headers.append(VIA, HeaderValue::from_static(NAME));
        if let Some(client) = client.and_then(|client| HeaderValue::from_str(&client.to_string()).ok()) {
            headers.append("x-forwarded-for", client);
        }
        if !headers.contains_key("x-forwarded-proto")
            && let Ok(scheme) = HeaderValue::from_str(address.split(':').next().unwrap_or_default())
        {
            headers.insert("x-forwarded-proto", scheme);
        }
        let request = HttpRequest {
            method: head.method.clone(),
            url: url_at(&self.url, head),
            headers,
            body: (!body.is_empty()).then_some(body),
            timeout: LONGEST,
        };
        let answered = self.transport.send(request).await?;
        let mut response = Response::new(Body::from(answered.body));
        *response.status_mut() = answered.status;
        *response.headers_mut() = end_to_end(&answered.headers);
        if head.method != Method::HEAD {
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        response.extensions_mut().insert(Passed);
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use async_trait::async_trait;
    use http::header::HeaderName;
    use http::{HeaderMap, Request};
    use kiln_cloud::HttpResponse;

    use super::*;

    /// A Heat that keeps its requests, and the owners of a project one after the other.
    #[derive(Default)]
    struct Double {
        owners: Mutex<VecDeque<Owner>>,
        /// How often the database still says nothing.
        silent: Mutex<usize>,
        seen: Mutex<Vec<HttpRequest>>,
        fault: Option<TransportError>,
        /// How often the fault still occurs; otherwise always.
        times: Option<Mutex<usize>>,
        hangs: bool,
    }

    #[async_trait]
    impl OwnerStore for Double {
        async fn owner(&self, _: &str) -> Result<Owner, kiln_store::Error> {
            let mut silent = self.silent.lock().unwrap();
            if *silent > 0 {
                *silent -= 1;
                return Err(kiln_store::Error::NotFound("silent".to_owned()));
            }
            let mut owners = self.owners.lock().unwrap();
            let owner = owners.front().copied().expect("an owner");
            if owners.len() > 1 {
                owners.pop_front();
            }
            Ok(owner)
        }
    }

    #[async_trait]
    impl Transport for Double {
        async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
            self.seen.lock().unwrap().push(request);
            if self.hangs {
                std::future::pending::<()>().await;
            }
            let is_left = self.times.as_ref().is_none_or(|times| {
                let mut times = times.lock().unwrap();
                *times = times.saturating_sub(1);
                *times > 0
            });
            if let Some(fault) = self.fault.as_ref().filter(|_| is_left) {
                return Err(fault.clone());
            }
            let mut headers = HeaderMap::new();
            for (name, value) in [
                ("content-type", "application/json"),
                ("content-length", "9"),
                ("transfer-encoding", "chunked"),
                ("x-openstack-request-id", "req-of-heat"),
            ] {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            Ok(HttpResponse { status: StatusCode::CREATED, headers, body: Bytes::from_static(b"{\"a\": 1}\n") })
        }
    }

    /// The project of a request, and that it is none of a guest.
    const USER: (&str, bool) = ("p", false);

    fn heat(double: &Arc<Double>, url: &str) -> Heat {
        Heat::new(Arc::<Double>::clone(double), url.parse().unwrap(), Arc::<Double>::clone(double), 1)
    }

    fn head(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri).header("host", "cloud.example:8004");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[tokio::test]
    async fn requests_and_responses_are_passed_on_as_they_are() {
        let double = Arc::new(Double::default());
        let sent = [
            ("x-auth-token", "a token"),
            ("x-forwarded-for", "192.0.2.1"),
            ("connection", "close, X-Own"),
            ("x-own", "of this connection"),
            ("content-length", "4"),
        ];
        let asked = head("POST", "/v1/p/stacks/a%2Fb?tags=a%20b&x=1", &sent);
        let client = Some("192.0.2.7".parse().unwrap());
        let heat = heat(&double, "http://heat:9/prefix/");
        let response = heat
            .pass_on(USER, &asked, &Bytes::from_static(b"{}\r\n"), client, "https://cloud.example:8004")
            .await
            .unwrap();
        let response = response.unwrap();
        let seen = double.seen.lock().unwrap().remove(0);
        assert_eq!(seen.url.as_str(), "http://heat:9/prefix/v1/p/stacks/a%2Fb?tags=a%20b&x=1");
        assert_eq!((seen.method, seen.body.as_deref()), (Method::POST, Some(b"{}\r\n".as_slice())));
        let mut headers: Vec<_> =
            seen.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        headers.sort();
        assert_eq!(
            headers,
            [
                "host: cloud.example:8004",
                "via: 1.1 kiln",
                "x-auth-token: a token",
                "x-forwarded-for: 192.0.2.1",
                "x-forwarded-for: 192.0.2.7",
                "x-forwarded-proto: https",
            ]
        );
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.headers()["x-openstack-request-id"], "req-of-heat");
        assert!(!response.headers().contains_key("transfer-encoding"));
        assert_eq!(axum::body::to_bytes(response.into_body(), 99).await.unwrap(), b"{\"a\": 1}\n".as_slice());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_for_the_end_of_a_switch() {
        let double = Arc::new(Double::default());
        let heat = heat(&double, "http://heat");
        let owners = |owners: &[Owner]| *double.owners.lock().unwrap() = owners.iter().copied().collect();
        owners(&[Owner::Heat]);
        assert!(heat.answers_for("p", false).await.unwrap());
        owners(&[Owner::Moving, Owner::Moving, Owner::Kiln]);
        assert!(!heat.answers_for("p", false).await.unwrap());
        // A switch that was killed: users are told, a signal waits as long as its sender does.
        owners(&[Owner::Moving]);
        assert!(matches!(heat.answers_for("p", false).await, Err(NotPassed::Held)));
        let signal = tokio::time::timeout(10 * HELD, heat.answers_for("p", true));
        assert!(signal.await.is_err());
        // The same while the database is silent.
        owners(&[Owner::Heat]);
        *double.silent.lock().unwrap() = 30;
        assert!(matches!(heat.answers_for("p", false).await, Err(NotPassed::Store(_))));
        assert!(heat.answers_for("p", true).await.unwrap());
        assert_eq!(*double.silent.lock().unwrap(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_waits_for_a_heat_that_is_restarted() {
        let fault = Some(TransportError::Connect("refused".to_owned()));
        let times =
            |times| Arc::new(Double { fault: fault.clone(), times: Some(Mutex::new(times)), ..Double::default() });
        let (asked, body) = (head("PUT", "/v1/waitcondition/arn", &[]), Bytes::from_static(b"{}"));
        let owners =
            |double: &Double, owners: &[Owner]| *double.owners.lock().unwrap() = owners.iter().copied().collect();
        let send = async |double: &Arc<Double>| {
            heat(double, "http://heat").pass_on(("p", true), &asked, &body, None, "http://cloud.example").await
        };
        let double = times(10);
        owners(&double, &[Owner::Heat]);
        let answered = send(&double).await;
        assert_eq!(answered.unwrap().unwrap().status(), StatusCode::CREATED);
        let seen = double.seen.lock().unwrap().iter().filter(|one| one.body.as_ref() == Some(&body)).count();
        assert_eq!(seen, 10);
        // The project is switched meanwhile.
        let double = times(usize::MAX);
        owners(&double, &[Owner::Heat, Owner::Moving, Owner::Kiln]);
        let answered = send(&double).await;
        assert!(answered.unwrap().is_none());
        // One that waits keeps its slot.
        let double = times(usize::MAX);
        owners(&double, &[Owner::Heat]);
        let full = heat(&double, "http://heat");
        let mut waiting = Box::pin(full.pass_on(("p", true), &asked, &body, None, "http://cloud.example"));
        assert!(futures::poll!(&mut waiting).is_pending());
        let refused = full.pass_on(("p", true), &asked, &body, None, "http://cloud.example").await;
        assert!(matches!(refused, Err(NotPassed::Full)));
        // What may have been carried out is not sent again.
        let double = Arc::new(Double { fault: Some(TransportError::Broken("reset".to_owned())), ..Double::default() });
        let answered = send(&double).await;
        assert_eq!(answered.unwrap_err().status(), StatusCode::BAD_GATEWAY);
        assert_eq!(double.seen.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_heat_that_fails_or_hangs_is_told() {
        let of = |fault| Arc::new(Double { fault: Some(fault), ..Double::default() });
        for (fault, status) in [
            (TransportError::Connect("refused".to_owned()), 503),
            (TransportError::Timeout, 504),
            (TransportError::Broken("reset".to_owned()), 502),
        ] {
            let heat = heat(&of(fault), "http://heat");
            let error = heat
                .pass_on(USER, &head("GET", "/v1/p/stacks", &[]), &Bytes::new(), None, "http://cloud.example:8004")
                .await
                .unwrap_err();
            assert_eq!(error.status().as_u16(), status, "{error}");
        }
        let own = heat(&Arc::default(), "http://heat");
        let again = head("GET", "/v1/p/stacks", &[("via", "1.0 proxy, 1.1 kiln")]);
        let error = own.pass_on(USER, &again, &Bytes::new(), None, "http://cloud.example:8004").await.unwrap_err();
        assert_eq!(error.status(), StatusCode::LOOP_DETECTED);

        // One that hangs gets no more requests than it may have; a client that leaves makes room.
        let hanging = Arc::new(Double { hangs: true, ..Double::default() });
        let heat = heat(&hanging, "http://heat");
        let asked = head("GET", "/v1/p/stacks", &[]);
        let body = Bytes::new();
        let mut first = Box::pin(heat.pass_on(USER, &asked, &body, None, "http://cloud.example:8004"));
        assert!(futures::poll!(&mut first).is_pending());
        let full = heat.pass_on(USER, &asked, &Bytes::new(), None, "http://cloud.example:8004").await.unwrap_err();
        assert!(matches!(full, NotPassed::Full));
        drop(first);
        assert!(
            futures::poll!(Box::pin(heat.pass_on(USER, &asked, &Bytes::new(), None, "http://cloud.example:8004")))
                .is_pending()
        );
    }
}
