//! A panic in the code of a part is one request's failure and nobody else's.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use upright::score::{self, Make, Needs, Score};
use upright::{
    Config, Cotangents, FitData, Kind, Model, ModelOptions, Outputs, Part, Preset, Role, Silent,
    State, samples,
};
use upright_serve::{Options, Server};

/// The label on whose inputs the score panics.
static LABEL: Mutex<Option<usize>> = Mutex::new(None);

#[derive(Debug)]
struct Touchy;

impl Score for Touchy {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let label = *LABEL.lock().unwrap();
        let one = |row: &[f32]| {
            let top = (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
            assert!(label.is_none() || top != label, "touched");
            -row[top.unwrap()]
        };
        outputs.logits.iter().map(one).collect()
    }

    fn pullback(&self, _: &Outputs) -> Cotangents {
        Cotangents { logits: None, features: vec![] }
    }

    fn state(&self) -> State {
        State::new()
    }
}

static TOUCHY: Kind<Make> = Kind {
    name: "touchy",
    about: "a test",
    params: &[],
    make: Make {
        needs: |_| Needs::default(),
        fit: |_, _| Ok(Box::new(Touchy)),
        load: |_, _| Ok(Box::new(Touchy)),
    },
};

/// Sends a digit; the status of the answer, and all of it.
fn ask(address: SocketAddr, item: &[f32]) -> (u16, String) {
    let json = r#"{"inputs":[{"name":"image","shape":[1,1,40,40],"datatype":"FP32","parameters":{"binary_data_size":6400}}]}"#;
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /v2/models/digits/infer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         inference-header-content-length: {}\r\ncontent-length: {}\r\n\r\n{json}",
        json.len(),
        json.len() + 6400
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&item.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>()).unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

#[test]
fn a_request_that_panics_is_a_500_and_the_server_lives() {
    score::add(&TOUCHY).unwrap();
    let model = Model::from_bytes("digits", samples::glyph_model(), &ModelOptions::default());
    let data = samples::digits(200, 1).unwrap();
    let config = Preset::of("search").unwrap().config(data.batch().signal());
    let config = Config { calibration: 60, budget: 4, ..config }
        .with(Role::Score, Part::new("touchy"))
        .with(Role::Gate, Part::new("never"));
    let c = config.fit(model.unwrap(), &FitData::new(&data), &mut Silent).unwrap();
    let options = Options::new("digits", &c);
    let options = Options { address: ([127, 0, 0, 1], 0).into(), ..options };
    let server = Server::bind(c, options).unwrap();
    let address = server.address().unwrap();
    thread::spawn(move || server.run().unwrap());
    thread::sleep(Duration::from_millis(100));
    *LABEL.lock().unwrap() = Some(3);
    let item = |label: u32| {
        let at = data.labels().unwrap().iter().position(|&l| l == label).unwrap();
        data.batch().item(at)
    };
    let (bad, good) = (item(3), item(5));
    let replies: Vec<(bool, u16, String)> = thread::scope(|scope| {
        let one = |i: usize| {
            scope.spawn(move || {
                let touchy = i.is_multiple_of(3);
                let (status, text) = ask(address, if touchy { bad } else { good });
                (touchy, status, text)
            })
        };
        let all: Vec<_> = (0..24).map(one).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (touchy, status, text) in replies {
        assert_eq!(status, if touchy { 500 } else { 200 }, "{text}");
        assert!(!text.contains("touched"), "nothing about the inside: {text}");
        assert!(!touchy || text.contains("\"code\":\"serve::failed\""), "{text}");
    }
    *LABEL.lock().unwrap() = None;
    assert_eq!(ask(address, bad).0, 200);
}
