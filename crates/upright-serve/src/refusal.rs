//! [`Refusal`]: why a request is not answered. One schema for all of them,
//! without anything about the inside of the server.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// The code of what is turned away for lack of room.
pub const OVERLOAD: &str = "serve::overload";

/// Why a request, or one file of it, is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the answer.
    pub status: StatusCode,
    /// A stable code, `area::problem`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// How to fix it; empty if the message says it all.
    pub hint: String,
    /// Seconds after which trying again makes sense.
    pub retry_after: Option<u64>,
}

/// A refusal as `/v1` has it.
#[derive(Debug, Serialize)]
pub struct Shown<'a> {
    code: &'a str,
    message: &'a str,
    hint: &'a str,
}

/// The same as `/v2` has it, where `error` is a string.
#[derive(Serialize)]
struct Flat<'a> {
    error: &'a str,
    code: &'a str,
    hint: &'a str,
}

#[derive(Serialize)]
struct Wrapped<'a> {
    error: Shown<'a>,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: String, hint: &str) -> Self {
        Refusal { status, code, message, hint: hint.into(), retry_after: None }
    }

    /// The request is not what it should be.
    pub fn bad(code: &'static str, message: impl Into<String>, hint: &str) -> Self {
        Refusal::new(StatusCode::BAD_REQUEST, code, message.into(), hint)
    }

    /// The input cannot be used.
    pub fn unusable(code: &'static str, message: impl Into<String>, hint: &str) -> Self {
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, code, message.into(), hint)
    }

    /// There is nothing of that name.
    pub fn missing(message: impl Into<String>, hint: &str) -> Self {
        Refusal::new(StatusCode::NOT_FOUND, "request::path", message.into(), hint)
    }

    /// The method does not go with the path.
    pub fn method() -> Self {
        let message = "this path does not take this method".into();
        let hint = "/openapi.json describes every path";
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "request::method", message, hint)
    }

    /// Too large.
    pub fn large(message: impl Into<String>, hint: &str) -> Self {
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "request::size", message.into(), hint)
    }

    /// Sent too slowly.
    pub fn slow() -> Self {
        let message = "the body did not arrive in time".into();
        Refusal::new(StatusCode::REQUEST_TIMEOUT, "request::slow", message, "send it faster")
    }

    /// In an encoding that is not read.
    pub fn encoding() -> Self {
        let message = "compressed bodies are not read".into();
        let hint = "send it without Content-Encoding";
        Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "request::encoding", message, hint)
    }

    /// Without the token, or with a wrong one.
    pub fn unauthorized() -> Self {
        let message = "a valid token is needed".into();
        let hint = "send the header `Authorization: Bearer TOKEN`";
        Refusal::new(StatusCode::UNAUTHORIZED, "request::token", message, hint)
    }

    /// More work than may wait.
    pub fn overload(message: impl Into<String>, seconds: u64) -> Self {
        let hint = "try again after the seconds in Retry-After, or start more servers";
        let refusal =
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "serve::overload", message.into(), hint);
        Refusal { retry_after: Some(seconds), ..refusal }
    }

    /// Not ready yet, or not any more.
    pub fn unready(message: &str) -> Self {
        let code = "serve::unready";
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code, message.into(), "");
        Refusal { retry_after: Some(1), ..refusal }
    }

    /// Something failed inside.
    pub fn failed() -> Self {
        let message = "this request failed inside the server".into();
        let hint = "the server's log says more, under the request's id";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "serve::failed", message, hint)
    }

    /// The fields to be shown to clients.
    pub fn shown(&self) -> Shown<'_> {
        Shown { code: self.code, message: &self.message, hint: &self.hint }
    }

    /// The answer to a request of some path.
    pub fn rendered(&self, path: &str) -> Response {
        let flat = path == "/v2" || path.starts_with("/v2/");
        let mut response = if flat {
            let Shown { code, message: error, hint } = self.shown();
            Json(Flat { error, code, hint }).into_response()
        } else {
            Json(Wrapped { error: self.shown() }).into_response()
        };
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Carries the refusal to where the path is known; see [`crate::watch`].
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
