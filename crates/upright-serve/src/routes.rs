//! Every path and what answers there.

use std::any::Any;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::App;
use crate::refusal::Refusal;
use crate::{health, openapi, site, v1, v2, watch};

/// The routes of a server.
pub fn all(app: &Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/v1/info", get(v1::info))
        .route("/v1/predict", post(v1::predict))
        .route("/v2", get(v2::server))
        .route("/v2/health/live", get(health::live))
        .route("/v2/health/ready", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(openapi::description));
    for model in ["/v2/models/{model}", "/v2/models/{model}/versions/{version}"] {
        router = router
            .route(model, get(v2::model))
            .route(&format!("{model}/ready"), get(v2::model_ready))
            .route(&format!("{model}/infer"), post(v2::infer));
    }
    router
        .fallback(site::page)
        .method_not_allowed_fallback(|| async { Refusal::method() })
        .with_state(app.clone())
        .layer(from_fn_with_state(app.clone(), watch::guard))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(app.clone(), watch::watch))
}

/// A panic is one request's failure and nobody else's.
#[expect(clippy::needless_pass_by_value, reason = "the layer passes it so")]
fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = text.unwrap_or("no reason given"), "a request panicked");
    Refusal::failed().into_response()
}
