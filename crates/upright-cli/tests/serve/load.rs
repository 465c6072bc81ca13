//! Many at a time: bursts, overload, deadlines, clients that leave, the end.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Reply, connect, head, post, reply};
use crate::server::{Server, agrees, digits, known, wait_for};

/// Searches so long that a test can watch them.
const LONG: [&str; 6] = ["--budget", "20000", "--search", "annealing", "--timeout", "120"];

/// A file that is searched, and one that is not.
fn unfamiliar() -> &'static [u8] {
    &known().iter().find(|(_, row)| row["verdict"] == "accepted").unwrap().0
}

fn familiar() -> &'static (Vec<u8>, serde_json::Value) {
    known().iter().find(|(_, row)| row["verdict"] == "kept").unwrap()
}

/// Sends a file without waiting for the answer.
fn send(server: &Server, path: &str, file: &[u8]) -> std::net::TcpStream {
    let mut stream = connect(server.address);
    let length = file.len().to_string();
    stream.write_all(head("POST", path, &[("content-length", &length)]).as_bytes()).unwrap();
    stream.write_all(file).unwrap();
    stream
}

#[test]
fn a_burst_of_64_gets_the_bytes_of_the_command_line() {
    let server = Server::start(digits(), &[]);
    let replies: Vec<(usize, Reply)> = thread::scope(|scope| {
        let one = |i: usize| {
            let server = &server;
            scope.spawn(move || {
                let which = i * 7 % known().len();
                (which, post(server.address, "/v1/predict", &known()[which].0))
            })
        };
        let all: Vec<_> = (0..64).map(one).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (which, reply) in &replies {
        assert_eq!(reply.status, 200, "{}", reply.text());
        agrees(&reply.json()["predictions"][0], &known()[*which].1);
    }
    assert_eq!(
        server.metric("upright_requests_total", "endpoint=\"predict\",outcome=\"ok\""),
        64.0
    );
    wait_for("idle", || server.metric("upright_queue_passes", "") == 0.0);
}

#[test]
fn familiar_inputs_overtake_searches() {
    let server = Server::start(digits(), &LONG);
    let slow: Vec<_> = (0..4).map(|_| send(&server, "/v1/predict", unfamiliar())).collect();
    wait_for("searching", || server.metric("upright_searching", "") == 4.0);
    for _ in 0..5 {
        let (file, row) = familiar();
        let answer = post(server.address, "/v1/predict", file).json()["predictions"][0].clone();
        agrees(&answer, row);
    }
    assert_eq!(server.metric("upright_searching", ""), 4.0, "the searches are still under way");
    assert_eq!(server.metric("upright_requests_total", "endpoint=\"predict\",outcome=\"ok\""), 5.0);
    drop(slow);
}

#[test]
fn a_deadline_is_met_by_the_best_view_so_far() {
    let server = Server::start(digits(), &LONG);
    for (path, headers) in
        [("/v1/predict?timeout_ms=1500", &[][..]), ("/v1/predict", &[("timeout-ms", "1500")])]
    {
        let start = Instant::now();
        let reply = crate::client::ask(server.address, "POST", path, headers, unfamiliar());
        let took = start.elapsed();
        let answer = &reply.json()["predictions"][0];
        assert_eq!(answer["truncated"], true, "{answer}");
        let spent = answer["evaluations"].as_u64().unwrap();
        assert!((2..20_001).contains(&spent), "{answer}");
        assert!(took >= Duration::from_millis(1490) && took < Duration::from_secs(20), "{took:?}");
    }
    let bare = post(server.address, "/v1/predict?timeout_ms=0", unfamiliar()).json();
    let bare = &bare["predictions"][0];
    assert_eq!((&bare["label"], &bare["truncated"]), (&bare["model_label"], &json!(true)));
    assert_eq!((&bare["verdict"], &bare["evaluations"]), (&json!("rejected"), &json!(1)));
    let (file, row) = familiar();
    let kept = post(server.address, "/v1/predict?timeout_ms=0", file).json();
    agrees(&kept["predictions"][0], row);
    let request = json!({
        "parameters": {"timeout": 1_500_000},
        "inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [
            base64::Engine::encode(&base64::engine::general_purpose::STANDARD, unfamiliar())]}],
        "outputs": [{"name": "truncated"}, {"name": "evaluations"}],
    });
    let reply = post(server.address, "/v2/models/model/infer", request.to_string().as_bytes());
    let reply = reply.json();
    assert_eq!(reply["outputs"][0]["data"][0], true, "{reply}");
    assert_eq!(reply["parameters"]["truncated"], true);
    assert_eq!(server.metric("upright_truncated_total", ""), 4.0);
    wait_for("idle", || server.metric("upright_searching", "") == 0.0);
}

#[test]
fn clients_that_leave_free_their_work() {
    let server = Server::start(digits(), &LONG);
    let gone: Vec<_> = (0..8).map(|_| send(&server, "/v1/predict", unfamiliar())).collect();
    wait_for("searching", || server.metric("upright_searching", "") == 8.0);
    assert_eq!(server.metric("upright_queue_passes", ""), 8.0 * 20_000.0);
    drop(gone);
    wait_for("free", || server.metric("upright_searching", "") == 0.0);
    assert_eq!(server.metric("upright_queue_passes", ""), 0.0);
    wait_for("counted", || server.metric("upright_requests_total", "outcome=\"cancelled\"") == 8.0);
    server.lives();
}

#[test]
fn more_work_than_may_wait_is_turned_away_and_the_server_lives() {
    let server = Server::start(digits(), &[&LONG[..], &["--queue", "60000"]].concat());
    let slow: Vec<_> = (0..3).map(|_| send(&server, "/v1/predict", unfamiliar())).collect();
    wait_for("full", || server.metric("upright_queue_passes", "") >= 60_000.0);
    let mut live = Vec::new();
    for _ in 0..20 {
        let reply = post(server.address, "/v1/predict", &familiar().0);
        assert_eq!((reply.status, reply.code().as_str()), (503, "serve::overload"));
        let seconds: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds));
        let start = Instant::now();
        assert_eq!(server.get("/v2/health/live").status, 200);
        live.push(start.elapsed());
    }
    live.sort();
    assert!(live[10] < Duration::from_millis(50), "{live:?}");
    assert_eq!(server.metric("upright_shed_total", ""), 20.0);
    drop(slow);
    wait_for("room", || server.metric("upright_queue_passes", "") == 0.0);
    server.lives();
    // More inputs than ever fit are told so, and not to come back.
    let server = Server::start(digits(), &["--queue", "2"]);
    let request = json!({"inputs": [{"name": "image", "datatype": "FP32",
        "shape": [3, 1, 40, 40], "data": vec![0.0; 4800]}]});
    let reply = post(server.address, "/v2/models/model/infer", request.to_string().as_bytes());
    assert_eq!((reply.status, reply.code().as_str()), (413, "request::size"));
}

#[test]
fn sigterm_lets_requests_under_way_finish_and_exits_with_0() {
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::start(
            digits(),
            &["--budget", "300", "--search", "annealing", "--drain", "300"],
        );
        let under_way: Vec<_> =
            (0..6).map(|_| send(&server, "/v1/predict", unfamiliar())).collect();
        wait_for("searching", || server.metric("upright_searching", "") == 6.0);
        server.signal(signal);
        wait_for("closed", || std::net::TcpStream::connect(server.address).is_err());
        for stream in under_way {
            let reply = reply(&stream).expect("an answer");
            assert_eq!(reply.status, 200);
            assert_eq!(reply.json()["predictions"][0]["truncated"], false);
        }
        assert_eq!(server.wait(), Some(0));
        assert_eq!(server.logged("drained").len(), 1);
    }
}

#[test]
fn a_drain_that_takes_too_long_ends_anyway_with_0() {
    let mut server = Server::start(digits(), &[&LONG[..], &["--drain", "0.5"]].concat());
    let stream = send(&server, "/v1/predict", unfamiliar());
    wait_for("searching", || server.metric("upright_searching", "") == 1.0);
    let start = Instant::now();
    server.signal("-TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(reply(&stream).is_none());
}
