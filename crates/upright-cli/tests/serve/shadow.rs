//! Shadow mode: the bare model answers, upright only watches; and the bare model alone.

use serde_json::json;

use crate::client::post;
use crate::server::{Server, digits, known, wait_for};

#[test]
fn answers_are_the_bare_models_and_what_upright_says_is_recorded() {
    let server = Server::start(digits(), &["--shadow"]);
    assert_eq!(server.get("/v1/info").json()["shadow"], true);
    for (file, row) in known() {
        let answer = post(server.address, "/v1/predict", file).json()["predictions"][0].clone();
        assert_eq!(answer["label"], row["model_label"]);
        assert_eq!((&answer["verdict"], &answer["evaluations"]), (&json!("kept"), &json!(1)));
        assert_eq!(answer["energy_after"], row["energy_before"]);
    }
    let total = known().len() as f64;
    wait_for("recorded", || server.metric("upright_shadow_total", "") >= total);
    assert_eq!(server.metric("upright_shadow_total", ""), total);
    for verdict in ["kept", "accepted", "rejected"] {
        let rows = known().iter().filter(|(_, row)| row["verdict"] == verdict).count() as f64;
        let label = format!("decision=\"{verdict}\"");
        assert_eq!(server.metric("upright_shadow_total", &label), rows, "{verdict}");
    }
    let changed = known().iter().filter(|(_, row)| row["label"] != row["model_label"]).count();
    assert_eq!(server.metric("upright_shadow_total", "label=\"changed\""), changed as f64);
    assert!(changed > 3, "{changed}");
    assert_eq!(server.metric("upright_gate_total", "decision=\"kept\""), total);
    let searched = known().iter().filter(|(_, row)| row["verdict"] != "kept").count();
    wait_for("logged", || server.logged("shadow").len() == searched);
    for line in server.logged("shadow") {
        let requests = server.logged("request");
        assert!(requests.iter().any(|r| r["id"] == line["id"]), "{line}");
        let same = |row: &serde_json::Value| {
            let names = ["label", "class", "model_label", "verdict", "energy_after", "evaluations"];
            names.iter().all(|name| match (line[*name].as_f64(), row[*name].as_f64()) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * b.abs(),
                _ => line[*name] == row[*name],
            })
        };
        assert!(known().iter().any(|(_, row)| same(row)), "{line}");
    }
}

#[test]
fn the_model_alone_answers_every_input_as_it_is() {
    let server = Server::start(digits(), &["--bare"]);
    for (file, row) in known() {
        let answer = post(server.address, "/v1/predict", file).json()["predictions"][0].clone();
        assert_eq!(answer["label"], row["model_label"]);
        assert_eq!((&answer["verdict"], &answer["evaluations"]), (&json!("kept"), &json!(1)));
        // Energies are those of the logits, not of the fitted score.
        assert!(
            answer["energy_before"].is_number() && answer["energy_before"] != row["energy_before"]
        );
    }
    assert_eq!(server.metric("upright_gate_total", "decision=\"kept\""), known().len() as f64);
}
