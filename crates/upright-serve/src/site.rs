//! The page at `/`: whatever lay in `site/` when this was built.

use std::io::Write;
use std::sync::{Arc, OnceLock};

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::refusal::Refusal;

/// Paths below `site/` and what lies there.
static FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/site.rs"));

/// What a page may do: run its own scripts and WebAssembly, and talk to this server alone.
/// Scripts that stand in the page itself are named by their hashes, others are not run.
fn policy(page: &[u8]) -> String {
    let hashes: String = inline(&String::from_utf8_lossy(page))
        .map(|script| format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(script))))
        .fold(String::new(), |all, one| all + &one);
    format!(
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'{hashes}; \
         worker-src 'self' blob:; connect-src 'self' data: blob:; \
         img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; \
         font-src 'self' data:; manifest-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    )
}

/// The scripts that stand in a page and are run: those without attributes.
fn inline(page: &str) -> impl Iterator<Item = &str> {
    page.split("<script>").skip(1).filter_map(|rest| Some(rest.split_once("</script>")?.0))
}

/// Stands at `/` if nothing was built in.
const NO_PAGE: &str =
    "upright serves a model here. /v1/info says which, /openapi.json how to ask.\n";

/// Files smaller than this are sent as they are.
const WORTH_PACKING: usize = 1024;

struct File {
    bytes: &'static [u8],
    kind: &'static str,
    tag: String,
    policy: String,
    packed: OnceLock<Option<Vec<u8>>>,
}

impl File {
    fn new(path: &str, bytes: &'static [u8]) -> Self {
        let tag = format!("\"{}\"", &blake3::hash(bytes).to_hex()[..16]);
        let kind = kind(path);
        let policy = policy(if kind == HTML { bytes } else { &[] });
        File { bytes, kind, tag, policy, packed: OnceLock::new() }
    }

    /// The file packed with gzip, if that helps.
    fn packed(&self) -> Option<&[u8]> {
        let pack = || {
            let mut out = GzEncoder::new(Vec::new(), Compression::best());
            out.write_all(self.bytes).ok()?;
            out.finish().ok().filter(|packed| packed.len() < self.bytes.len())
        };
        let worth = self.bytes.len() >= WORTH_PACKING;
        worth.then(|| self.packed.get_or_init(pack).as_deref()).flatten()
    }
}

const HTML: &str = "text/html; charset=utf-8";

/// What a browser should take a file for.
fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => HTML,
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "wasm" => "application/wasm",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" | "md" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn files() -> &'static [(&'static str, File)] {
    static ALL: OnceLock<Vec<(&'static str, File)>> = OnceLock::new();
    let one = |&(path, bytes): &(&'static str, &'static [u8])| (path, File::new(path, bytes));
    ALL.get_or_init(|| FILES.iter().map(one).collect())
}

/// Whatever no other path is for.
pub async fn page(
    State(app): State<Arc<App>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let path = uri.path();
    let name = match path.trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    let Some((_, file)) = files().iter().find(|(path, _)| *path == name) else {
        if path == "/" {
            return ([(header::CONTENT_TYPE, kind("a.txt"))], NO_PAGE).into_response();
        }
        let hint = "/openapi.json describes every path";
        return Refusal::missing("there is nothing at this path", hint).into_response();
    };
    if method != Method::GET && method != Method::HEAD {
        return Refusal::method().into_response();
    }
    let holds = |name: header::HeaderName, what: &str| {
        let value = headers.get(name).and_then(|v| v.to_str().ok());
        value.is_some_and(|v| v.split([',', ';']).any(|word| word.trim() == what))
    };
    let mut response = if holds(header::IF_NONE_MATCH, &file.tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if holds(header::ACCEPT_ENCODING, "gzip")
        && let Ok(Some(packed)) = app.aside(|_| file.packed()).await
    {
        ([(header::CONTENT_ENCODING, "gzip")], packed).into_response()
    } else {
        file.bytes.into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let own = [(header::ETAG, &file.tag), (header::CONTENT_SECURITY_POLICY, &file.policy)];
    for (name, value) in own {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash is that of the specification's own example (Content Security Policy Level 3).
    #[test]
    fn scripts_in_a_page_are_named_and_data_is_not() {
        let page =
            "<script type=\"text/plain\">data</script><script>alert('Hello, world.');</script>";
        let policy = policy(page.as_bytes());
        let hash = "script-src 'self' 'wasm-unsafe-eval' \
                    'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=';";
        assert!(policy.contains(hash), "{policy}");
    }

    /// Every script of the page that is built in may run.
    #[test]
    fn the_page_holds_scripts_that_its_policy_names() {
        for (path, file) in files().iter().filter(|(_, file)| file.kind == HTML) {
            let scripts = inline(&String::from_utf8_lossy(file.bytes)).count();
            assert!(scripts > 0, "{path}");
            assert_eq!(file.policy.matches("'sha256-").count(), scripts, "{path}");
        }
    }
}
