//! A client that does what it is told, right or wrong.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// The code of a refusal, and that it says what is wrong.
    pub(crate) fn code(&self) -> String {
        let json = self.json();
        let flat = json["error"].is_string();
        let (code, message) = if flat {
            (&json["code"], &json["error"])
        } else {
            (&json["error"]["code"], &json["error"]["message"])
        };
        assert!(message.as_str().is_some_and(|m| !m.is_empty()), "{json}");
        code.as_str().unwrap_or_else(|| panic!("no code in {json}")).to_string()
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Writes the head of a request that is to be the connection's last.
pub(crate) fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.extend([*name, ": ", *value, "\r\n"]);
    }
    text + "\r\n"
}

/// Reads an answer; `None` if the connection ends before there is one.
pub(crate) fn reply(stream: &TcpStream) -> Option<Reply> {
    let mut from = BufReader::new(stream);
    let mut line = String::new();
    from.read_line(&mut line).ok().filter(|&n| n > 0)?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        from.read_line(&mut line).ok().filter(|&n| n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
    }
    let mut reply = Reply { status, headers, body: Vec::new() };
    match reply.header("content-length").map(|v| v.parse::<usize>().unwrap()) {
        Some(length) => {
            reply.body = vec![0; length];
            from.read_exact(&mut reply.body).ok()?;
        }
        None => drop(from.read_to_end(&mut reply.body)),
    }
    Some(reply)
}

/// Asks and waits for the answer.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    let mut stream = connect(address);
    let length = body.len().to_string();
    let mut headers = headers.to_vec();
    if method == "POST" {
        headers.push(("content-length", &length));
    }
    stream.write_all(head(method, path, &headers).as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    reply(&stream).unwrap_or_else(|| panic!("no answer to {method} {path}"))
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Reply {
    ask(address, "GET", path, &[], b"")
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &[u8]) -> Reply {
    ask(address, "POST", path, &[], body)
}
