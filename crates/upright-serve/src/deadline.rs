//! When a request must be answered.

use std::time::{Duration, Instant};

use axum::http::HeaderMap;

use crate::refusal::Refusal;

/// The header that says how many milliseconds a request may take.
pub const HEADER: &str = "timeout-ms";

/// The deadline of a request that begins now: what its header says, else what its parameter
/// says, and no later than the server allows.
pub fn of(
    headers: &HeaderMap,
    parameter: Option<Duration>,
    longest: Duration,
) -> Result<Instant, Refusal> {
    let header = match headers.get(HEADER) {
        None => None,
        Some(value) => {
            let number = value.to_str().ok().and_then(|v| v.trim().parse().ok());
            let bad = || {
                let message = format!("the header `{HEADER}` is not a number of milliseconds");
                Refusal::bad("request::timeout", message, "send a whole number, such as 200")
            };
            Some(Duration::from_millis(number.ok_or_else(bad)?))
        }
    };
    Ok(Instant::now() + header.or(parameter).unwrap_or(longest).min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_goes_before_the_parameter_and_nothing_beyond_the_longest() {
        let longest = Duration::from_secs(30);
        let left = |header: Option<&str>, parameter: Option<u64>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = header {
                headers.insert(HEADER, value.parse().unwrap());
            }
            let deadline = of(&headers, parameter.map(Duration::from_secs), longest).ok()?;
            Some((deadline - Instant::now()).as_secs_f64().round() as u64)
        };
        assert_eq!(left(None, None), Some(30));
        assert_eq!(left(Some("5000"), Some(9)), Some(5));
        assert_eq!(left(None, Some(9)), Some(9));
        assert_eq!(left(Some("90000"), None), Some(30));
        assert_eq!(left(Some("soon"), None), None);
        assert_eq!(left(Some("-1"), None), None);
    }
}
