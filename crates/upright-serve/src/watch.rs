//! Around every request: who may ask, its id, its log line, its metrics, and
//! what a refusal looks like.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::{App, Id, Noted};
use crate::metrics::{Endpoint, Outcome};
use crate::refusal::{OVERLOAD, Refusal};

/// The header of a request's id, taken over from clients that send a plain one.
const ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken over.
const LONGEST: usize = 64;

/// Longest path in a log line.
const SHOWN: usize = 120;

/// Lets in whoever has the token, if there is one. Health and the page are for everybody.
pub async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let health = path.starts_with("/v2/health/");
    let under = |root: &str| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let open = health || !["/v1", "/v2", "/metrics"].into_iter().any(under);
    let sent = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let token = sent.and_then(|value| value.strip_prefix(b"Bearer "));
    if open || app.lets_in(token) {
        return next.run(request).await;
    }
    Refusal::unauthorized().into_response()
}

/// Counts and logs a request, and writes its refusal as its path asks for.
pub async fn watch(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_string();
    let id = id(request.headers());
    let mut entry = Entry::new(app, request.method().clone(), path, id.clone());
    let value = HeaderValue::from_str(&id).unwrap_or_else(|_| HeaderValue::from_static("-"));
    request.extensions_mut().insert(Id(id));
    let mut response = next.run(request).await;
    let refusal = response.extensions_mut().remove::<Refusal>();
    if let Some(refusal) = &refusal {
        response = refusal.rendered(&entry.path);
    }
    let headers = response.headers_mut();
    headers.insert(ID, value);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let noted = response.extensions().get::<Noted>().copied().unwrap_or_default();
    entry.end(response.status(), noted, refusal.map_or("", |refusal| refusal.code));
    response
}

/// A request under way. If it is dropped before its end, the client has left.
struct Entry {
    app: Arc<App>,
    method: Method,
    path: String,
    id: Arc<str>,
    endpoint: Endpoint,
    start: Instant,
    ended: bool,
}

impl Entry {
    fn new(app: Arc<App>, method: Method, path: String, id: Arc<str>) -> Self {
        let endpoint = if path == "/v1/predict" {
            Endpoint::Predict
        } else if path.ends_with("/infer") {
            Endpoint::Infer
        } else {
            Endpoint::Other
        };
        app.metrics.inflight.increment(1.0);
        Entry { app, method, path, id, endpoint, start: Instant::now(), ended: false }
    }

    fn end(&mut self, status: StatusCode, noted: Noted, code: &str) {
        let outcome = match status {
            StatusCode::UNAUTHORIZED => Outcome::Unauthorized,
            _ if code == OVERLOAD => Outcome::Shed,
            // Also whoever asks before the model is warm.
            StatusCode::SERVICE_UNAVAILABLE => Outcome::Refused,
            status if status.is_server_error() => Outcome::Failed,
            status if status.is_client_error() => Outcome::Refused,
            _ => Outcome::Ok,
        };
        self.log(outcome, status.as_u16(), noted, code);
    }

    fn log(&mut self, outcome: Outcome, status: u16, noted: Noted, code: &str) {
        self.ended = true;
        let took = self.start.elapsed();
        self.app.metrics.request(self.endpoint, outcome, took);
        let path: String = self.path.chars().take(SHOWN).collect();
        let Noted { inputs, searched, evaluations, truncated } = noted;
        let ms = (took.as_secs_f64() * 1e5).round() / 100.0;
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    id = &*self.id,
                    method = self.method.as_str(),
                    path,
                    status,
                    outcome = outcome.word(),
                    code,
                    ms,
                    inputs,
                    searched,
                    evaluations,
                    truncated,
                    "request"
                )
            };
        }
        // Probes come every few seconds, and what they are told is no news.
        let probe = self.path.starts_with("/v2/health/");
        match (self.endpoint, outcome) {
            (_, Outcome::Failed) => line!(error),
            (Endpoint::Other, Outcome::Ok) => line!(debug),
            _ if probe => line!(debug),
            _ => line!(info),
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.ended {
            self.log(Outcome::Cancelled, 0, Noted::default(), "");
        }
        self.app.metrics.inflight.decrement(1.0);
    }
}

/// The client's own id if it is a plain word, else a new one.
fn id(headers: &HeaderMap) -> Arc<str> {
    let plain = |id: &&str| {
        let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        !id.is_empty() && id.len() <= LONGEST && id.bytes().all(good)
    };
    match headers.get(ID).and_then(|value| value.to_str().ok()).filter(plain) {
        Some(id) => id.into(),
        None => new_id().into(),
    }
}

/// An id that no other request of any server has, for all practical purposes.
fn new_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let seed = format!("{now} {} {count}", std::process::id());
    blake3::hash(seed.as_bytes()).to_hex()[..16].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_ids_are_taken_over() {
        let given = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(ID, HeaderValue::from_bytes(value).unwrap());
            id(&headers).to_string()
        };
        assert_eq!(given(b"order-7_a.1"), "order-7_a.1");
        for odd in [&b""[..], b"a b", b"\"}{", &[b'x'; 65], b"\xff"] {
            let id = given(odd);
            assert!(id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
        }
        assert_ne!(new_id(), new_id());
    }
}
