//! Bodies, read within limits of size, memory and time.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::refusal::Refusal;

/// A whole body, and the memory it takes.
#[derive(Debug)]
pub struct Held {
    /// The body.
    pub bytes: Bytes,
    memory: OwnedSemaphorePermit,
}

impl Held {
    /// Takes the memory that so many numbers need besides.
    pub fn grow(&mut self, app: &App, numbers: usize) -> Result<(), Refusal> {
        self.memory.merge(app.reserve(numbers.saturating_mul(size_of::<f32>()))?);
        Ok(())
    }
}

/// Reads a body. What is too large by its own account is refused before anything is read.
pub async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<Held, Refusal> {
    let limit = app.options.body;
    let large = || {
        let message = format!("the body is larger than {limit} bytes");
        Refusal::large(message, "send fewer inputs in a request, or raise `--max-body`")
    };
    let encoding = headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|e| e.as_bytes() != b"identity") {
        return Err(Refusal::encoding());
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > limit) {
        return Err(large());
    }
    let memory = app.reserve(length.unwrap_or(limit))?;
    let whole = Limited::new(body, limit).collect();
    let whole = tokio::time::timeout(app.options.read_timeout, whole).await;
    let bytes = match whole.map_err(|_| Refusal::slow())? {
        Ok(whole) => whole.to_bytes(),
        Err(e) if e.is::<LengthLimitError>() => return Err(large()),
        Err(_) => {
            let message = "the body ends before it should, or is not well-formed";
            return Err(Refusal::bad("request::body", message, ""));
        }
    };
    if bytes.is_empty() {
        return Err(Refusal::bad("request::body", "the body is empty", "send an input"));
    }
    let memory = App::shrink(memory, bytes.len());
    Ok(Held { bytes, memory })
}
