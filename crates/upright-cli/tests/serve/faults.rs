//! Clients that mean harm.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{connect, head, reply};
use crate::server::{Server, digits, wait_for};

#[test]
fn heads_and_bodies_that_trickle_in_are_cut_off() {
    let server = Server::start(digits(), &["--read-timeout", "1"]);
    let start = Instant::now();
    let mut heads: Vec<_> = (0..60).map(|_| connect(server.address)).collect();
    let mut bodies: Vec<_> = (0..8).map(|_| connect(server.address)).collect();
    for body in &mut bodies {
        let head = head("POST", "/v1/predict", &[("content-length", "1000")]);
        body.write_all(head.as_bytes()).unwrap();
    }
    // A byte every now and then, until the server has had enough.
    let text = head("GET", "/v2/health/live", &[("x-filler", &"a".repeat(500))]);
    for byte in text.bytes() {
        heads.retain_mut(|stream| stream.write_all(&[byte]).is_ok());
        for stream in &mut bodies {
            drop(stream.write_all(b"x"));
        }
        assert_eq!(server.get("/v2/health/live").status, 200);
        if start.elapsed() > Duration::from_millis(2500) {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    for stream in &heads {
        let reply = reply(stream);
        assert!(reply.is_none_or(|reply| reply.status == 408), "a slow head is answered");
    }
    for stream in &bodies {
        let reply = reply(stream).expect("an answer");
        assert_eq!((reply.status, reply.code().as_str()), (408, "request::slow"));
    }
    wait_for("free", || server.metric("upright_connections", "") == 1.0);
    server.lives();
}

#[test]
fn a_flood_of_chunks_is_cut_off_at_the_limit() {
    let server = Server::start(digits(), &["--max-body", "1"]);
    let before = server.memory();
    for size in [1, 7, 60_000] {
        let mut stream = connect(server.address);
        let head = head("POST", "/v1/predict", &[("transfer-encoding", "chunked")]);
        stream.write_all(head.as_bytes()).unwrap();
        let chunk = [format!("{size:x}\r\n").as_bytes(), &vec![b'x'; size], b"\r\n"].concat();
        let many = chunk.repeat(1 + 30_000 / chunk.len());
        let (mut sent, limit) = (0, 8 << 20);
        while sent < limit * chunk.len() / size && stream.write_all(&many).is_ok() {
            sent += many.len();
        }
        // The answer may be lost with what was still being sent.
        if let Some(reply) = reply(&stream) {
            assert_eq!((reply.status, reply.code().as_str()), (413, "request::size"));
        }
        assert!(sent < limit * chunk.len() / size, "{sent} bytes were taken");
    }
    let grown = server.memory().zip(before).map(|(after, before)| after - before);
    assert!(grown.is_none_or(|mib| mib < 64.0), "{grown:?}");
    assert_eq!(
        server.metric("upright_requests_total", "endpoint=\"predict\",outcome=\"refused\""),
        3.0
    );
    for (headers, body) in [
        (&[("content-length", "2000000")][..], &b""[..]),
        (&[("content-length", "99999999999999999999")], b""),
        (&[("transfer-encoding", "chunked")], b"zz\r\n"),
        (&[("transfer-encoding", "chunked")], b"ffffffffffffffff1\r\n"),
        (&[("content-length", "-1")], b""),
    ] {
        let mut stream = connect(server.address);
        stream.write_all(head("POST", "/v1/predict", headers).as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let reply = reply(&stream).expect("an answer");
        assert!([400, 413].contains(&reply.status), "{headers:?}: {}", reply.status);
    }
    server.lives();
}

#[test]
fn heads_beyond_all_reason_are_refused() {
    let server = Server::start(digits(), &[]);
    let long = "a".repeat(300_000);
    let many: Vec<(String, &str)> = (0..500).map(|i| (format!("x-{i}"), "a")).collect();
    let many: Vec<(&str, &str)> =
        many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    for text in [
        head("GET", &format!("/{long}"), &[]),
        head("GET", "/", &[("x-long", &long)]),
        head("GET", "/", &many),
        "GET / HTTP/9.9\r\n\r\n".into(),
        "\0\0\0\0\r\n\r\n".into(),
    ] {
        let mut stream = connect(server.address);
        let _ = stream.write_all(text.as_bytes());
        let reply = reply(&stream);
        assert!(reply.is_none_or(|reply| (400..=431).contains(&reply.status)), "{text:.40}");
    }
    server.lives();
}

#[test]
fn connections_beyond_the_limit_are_told_to_come_back() {
    let server = Server::start(digits(), &["--max-connections", "4"]);
    wait_for("free", || server.metric("upright_connections", "") == 1.0);
    let mut held = Vec::new();
    let told = (0..10).find_map(|_| {
        let stream = connect(server.address);
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let reply = reply(&stream);
        held.push(stream);
        reply
    });
    let reply = told.expect("an answer");
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    // The connection that asked for the metric may still have been one of the four.
    assert!((4..=5).contains(&held.len()), "{}", held.len());
    drop(held);
    wait_for("room", || {
        let mut stream = connect(server.address);
        stream.write_all(head("GET", "/v2/health/live", &[]).as_bytes()).is_ok()
            && crate::client::reply(&stream).is_some_and(|reply| reply.status == 200)
    });
}
