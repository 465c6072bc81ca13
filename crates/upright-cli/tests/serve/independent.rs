//! A client that others wrote: tritonclient, where Python has it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::server::{Server, digits, inputs, known, rounded};

#[test]
fn tritonclient_gets_the_bytes_of_the_command_line() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../upright-serve/tests/independent.py");
    let python = std::env::var("UPRIGHT_PYTHON").unwrap_or_else(|_| "python3".into());
    let server = Server::start(digits(), &[]);
    let items = rounded(&inputs(16));
    for which in [4, 20] {
        let (file, row) = &known()[which];
        let path = digits().folder().join(format!("independent-{which}.png"));
        std::fs::write(&path, file).unwrap();
        let command = Command::new(&python)
            .args([script, &server.address.to_string(), "model"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = command else {
            eprintln!("SKIPPED: there is no {python}");
            return;
        };
        let hex = |bytes: &[u8]| {
            bytes.iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        };
        let numbers: Vec<u8> = items[which].iter().flat_map(|v| v.to_le_bytes()).collect();
        // A script that ends at once, for want of a module, does not read.
        let _ = writeln!(child.stdin.take().unwrap(), "{}", hex(&numbers));
        let ran = child.wait_with_output().unwrap();
        if ran.status.code() == Some(77) {
            eprintln!("SKIPPED: {python} has no tritonclient[http]");
            return;
        }
        assert!(ran.status.success());
        let logits = row["logits"].as_array().unwrap();
        let logits: Vec<u8> =
            logits.iter().flat_map(|v| (v.as_f64().unwrap() as f32).to_le_bytes()).collect();
        let text = String::from_utf8(ran.stdout).unwrap();
        assert_eq!(text.lines().collect::<Vec<_>>(), vec![hex(&logits); 4]);
    }
}
