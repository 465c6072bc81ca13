//! What the protocol promises besides inference.

use serde_json::{Value, json};

use crate::client::{ask, get, post};
use crate::server::{Server, digits, known, wait_for};

#[test]
fn the_server_and_its_model_describe_themselves() {
    let server = Server::start(digits(), &["--name", "digits"]);
    assert_eq!(server.get("/v2/health/live").json(), json!({"live": true}));
    assert_eq!(server.get("/v2/health/ready").json(), json!({"ready": true}));
    let about = server.get("/v2").json();
    assert_eq!(
        (&about["name"], &about["extensions"]),
        (&json!("upright"), &json!(["binary_tensor_data"]))
    );
    for path in ["/v2/models/digits", "/v2/models/digits/versions/1"] {
        let model = server.get(path).json();
        assert_eq!((&model["name"], &model["versions"]), (&json!("digits"), &json!(["1"])));
        let input = json!({"name": "image", "datatype": "FP32", "shape": [-1, 1, 40, 40]});
        assert_eq!(model["inputs"], json!([input]));
        let logits = json!({"name": "logits", "datatype": "FP32", "shape": [-1, 10]});
        assert_eq!(model["outputs"][0], logits);
        let names: Vec<&Value> =
            model["outputs"].as_array().unwrap().iter().map(|o| &o["name"]).collect();
        for name in ["label", "map", "energy_before", "energy_after", "verdict", "evaluations"] {
            assert!(names.contains(&&json!(name)), "{name}");
        }
        assert_eq!(server.get(&format!("{path}/ready")).json()["ready"], true);
    }
    let info = server.get("/v1/info").json();
    assert_eq!(info["shape"], json!([1, 40, 40]));
    assert_eq!((&info["signal"], &info["classes"]), (&json!("image"), &json!(10)));
    assert_eq!((&info["budget"], &info["shadow"]), (&json!(12), &json!(false)));
    assert_eq!(info["gate"]["name"], "conformal");
    assert!(info["gate"]["tau"].is_number() && info["class_names"].is_array(), "{info}");
}

#[test]
fn unknown_models_paths_and_methods_are_told() {
    let server = Server::start(digits(), &[]);
    for (method, path, status, code) in [
        ("GET", "/v2/models/other", 404, "request::path"),
        ("GET", "/v2/models/..%2Fmodel", 404, "request::path"),
        ("GET", "/v2/models/model/versions/2", 404, "request::path"),
        ("POST", "/v2/models/other/infer", 404, "request::path"),
        ("GET", "/v2/models/model/infer", 405, "request::method"),
        ("POST", "/v2/health/live", 405, "request::method"),
        ("GET", "/v1/predict", 405, "request::method"),
        ("GET", "/v2/repository/index", 404, "request::path"),
        ("GET", "/etc/passwd", 404, "request::path"),
        ("GET", "/../Cargo.toml", 404, "request::path"),
        ("POST", "/v1/predict?view=gif", 400, "request::query"),
        ("POST", "/v1/predict?veiw=png", 400, "request::query"),
    ] {
        let reply = ask(server.address, method, path, &[], b"{}");
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{method} {path}");
    }
    server.lives();
}

#[test]
fn every_path_is_described_and_every_described_path_is_there() {
    let server = Server::start(digits(), &[]);
    let description = server.get("/openapi.json").json();
    assert_eq!(description["openapi"], "3.1.0");
    let paths = description["paths"].as_object().unwrap();
    assert!(paths.len() >= 13, "{}", paths.len());
    for (path, methods) in paths {
        let path = path.replace("{model}", "model").replace("{version}", "1");
        for method in methods.as_object().unwrap().keys() {
            let reply = ask(server.address, &method.to_uppercase(), &path, &[], b"");
            let there = if method == "get" { 200 } else { 400 };
            assert_eq!(reply.status, there, "{method} {path}: {}", reply.text());
        }
    }
    let text = description.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(description["components"]["schemas"].get(name).is_some(), "{name}");
    }
    assert!(text.contains("\"model\"") && !text.contains("MODEL_"));
}

#[test]
fn a_token_is_asked_for_where_one_is_set() {
    let token = "correct horse battery staple";
    let server = Server::with(digits(), &[], |command| {
        command.env("UPRIGHT_TOKEN", token);
    });
    let (file, _) = &known()[0];
    let with =
        |value: &str| ask(server.address, "POST", "/v1/predict", &[("authorization", value)], file);
    for path in ["/v1/info", "/v2", "/v2/models/model", "/metrics"] {
        let reply = server.get(path);
        assert_eq!((reply.status, reply.code().as_str()), (401, "request::token"), "{path}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    for wrong in
        ["Bearer wrong", "Bearer ", "Basic eDp5", token, "Bearer correct horse battery staplf"]
    {
        assert_eq!(with(wrong).status, 401, "{wrong}");
    }
    assert_eq!(with(&format!("Bearer {token}")).status, 200);
    for open in ["/v2/health/live", "/v2/health/ready", "/openapi.json", "/"] {
        assert_eq!(server.get(open).status, 200, "{open}");
    }
}

#[test]
fn requests_have_ids_log_lines_and_metrics() {
    let server = Server::start(digits(), &[]);
    let id = |headers: &[(&str, &str)]| {
        let reply = ask(server.address, "POST", "/v1/predict", headers, &known()[20].0);
        reply.header("x-request-id").unwrap().to_string()
    };
    assert_eq!(id(&[("x-request-id", "order-7")]), "order-7");
    let odd = id(&[("x-request-id", "\"}, {\"a\": \"")]);
    assert!(odd.len() == 16 && odd.bytes().all(|b| b.is_ascii_hexdigit()), "{odd}");
    post(server.address, "/v1/predict", b"no image");
    let lines = || {
        let all = server.logged("request").into_iter();
        all.filter(|line| line["path"] == "/v1/predict").collect::<Vec<_>>()
    };
    wait_for("logged", || lines().len() == 3);
    let lines = lines();
    let row = &known()[20].1;
    assert_eq!((&lines[0]["id"], &lines[0]["status"]), (&json!("order-7"), &json!(200)));
    assert_eq!((&lines[0]["inputs"], &lines[0]["searched"]), (&json!(1), &json!(1)));
    assert_eq!(lines[0]["evaluations"], row["evaluations"]);
    assert_eq!((&lines[2]["outcome"], &lines[2]["status"]), (&json!("refused"), &json!(422)));
    assert!(lines.iter().all(|line| line["ms"].is_number() && line["method"] == "POST"));

    assert_eq!(server.metric("upright_requests_total", "endpoint=\"predict\",outcome=\"ok\""), 2.0);
    assert_eq!(
        server.metric("upright_requests_total", "endpoint=\"predict\",outcome=\"refused\""),
        1.0
    );
    let decision = format!("decision={}", row["verdict"]);
    assert_eq!(server.metric("upright_gate_total", &decision), 2.0);
    let evaluations = 2.0 * row["evaluations"].as_f64().unwrap();
    assert_eq!(server.metric("upright_evaluations_total", ""), evaluations);
    assert_eq!(server.metric("upright_energy_count", ""), 2.0);
    let energy = row["energy_before"].as_f64().unwrap();
    assert!((server.metric("upright_energy_sum", "") - 2.0 * energy).abs() < 1e-4 * energy.abs());
    assert_eq!(server.metric("upright_queue_seconds_count", ""), 2.0);
    assert_eq!(server.metric("upright_search_seconds_count", ""), 2.0);
    assert_eq!(server.metric("upright_request_seconds_count", "endpoint=\"predict\""), 3.0);
    // The request for the metrics itself is under way.
    assert_eq!(server.metric("upright_inflight", ""), 1.0);
    assert_eq!(server.metric("upright_shed_total", ""), 0.0);
    assert_eq!(server.metric("upright_build_info", "model=\"model\""), 1.0);
    let text = server.get("/metrics").text();
    for name in ["upright_queue_passes", "upright_searching", "upright_truncated_total"] {
        assert!(text.contains(&format!("\n{name} 0\n")), "{name} in {text}");
    }
    assert!(text.contains("# HELP upright_energy Energy of inputs as they are"), "{text}");
}

#[test]
fn there_is_something_at_the_root() {
    let server = Server::start(digits(), &[]);
    let page = server.get("/");
    assert_eq!(page.status, 200);
    assert!(!page.body.is_empty());
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    if page.header("content-type") == Some("text/html; charset=utf-8") {
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("'wasm-unsafe-eval'"));
        let tag = page.header("etag").unwrap();
        let again = ask(server.address, "GET", "/", &[("if-none-match", tag)], b"");
        assert_eq!((again.status, again.body.len()), (304, 0));
        let packed = ask(server.address, "GET", "/", &[("accept-encoding", "gzip, br")], b"");
        assert!(packed.body.len() <= page.body.len());
    }
}

#[test]
fn a_taken_port_and_a_bad_token_end_with_a_word() {
    let server = Server::start(digits(), &[]);
    let port = server.address.port().to_string();
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_upright"));
        command.current_dir(digits().folder()).args(["serve", "model.onnx"]).args(args);
        let ran = command.env("UPRIGHT_TOKEN", "short").output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (code, text) = run(&["--port", "0"]);
    assert!(code == Some(2) && text.contains("shorter than 8 characters"), "{text}");
    std::fs::write(digits().folder().join("token"), "long enough\n").unwrap();
    let (code, text) = run(&["--token-file", "token", "--port", &port]);
    assert!(code == Some(2) && text.contains("cannot listen on"), "{text}");
    let (code, text) = run(&["--token-file", "token", "--name", "a/b"]);
    assert!(code == Some(2) && text.contains("cannot be part of a path"), "{text}");
    assert_eq!(get(server.address, "/v2/health/live").status, 200);
}
