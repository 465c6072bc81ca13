//! Sketches and clouds are served as images are.

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use upright::{Config, Part, Role, Signal, samples};

use crate::client::{ask, post};
use crate::server::{Fitted, Server, agrees, said_by_cli};

fn config(signal: Signal) -> Config {
    Config { budget: 6, calibration: 60, ..Config::of_signal(signal) }
        .with(Role::Score, Part::new("proto"))
        .with(Role::Proposer, Part::new("moments"))
        .with(Role::Search, Part::new("rivals"))
        .with(Role::Gate, Part::new("always"))
}

#[test]
fn sketches_come_as_svg() {
    let data = samples::strokes(200, 3).unwrap();
    let signal = data.batch().signal();
    let fitted = Fitted::of(samples::stroke_model(), &data, &config(signal));
    let server = Server::start(&fitted, &[]);
    let svg = b"<svg><path d='M10 10 L40 12 L25 60 L20 61'/></svg>".to_vec();
    let row = said_by_cli(&fitted, &[("a.svg".into(), svg.clone())]).remove(0);
    assert_eq!(server.get("/v1/info").json()["signal"], "strokes");
    let reply = post(server.address, "/v1/predict", &svg).json();
    agrees(&reply["predictions"][0], &row);
    // SVG is text: it may stand in JSON as it is.
    let text = String::from_utf8(svg).unwrap();
    let request = json!({"inputs": [{"name": "strokes", "shape": [1], "datatype": "BYTES",
        "data": [text]}]});
    let reply = post(server.address, "/v2/models/model/infer", request.to_string().as_bytes());
    assert_eq!(reply.json()["outputs"][0]["data"], row["logits"], "{}", reply.text());
}

#[test]
fn clouds_come_as_any_file_of_points() {
    let data = samples::solids(100, 3).unwrap();
    let signal = data.batch().signal();
    let fitted = Fitted::of(samples::solid_model(), &data, &config(signal));
    let server = Server::start(&fitted, &[]);
    let xyz = data.batch().item(7).chunks_exact(3).fold(String::new(), |mut text, p| {
        writeln!(text, "{} {} {}", p[0], p[1], p[2]).unwrap();
        text
    });
    let row = said_by_cli(&fitted, &[("a.xyz".into(), xyz.clone().into_bytes())]).remove(0);
    assert_eq!(server.get("/v1/info").json()["shape"], json!([256, 3]));
    for path in ["/v1/predict", "/v1/predict?name=a.xyz"] {
        let reply = ask(server.address, "POST", path, &[], xyz.as_bytes()).json();
        agrees(&reply["predictions"][0], &row);
        assert_eq!(reply["predictions"][0]["map"].as_array().unwrap().len(), 9);
    }
    let request = json!({"inputs": [{"name": "points", "shape": [1], "datatype": "BYTES",
        "data": [STANDARD.encode(&xyz)]}], "outputs": [{"name": "map"}, {"name": "logits"}]});
    let reply =
        post(server.address, "/v2/models/model/infer", request.to_string().as_bytes()).json();
    assert_eq!(reply["outputs"][0]["shape"], json!([1, 3, 3]));
    assert_eq!(reply["outputs"][1]["data"], row["logits"]);
    let reply = post(server.address, "/v1/predict", b"\x89PNG\r\n\x1a\n");
    let error = &reply.json()["predictions"][0]["error"];
    assert!(error["message"].as_str().unwrap().contains("supported: off ply"), "{error}");
}
