//! What can be asked for of an answer: the table of outputs, and an answer
//! with some of them, in JSON or as bytes behind it.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::{Serialize, Serializer};
use upright_job::{Answer as Row, word};

use super::request::JSON_LENGTH;
use crate::app::App;
use crate::refusal::Refusal;
use crate::runner::Answer;

/// An output.
pub struct Output {
    /// Its name; the first is also known by the name that the model gives it.
    pub name: &'static str,
    /// Its type.
    pub datatype: &'static str,
    /// The shape of one input's part.
    pub shape: fn(&App) -> Vec<usize>,
    /// The parts of some answers, one after the other.
    values: fn(&[Answer], &[Row]) -> Values,
}

/// Every output. The first is sent if none is asked for.
pub const OUTPUTS: &[Output] = &[
    Output {
        name: "logits",
        datatype: "FP32",
        shape: |app| vec![app.canonicalizer.model().classes()],
        values: |_, rows| Values::F32(rows.iter().flat_map(|r| &r.logits).copied().collect()),
    },
    Output {
        name: "label",
        datatype: "INT64",
        shape: |_| vec![],
        values: |_, rows| Values::I64(rows.iter().map(|r| i64::from(r.label)).collect()),
    },
    Output {
        name: "class",
        datatype: "BYTES",
        shape: |_| vec![],
        values: |_, rows| Values::Texts(rows.iter().map(|r| r.class.clone()).collect()),
    },
    Output {
        name: "model_label",
        datatype: "INT64",
        shape: |_| vec![],
        values: |_, rows| Values::I64(rows.iter().map(|r| i64::from(r.model_label)).collect()),
    },
    Output {
        name: "rival",
        datatype: "INT64",
        shape: |_| vec![],
        values: |_, rows| Values::I64(rows.iter().map(|r| r.rival.map_or(-1, i64::from)).collect()),
    },
    Output {
        name: "verdict",
        datatype: "BYTES",
        shape: |_| vec![],
        values: |_, rows| Values::Texts(rows.iter().map(|r| word(r.verdict).into()).collect()),
    },
    Output {
        name: "energy_before",
        datatype: "FP32",
        shape: |_| vec![],
        values: |_, rows| Values::F32(rows.iter().map(|r| r.energy_before).collect()),
    },
    Output {
        name: "energy_after",
        datatype: "FP32",
        shape: |_| vec![],
        values: |_, rows| Values::F32(rows.iter().map(|r| r.energy_after).collect()),
    },
    Output {
        name: "evaluations",
        datatype: "INT64",
        shape: |_| vec![],
        values: |_, rows| Values::I64(rows.iter().map(|r| r.evaluations as i64).collect()),
    },
    Output {
        name: "map",
        datatype: "FP32",
        shape: |app| {
            let cloud = app.canonicalizer.model().signal().kind() == upright::SignalKind::Cloud;
            vec![if cloud { 3 } else { 2 }, 3]
        },
        values: |_, rows| Values::F32(rows.iter().flat_map(|r| &r.map).copied().collect()),
    },
    Output {
        name: "truncated",
        datatype: "BOOL",
        shape: |_| vec![],
        values: |answers, _| Values::Bools(answers.iter().map(|a| a.truncated).collect()),
    },
];

/// An output that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its place in the table.
    output: usize,
    /// What the client calls it.
    name: String,
    binary: bool,
}

/// The name under which the logits are listed: the model's own, unless that output holds
/// probabilities.
pub fn logits_name(app: &App) -> &str {
    let model = app.canonicalizer.model();
    if model.ending().activation.is_some() { OUTPUTS[0].name } else { model.output() }
}

/// The output of a name.
pub fn wanted(app: &App, name: &str, binary: bool) -> Result<Wanted, Refusal> {
    let found = OUTPUTS.iter().position(|o| o.name == name);
    let found = found.or_else(|| (name == logits_name(app)).then_some(0));
    let Some(output) = found else {
        let names: Vec<&str> = OUTPUTS.iter().map(|o| o.name).collect();
        let message = format!("there is no output `{name}`");
        let hint = format!("ask for some of: {}", names.join(", "));
        return Err(Refusal::bad("output::name", message, &hint));
    };
    Ok(Wanted { output, name: name.into(), binary })
}

/// What is sent if nothing is asked for.
pub fn usual(app: &App, binary: bool) -> Wanted {
    Wanted { output: 0, name: logits_name(app).into(), binary }
}

/// The values of an output.
enum Values {
    F32(Vec<f32>),
    I64(Vec<i64>),
    Bools(Vec<bool>),
    Texts(Vec<String>),
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Values::F32(v) => v.serialize(to),
            Values::I64(v) => v.serialize(to),
            Values::Bools(v) => v.serialize(to),
            Values::Texts(v) => v.serialize(to),
        }
    }
}

impl Values {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Values::F32(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::I64(v) => v.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Values::Bools(v) => v.iter().map(|v| u8::from(*v)).collect(),
            Values::Texts(v) => {
                let one =
                    |text: &String| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
                v.iter().flat_map(one).collect()
            }
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model_name: &'a str,
    model_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    parameters: Parameters,
    outputs: Vec<Tensor>,
}

#[derive(Serialize)]
struct Parameters {
    /// Whether a deadline cut any answer short.
    truncated: bool,
}

#[derive(Serialize)]
struct Tensor {
    name: String,
    datatype: &'static str,
    shape: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Values>,
}

#[derive(Serialize)]
struct Size {
    binary_data_size: usize,
}

/// Puts an answer together.
pub fn send(
    app: &App,
    id: Option<&str>,
    wanted: &[Wanted],
    answers: &[Answer],
) -> Result<Response, Refusal> {
    let rows: Vec<Row> =
        answers.iter().map(|a| Row::of(&app.canonicalizer, &a.prediction)).collect();
    let mut behind = Vec::new();
    let tensor = |wanted: &Wanted| {
        let output = &OUTPUTS[wanted.output];
        let values = (output.values)(answers, &rows);
        let shape = [vec![answers.len()], (output.shape)(app)].concat();
        let (name, datatype) = (wanted.name.clone(), output.datatype);
        if !wanted.binary {
            return Tensor { name, datatype, shape, parameters: None, data: Some(values) };
        }
        let bytes = values.bytes();
        let parameters = Some(Size { binary_data_size: bytes.len() });
        behind.extend(bytes);
        Tensor { name, datatype, shape, parameters, data: None }
    };
    let outputs = wanted.iter().map(tensor).collect();
    let body = Body {
        model_name: &app.options.name,
        model_version: super::VERSION,
        id,
        parameters: Parameters { truncated: answers.iter().any(|a| a.truncated) },
        outputs,
    };
    let mut bytes = serde_json::to_vec(&body).map_err(|_| Refusal::failed())?;
    let json = bytes.len();
    bytes.extend(behind);
    let mut response = bytes.into_response();
    let kind = if wanted.iter().any(|w| w.binary) {
        response.headers_mut().insert(JSON_LENGTH, HeaderValue::from(json));
        "application/octet-stream"
    } else {
        "application/json"
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}
