//! Energies of a network of one's own, by `--external`.

use crate::energy::energy;
use crate::support::{FIT, upright};
use crate::workflow::fitted;

#[test]
fn an_energy_network_is_fitted_with_and_asked_for_again() {
    let folder = fitted();
    let folder = folder.path();
    let write = |name: &str, outputs: u16, sign: f32| {
        let bytes = energy(40, outputs, |i| sign * (i % 40) as f32 * 1e-2);
        std::fs::write(folder.join(name), bytes).unwrap();
    };
    write("energy.onnx", 1, 1.0);
    write("other.onnx", 1, -1.0);
    write("wide.onnx", 3, 1.0);
    let plain: Vec<&str> = FIT.iter().copied().take_while(|word| *word != "--score").collect();
    let fit = |more: &[&str]| {
        let out = ["--out", "led.upright", "--accept-harm", "100"];
        upright(folder, &[&plain[..], &out[..], more].concat())
    };
    let ran = fit(&["--external", "wide.onnx"]);
    assert!(ran.code == 4 && ran.err.contains("3 numbers per input"), "{}", ran.err);
    let ran = fit(&["--score", "external"]);
    assert!(ran.code != 0 && ran.err.contains("--external ENERGY.onnx"), "{}", ran.err);
    let ran = fit(&["--external", "missing.onnx"]);
    assert!(ran.code != 0 && ran.err.contains("missing.onnx"), "{}", ran.err);
    let ran = fit(&["--external", "energy.onnx"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let predict = |more: &[&str]| {
        let words = ["predict", "model.onnx", "test", "--artifact", "led.upright", "--json"];
        upright(folder, &[&words[..], more].concat())
    };
    let ran = predict(&[]);
    assert!(ran.code == 2 && ran.err.contains("--external ENERGY.onnx"), "{}", ran.err);
    let ran = predict(&["--external", "other.onnx"]);
    assert!(ran.code == 5 && ran.err.contains("artifact::model"), "{}", ran.err);
    let ran = predict(&["--external", "energy.onnx"]);
    assert!(ran.code == 0 && ran.out.contains("energy_before"), "{}", ran.err);
}
