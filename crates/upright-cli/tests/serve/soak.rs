//! Long use leaves no trace.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{ask, post};
use crate::server::{Server, agrees, digits, known, wait_for};

/// Most that the memory may grow after it has settled, in MiB.
const GROWTH: f64 = 24.0;

/// Four clients send what is familiar, unfamiliar, late and unreadable.
fn soak(length: Duration) {
    let server = Server::start(digits(), &[]);
    let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut settled = None;
    thread::scope(|scope| {
        for client in 0..4 {
            let (server, stop, asked) = (&server, &stop, &asked);
            scope.spawn(move || {
                for i in (client..).step_by(4).take_while(|_| !stop.load(Ordering::Relaxed)) {
                    let (file, row) = &known()[i % known().len()];
                    match i % 11 {
                        3 => {
                            let reply =
                                post(server.address, "/v1/predict", &file[..file.len() / 2]);
                            assert_eq!(reply.status, 422);
                        }
                        5 => {
                            let headers = [("timeout-ms", "1")];
                            let reply = ask(server.address, "POST", "/v1/predict", &headers, file);
                            assert_eq!(reply.status, 200);
                        }
                        7 => assert_eq!(server.get("/metrics").status, 200),
                        _ => {
                            let reply = post(server.address, "/v1/predict", file);
                            agrees(&reply.json()["predictions"][0], row);
                        }
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let start = Instant::now();
        while start.elapsed() < length {
            thread::sleep(Duration::from_millis(200));
            if settled.is_none() && start.elapsed() > length / 3 {
                settled = server.memory();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let asked = asked.into_inner();
    assert!(asked > 50, "{asked} requests");
    wait_for("idle", || server.metric("upright_queue_passes", "") == 0.0);
    assert_eq!(server.metric("upright_requests_total", "outcome=\"failed\""), 0.0);
    let Some((settled, after)) = settled.zip(server.memory()) else { return };
    eprintln!("{asked} requests, {settled:.0} MiB after a third, {after:.0} MiB at the end");
    assert!(after < settled + GROWTH, "from {settled:.0} to {after:.0} MiB in {asked} requests");
}

#[test]
fn ten_seconds_of_mixed_requests_leave_the_memory_flat() {
    soak(Duration::from_secs(10));
}

#[test]
#[ignore = "takes ten minutes"]
fn ten_minutes_of_mixed_requests_leave_the_memory_flat() {
    soak(Duration::from_mins(10));
}
