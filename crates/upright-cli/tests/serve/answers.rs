//! Inference by every way in, with the command line's bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::{Reply, ask, post};
use crate::server::{Server, digits, inputs, known, png, rounded};

const INFER: &str = "/v2/models/model/infer";

/// A request with tensors behind its JSON.
fn binary(server: &Server, json: &Value, tensors: &[u8]) -> Reply {
    let text = json.to_string();
    let length = text.len().to_string();
    let headers = [("inference-header-content-length", length.as_str())];
    ask(server.address, "POST", INFER, &headers, &[text.as_bytes(), tensors].concat())
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn logits(row: &Value) -> Vec<f32> {
    row["logits"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

#[test]
fn tensors_in_json_get_the_bytes_of_the_command_line() {
    let server = Server::start(digits(), &[]);
    let (items, known) = (rounded(&inputs(16)), known());
    let rows: Vec<&Value> = [0, 17, 20].iter().map(|&i| &known[i].1).collect();
    let numbers = [&items[0], &items[17], &items[20]].map(Clone::clone).concat();
    let names = [
        "logits",
        "label",
        "class",
        "model_label",
        "rival",
        "verdict",
        "energy_before",
        "energy_after",
        "evaluations",
        "map",
        "truncated",
    ];
    let outputs: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let reply = post(server.address, INFER, json!({
        "id": "mine",
        "inputs": [{"name": "image", "shape": [3, 1, 40, 40], "datatype": "FP32", "data": numbers}],
        "outputs": outputs,
    }).to_string().as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.text());
    let reply = reply.json();
    assert_eq!((&reply["model_name"], &reply["id"]), (&json!("model"), &json!("mine")));
    assert_eq!(reply["parameters"]["truncated"], false);
    let column = |name: &str| {
        let all = reply["outputs"].as_array().unwrap();
        let own = all.iter().find(|o| o["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        own["data"].as_array().unwrap().clone()
    };
    for (i, row) in rows.iter().enumerate() {
        for name in [
            "label",
            "class",
            "model_label",
            "verdict",
            "energy_before",
            "energy_after",
            "evaluations",
        ] {
            assert_eq!(column(name)[i], row[name], "{name} of {row}");
        }
        assert_eq!(column("rival")[i], json!(row["rival"].as_i64().unwrap_or(-1)));
        assert_eq!(column("logits")[10 * i..10 * (i + 1)], *row["logits"].as_array().unwrap());
        let map = ["m00", "m01", "m02", "m10", "m11", "m12"].map(|name| row[name].clone());
        assert_eq!(column("map")[6 * i..6 * (i + 1)], map);
    }
    assert_eq!(column("truncated"), [false, false, false].map(Value::from));
    let shapes: Vec<&Value> =
        reply["outputs"].as_array().unwrap().iter().map(|o| &o["shape"]).collect();
    assert_eq!(
        (shapes[0], shapes[1], shapes[9]),
        (&json!([3, 10]), &json!([3]), &json!([3, 2, 3]))
    );
}

#[test]
fn tensors_behind_the_json_get_the_same_bytes_both_ways() {
    let server = Server::start(digits(), &[]);
    let (items, known) = (rounded(&inputs(16)), known());
    // Two tensors, one after the other, are answered in order; the answer's come likewise.
    let input = |rows: usize| {
        json!({"name": "image", "shape": [rows, 1, 40, 40], "datatype": "FP32",
        "parameters": {"binary_data_size": rows * 6400}})
    };
    let tensors = bytes(&[&items[3], &items[18], &items[30]].map(Clone::clone).concat());
    let request = json!({"inputs": [input(2), input(1)], "outputs": [
        {"name": "logits", "parameters": {"binary_data": true}},
        {"name": "label"},
        {"name": "verdict", "parameters": {"binary_data": true}},
    ]});
    let reply = binary(&server, &request, &tensors);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let length = reply.header("inference-header-content-length").unwrap().parse().unwrap();
    let (json, behind) = reply.body.split_at(length);
    let json: Value = serde_json::from_slice(json).unwrap();
    let sizes =
        |i: usize| json["outputs"][i]["parameters"]["binary_data_size"].as_u64().unwrap() as usize;
    assert_eq!(behind.len(), sizes(0) + sizes(2));
    let rows = [3, 18, 30].map(|i| &known[i].1);
    let want: Vec<f32> = rows.iter().flat_map(|row| logits(row)).collect();
    assert_eq!(floats(&behind[..sizes(0)]), want);
    let texts: Vec<u8> = rows
        .iter()
        .map(|row| row["verdict"].as_str().unwrap())
        .flat_map(|word| [&(word.len() as u32).to_le_bytes(), word.as_bytes()].concat())
        .collect();
    assert_eq!(behind[sizes(0)..], texts);
    let labels = rows.map(|row| row["label"].clone());
    assert_eq!(*json["outputs"][1]["data"].as_array().unwrap(), labels);
    // By a parameter of the request, all outputs come so.
    let request = json!({"parameters": {"binary_data_output": true}, "inputs": [input(1)]});
    let reply = binary(&server, &request, &bytes(&items[3]));
    assert_eq!(floats(&reply.body[reply.body.len() - 40..]), want[..10]);
}

#[test]
fn files_as_bytes_get_the_same_bytes_in_json_and_behind_it() {
    let server = Server::start(digits(), &[]);
    let files = [&known()[1], &known()[21]];
    let want: Vec<f32> = files.iter().flat_map(|(_, row)| logits(row)).collect();
    let encoded = files.map(|(file, _)| STANDARD.encode(file));
    for parameters in [json!({"content_type": "base64"}), json!({})] {
        let reply = post(
            server.address,
            INFER,
            json!({"inputs": [{
                "name": "image", "shape": [2, 1], "datatype": "BYTES", "parameters": parameters,
                "data": encoded,
            }]})
            .to_string()
            .as_bytes(),
        );
        assert_eq!(reply.status, 200, "{}", reply.text());
        let data = reply.json()["outputs"][0]["data"].clone();
        let got: Vec<f32> =
            data.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect();
        assert_eq!(got, want);
    }
    let tensor: Vec<u8> = files
        .iter()
        .flat_map(|(file, _)| [&(file.len() as u32).to_le_bytes(), file.as_slice()].concat())
        .collect();
    let request = json!({"parameters": {"binary_data_output": true}, "inputs": [{
        "name": "image", "shape": [2], "datatype": "BYTES",
        "parameters": {"binary_data_size": tensor.len()}}]});
    let reply = binary(&server, &request, &tensor);
    assert_eq!(floats(&reply.body[reply.body.len() - 80..]), want);
}

#[test]
fn whole_numbers_and_halves_are_tensors_too() {
    let server = Server::start(digits(), &[]);
    let (items, known) = (rounded(&inputs(16)), known());
    let want = logits(&known[2].1);
    let whole: Vec<u8> = items[2].iter().map(|v| (v * 255.0).round() as u8).collect();
    let doubles: Vec<u8> = items[2].iter().flat_map(|v| f64::from(*v).to_le_bytes()).collect();
    for (kind, tensor) in [("UINT8", whole), ("FP64", doubles)] {
        let request = json!({"parameters": {"binary_data_output": true}, "inputs": [{
            "name": "image", "shape": [1, 1, 40, 40], "datatype": kind,
            "parameters": {"binary_data_size": tensor.len()}}]});
        let reply = binary(&server, &request, &tensor);
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(floats(&reply.body[reply.body.len() - 40..]), want, "{kind}");
    }
}

#[test]
fn what_is_not_an_input_is_refused_with_a_reason() {
    let server = Server::start(digits(), &[]);
    let zeros = vec![0.0f32; 1600];
    let input = |change: &Value| {
        let mut input =
            json!({"name": "image", "shape": [1, 1, 40, 40], "datatype": "FP32", "data": zeros});
        change.as_object().unwrap().iter().for_each(|(k, v)| input[k] = v.clone());
        json!({"inputs": [input]})
    };
    let mut large = zeros.clone();
    large[7] = 255.0;
    for (request, code) in [
        (input(&json!({"name": "x"})), "input::name"),
        (input(&json!({"shape": [1, 40, 40]})), "input::shape"),
        (input(&json!({"shape": [2, 1, 40, 40]})), "input::shape"),
        (input(&json!({"shape": [1, 3, 40, 40]})), "input::shape"),
        (input(&json!({"shape": [0, 1, 40, 40]})), "input::shape"),
        (input(&json!({"shape": []})), "input::shape"),
        (input(&json!({"shape": [u64::MAX, 1, 40, 40]})), "request::size"),
        (input(&json!({"shape": [-1, 1, 40, 40]})), "request::json"),
        (input(&json!({"datatype": "INT32"})), "input::type"),
        (input(&json!({"datatype": "BYTES"})), "input::type"),
        (input(&json!({"datatype": "UINT8", "data": vec![0.5; 1600]})), "input::range"),
        (input(&json!({"data": large})), "input::range"),
        (input(&json!({"data": vec!["a"; 1600]})), "input::type"),
        (input(&json!({"data": [[1, "a"]]})), "request::json"),
        (input(&json!({"data": null})), "input::missing"),
        (
            input(
                &json!({"datatype": "BYTES", "shape": [1], "data": ["!!"], "parameters": {"content_type": "base64"}}),
            ),
            "input::base64",
        ),
        (
            input(&json!({"datatype": "BYTES", "shape": [1], "data": ["aGVsbG8="]})),
            "input::unreadable",
        ),
        (
            input(&json!({"parameters": {"binary_data_size": 6400}, "data": null})),
            "request::binary",
        ),
        (json!({"inputs": []}), "input::missing"),
        (json!({"inputs": 3}), "request::json"),
        (json!({"parameters": {"timeout": "soon"}, "inputs": []}), "request::timeout"),
        (
            {
                let mut r = input(&json!({}));
                r["outputs"] = json!([{"name": "energy"}]);
                r
            },
            "output::name",
        ),
    ] {
        let reply = post(server.address, INFER, request.to_string().as_bytes());
        assert!((400..500).contains(&reply.status), "{} {}", reply.status, reply.text());
        assert_eq!(reply.code(), code, "{}", reply.text());
    }
    let nan = input(&json!({})).to_string().replacen("0.0", "NaN", 1);
    assert_eq!(post(server.address, INFER, nan.as_bytes()).code(), "request::json");
    let mut nan = zeros.clone();
    nan[9] = f32::NAN;
    let behind = json!({"inputs": [{"name": "image", "shape": [1, 1, 40, 40], "datatype": "FP32",
        "parameters": {"binary_data_size": 6400}}]});
    let reply = binary(&server, &behind, &bytes(&nan));
    assert_eq!((reply.status, reply.code().as_str()), (400, "input::nan"));
    assert!(reply.text().contains("number 9 of the input is NaN"), "{}", reply.text());
    let reply = binary(&server, &behind, &bytes(&[zeros, vec![1.0]].concat()));
    assert_eq!(reply.code(), "request::binary");
    for length in ["99999", "-1", "x"] {
        let headers = [("inference-header-content-length", length)];
        let reply = ask(server.address, "POST", INFER, &headers, b"{}");
        assert_eq!(reply.code(), "request::binary", "{length}");
    }
    server.lives();
}

/// The picture in the answer is the view that the map describes.
#[test]
fn the_view_that_answered_can_be_had() {
    let server = Server::start(digits(), &[]);
    let turned = known().iter().find(|(_, row)| row["verdict"] == "accepted").unwrap();
    let reply = post(server.address, "/v1/predict?view=png", &turned.0).json();
    let url = reply["predictions"][0]["view"].as_str().unwrap();
    let png_bytes = STANDARD.decode(url.strip_prefix("data:image/png;base64,").unwrap()).unwrap();
    let view = image::load_from_memory(&png_bytes).unwrap().into_luma8();
    assert_eq!(view.dimensions(), (40, 40));
    let numbers: Vec<f32> = view.as_raw().iter().map(|&v| f32::from(v) / 255.0).collect();
    let again = post(server.address, "/v1/predict", &png(&numbers)).json();
    assert_eq!(again["predictions"][0]["model_label"], turned.1["label"]);
    let plain = post(server.address, "/v1/predict", &turned.0).json();
    assert!(plain["predictions"][0].get("view").is_none());
}
