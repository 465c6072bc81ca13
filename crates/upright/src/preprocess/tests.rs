use super::*;
use crate::hint::Hint;
use crate::onnx::build::{graph, model, node, remark};

fn settings(pairs: &[(&str, &str)]) -> Overrides {
    let mut o = Overrides::default();
    for (k, v) in pairs {
        o.set(k, v).unwrap();
    }
    o
}

fn ramp(width: usize, height: usize, channels: usize) -> Picture {
    let n = width * height * channels;
    Picture::new(width, height, channels, (0..n).map(|i| i as f32 / n as f32).collect()).unwrap()
}

#[test]
fn metadata_of_our_digit_models_is_understood() {
    let mut m = model(&[0, 1, 40, 40], vec![node("Relu", &["x"], "y")], vec![]);
    for (k, v) in [
        ("task", "classification"),
        ("channels", "gray"),
        ("scale", "1/255"),
        ("mean", "0"),
        ("std", "1"),
        ("pad", "28x28 -> 40x40 zeros, centred"),
    ] {
        remark(&mut m, k, v);
    }
    let p = Overrides::from_metadata(&graph(&m)).resolve(1).unwrap();
    assert_eq!(p.to_string(), "gray -> pad to 40x40 with 0 -> x/255");
    let item = p.prepare(&ramp(28, 28, 1), Signal::image(1, 40, 40)).unwrap();
    assert_eq!((item[0], item[6 * 40 + 6], item[6 * 40 + 7]), (0.0, 0.0, 1.0 / 784.0));
    assert_eq!((item[33 * 40 + 33], item[34 * 40 + 33]), (783.0 / 784.0, 0.0));
}

#[test]
fn overrides_win_over_the_file_and_the_file_over_metadata() {
    let user = settings(&[("scale", "1")]);
    let file = Overrides::from_toml("scale = 0.5\nmean = [1, 2, 3]\n").unwrap();
    let own = settings(&[("scale", "2"), ("mean", "9"), ("channels", "bgr")]);
    let p = user.or(file).or(own).resolve(3).unwrap();
    assert_eq!(
        (p.scale, p.mean.as_slice(), p.channels),
        (1.0, &[1.0, 2.0, 3.0][..], Channels::Bgr)
    );
}

#[test]
fn a_file_beside_the_model_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let onnx = dir.path().join("m.onnx");
    assert_eq!(Overrides::beside(&onnx).unwrap(), Overrides::default());
    std::fs::write(dir.path().join("m.toml"), "[preprocess]\nresize = 32\n").unwrap();
    assert_eq!(Overrides::beside(&onnx).unwrap().resize, Some(Resize::Shorter(32)));
    std::fs::write(dir.path().join("m.onnx.toml"), "resize = \"8x9\"\n").unwrap();
    let exact = Resize::Exact { height: 8, width: 9 };
    assert_eq!(Overrides::beside(&onnx).unwrap().resize, Some(exact));
    std::fs::write(dir.path().join("m.onnx.toml"), "resiez = 3").unwrap();
    let e = Overrides::beside(&onnx).unwrap_err().to_string();
    assert!(e.contains("no setting `resiez`"), "{e}");
}

#[test]
fn the_network_sees_scaled_and_shifted_pixels_in_its_channel_order() {
    let p = settings(&[("scale", "1"), ("mean", "127"), ("std", "128"), ("channels", "bgr")]);
    let p = p.resolve(3).unwrap();
    assert_eq!(p.to_string(), "bgr -> (x - 127) / 128");
    let raw = Batch::new(Signal::image(3, 1, 1), vec![1.0, 0.0, 0.5]).unwrap();
    let seen = p.normalise(&raw, raw.signal());
    // (255 x - 127) / 128 for blue 0.5, green 0, red 1.
    for (a, b) in seen.iter().zip([0.5 / 128.0, -127.0 / 128.0, 1.0]) {
        assert!((a - b).abs() < 1e-6, "{seen:?}");
    }
    let back = p.pullback(raw.signal(), raw.signal(), &[1.0, 2.0, 3.0]);
    let gain = 255.0 / 128.0;
    assert_eq!(back, [3.0 * gain, 2.0 * gain, gain]);
}

#[test]
fn defaults_hand_on_raw_pixels_bit_for_bit() {
    let raw = Batch::new(Signal::image(1, 1, 3), vec![0.1, 0.7, 1.0]).unwrap();
    assert_eq!(Overrides::default().resolve(1).unwrap().normalise(&raw, raw.signal()), raw.data());
}

#[test]
fn grey_is_luminance_and_colour_of_grey_repeats_it() {
    let one = Picture::new(1, 1, 3, vec![1.0, 0.5, 0.25]).unwrap();
    let gray = Overrides::default().resolve(1).unwrap();
    let item = gray.prepare(&one, Signal::image(1, 1, 1)).unwrap();
    assert!((item[0] - (0.299 + 0.2935 + 0.0285)).abs() < 1e-6);
    let rgb = Overrides::default().resolve(3).unwrap();
    let grey = Picture::from_u8(1, 1, 1, &[51]).unwrap();
    assert_eq!(rgb.prepare(&grey, Signal::image(3, 1, 1)).unwrap(), [0.2; 3]);
}

#[test]
fn a_picture_that_does_not_fit_says_what_to_add() {
    let p = Overrides::default().resolve(3).unwrap();
    let e = p.prepare(&ramp(28, 28, 1), Signal::image(3, 224, 224)).unwrap_err();
    assert_eq!(e.to_string(), "the model wants [N,3,224,224] but the picture gives [1,1,28,28]");
    assert_eq!(e.hint(), Some(Hint::Resize { height: 224, width: 224, rgb: true }));
    assert_eq!(e.code(), "input::shape");
    assert!(p.prepare(&ramp(2, 2, 3), Signal::Strokes { length: 3 }).is_err());
}

#[test]
fn resizing_and_cropping_follow_pillow() {
    // Pillow 12: Image.fromarray(.., "F").resize((2, 2), BILINEAR) of 0..15 as 4 x 4.
    let x: Vec<f32> = (0u8..16).map(|v| f32::from(v) / 16.0).collect();
    let picture = Picture::new(4, 4, 1, x).unwrap();
    let p = settings(&[("resize", "2")]).resolve(1).unwrap();
    let item = p.prepare(&picture, Signal::image(1, 2, 2)).unwrap();
    for (a, b) in item.iter().zip([3.571_429, 5.142_857, 9.857_143, 11.428_571]) {
        assert!((a * 16.0 - b).abs() < 1e-4, "{item:?}");
    }
    let wide = settings(&[("resize", "4"), ("crop", "4")]).resolve(1).unwrap();
    let item = wide.prepare(&ramp(8, 4, 1), Signal::image(1, 4, 4)).unwrap();
    assert_eq!(item[..4], ramp(8, 4, 1).data()[2..6]);
    // torchvision.transforms.functional.center_crop starts at round(1 / 2) = 0, round(3 / 2) = 2.
    let crop = settings(&[("crop", "1x2")]).resolve(1).unwrap();
    let at = |width| crop.prepare(&ramp(width, 1, 1), Signal::image(1, 1, 2)).unwrap()[0];
    assert_eq!((at(3), at(5)), (0.0, 2.0 / 5.0));
}

#[test]
fn impossible_settings_are_refused() {
    for (k, v) in [
        ("resize", "0"),
        ("resize", "big"),
        ("filter", "sharp"),
        ("channels", "cmyk"),
        ("scale", "1/0"),
        ("mean", "a,b"),
        ("size", "3"),
    ] {
        assert!(Overrides::default().set(k, v).is_err(), "{k} {v}");
    }
    for (pair, channels) in
        [(("mean", "1,2"), 3), (("std", "0"), 3), (("channels", "rgb"), 1), (("fill", "2"), 1)]
    {
        assert!(settings(&[pair]).resolve(channels).is_err(), "{pair:?}");
    }
}

#[test]
fn settings_survive_storage() {
    let p =
        settings(&[("resize", "256"), ("crop", "224"), ("mean", "imagenet"), ("std", "imagenet")]);
    let p = p.resolve(3).unwrap();
    let text = serde_json::to_string(&p).unwrap();
    assert_eq!(serde_json::from_str::<Preprocess>(&text).unwrap(), p);
    assert_eq!(
        p.to_string(),
        "rgb -> resize shorter side to 256 bilinear -> crop 224x224 -> \
         (x/255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]"
    );
}

#[test]
fn transposing_exchanges_rows_and_columns() {
    let p = Picture::new(3, 2, 1, vec![1., 2., 3., 4., 5., 6.]).unwrap();
    let t = p.transposed();
    assert_eq!((t.width(), t.height(), t.data()), (2, 3, &[1., 4., 2., 5., 3., 6.][..]));
    assert_eq!(t.transposed(), p);
    let colours = Picture::new(2, 1, 3, vec![1., 2., 3., 4., 5., 6.]).unwrap();
    assert_eq!(colours.transposed().data(), colours.data());
}

#[test]
fn factors_are_told_as_fractions() {
    let words = |scale: f64| Preprocess { scale, ..Preprocess::default() }.to_string();
    for (scale, told) in [
        (1.0, "x"),
        (2.0, "2 x"),
        (1.0 / 255.0, "x/255"),
        (f64::from(1.0f32 / 255.0), "x/255"),
        (1.0 / 127.5, "2 x/255"),
        (16.0 / 255.0, "16 x/255"),
        (-1.0 / 255.0, "-x/255"),
        (1.0 / 128.0, "x/128"),
        (0.017, "0.017 x"),
        (f64::from(0.7f32), "0.7 x"),
    ] {
        assert_eq!(words(scale), format!("rgb -> {told}"));
    }
    let mean = vec![f64::from(0.485f32)];
    let p = Preprocess { mean, ..Preprocess::default() };
    assert_eq!(p.to_string(), "rgb -> x/255 - 0.485");
}

/// Whatever the margins and their halves, the centre of what is kept is the crop.
#[test]
fn what_is_kept_around_a_crop_has_the_crop_in_its_centre() {
    for (shorter, crop, kept) in [(8, 6, 8), (9, 6, 9), (7, 5, 7), (9, 4, 6), (8, 3, 4), (4, 4, 4)]
    {
        let (resize, crop_to) = (shorter.to_string(), crop.to_string());
        let p = settings(&[("resize", &resize), ("crop", &crop_to), ("channels", "gray")]);
        let p = p.resolve(1).unwrap();
        assert_eq!(p.kept(), Some(Size { height: kept, width: kept }));
        let (fed, whole) = (Signal::image(1, crop, crop), Signal::image(1, kept, kept));
        for (width, height) in [(8, 8), (9, 13), (15, 10), (21, 8)] {
            let picture = ramp(width, height, 1);
            let seen = |signal: Signal| {
                let item = p.prepare(&picture, signal).unwrap();
                p.normalise(&Batch::new(signal, item).unwrap(), fed)
            };
            assert_eq!(seen(whole), seen(fed), "{width} x {height} to {shorter}, then {crop}");
        }
        let d: Vec<f32> = (1..=fed.size()).map(|i| i as f32).collect();
        let back = Batch::new(whole, p.pullback(whole, fed, &d)).unwrap();
        assert_eq!(back.data().iter().filter(|v| **v != 0.0).count(), fed.size());
        assert_eq!(cut(back, fed).unwrap().data(), d);
    }
}

#[test]
fn nothing_is_kept_where_sizes_are_open_or_padded() {
    for words in [&[("crop", "4")][..], &[("resize", "8"), ("crop", "4"), ("pad", "9")]] {
        assert_eq!(settings(words).resolve(3).unwrap().kept(), None);
    }
    assert_eq!(settings(&[("resize", "3"), ("crop", "4")]).resolve(3).unwrap().kept(), None);
}

#[test]
fn images_in_the_centre_of_larger_ones_come_back() {
    let (own, to) = (Signal::image(2, 2, 3), Signal::image(2, 5, 4));
    let batch = Batch::new(own, (0..24u8).map(f32::from).collect()).unwrap();
    let larger = framed(&batch, to, 9.0).unwrap();
    assert_eq!(larger.data().iter().filter(|v| (**v - 9.0).abs() < 0.1).count(), 2 * 40 - 23);
    assert_eq!(cut(larger, own).unwrap().data(), batch.data());
}
