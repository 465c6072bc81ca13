//! Views against torch, against index arithmetic and against finite differences.
#![allow(clippy::unwrap_used, clippy::float_cmp, missing_docs)] // tests; exact numbers are meant

use std::time::Instant;

use proptest::prelude::*;
use serde::Deserialize;
use upright::internal::warp::{border_colour, pullback};
use upright::{Batch, Kernel, Map, Padding, Resample, Signal, View, warp};

#[derive(Deserialize)]
struct Fixture {
    shapes: Vec<(usize, usize, usize)>,
    images: Vec<Vec<f32>>,
    cotangents: Vec<Vec<f32>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    shape: usize,
    name: String,
    map: [f32; 6],
    kernel: Kernel,
    padding: Padding,
    view: Vec<f32>,
    slopes: Option<[f32; 6]>,
}

const QUARTER: Map = Map::Plane([0.0, -1.0, 0.0, 1.0, 0.0, 0.0]);
const GENERIC: [f32; 6] = [0.93, -0.41, 0.11, 0.52, 1.21, -0.07];

fn image(channels: usize, height: usize, width: usize, data: Vec<f32>) -> Batch<'static> {
    Batch::new(Signal::image(channels, height, width), data).unwrap()
}

/// Numbers in 0..1 that look random and are the same everywhere.
fn noise(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    std::iter::repeat_with(next).take(n).collect()
}

fn one(batch: &Batch, map: Map, resample: &Resample) -> Vec<f32> {
    warp(batch, &[View { item: 0, map }], resample).unwrap().data().to_vec()
}

fn with(kernel: Kernel, padding: Padding) -> Resample {
    Resample { kernel, padding, clamp: false }
}

fn assert_close(got: &[f32], want: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (k, (g, w)) in got.iter().zip(want).enumerate() {
        let scale = w.abs().max(1.0);
        assert!((g - w).abs() <= tolerance * scale, "{what}: number {k} is {g}, expected {w}");
    }
}

#[test]
fn views_and_their_derivatives_equal_torch() {
    let fixture: Fixture = serde_json::from_str(include_str!("fixtures/warp.json")).unwrap();
    assert!(fixture.cases.len() > 150);
    for case in &fixture.cases {
        let (channels, height, width) = fixture.shapes[case.shape];
        let batch = image(channels, height, width, fixture.images[case.shape].clone());
        let cotangent = image(channels, height, width, fixture.cotangents[case.shape].clone());
        let resample = with(case.kernel, case.padding.clone());
        let views = [View { item: 0, map: Map::Plane(case.map) }];
        let what = format!(
            "{} {channels}x{height}x{width} {:?} {:?}",
            case.name, case.kernel, case.padding
        );
        let got = warp(&batch, &views, &resample).unwrap();
        assert_close(got.data(), &case.view, 1e-5, &what);
        if let Some(slopes) = &case.slopes {
            let got = pullback(&batch, &views, &resample, &cotangent).unwrap();
            assert_close(got.row(0), slopes, 1e-5, &format!("derivative of {what}"));
        }
    }
}

/// With `(x, y) -> (-y, x)` the view's pixel (row i, column j) shows the
/// input's row j and column 2 - i.
#[test]
fn a_quarter_turn_permutes_the_pixels() {
    let batch = image(1, 3, 3, (1..=9).map(|v| v as f32).collect());
    let want = [3.0, 6.0, 9.0, 2.0, 5.0, 8.0, 1.0, 4.0, 7.0];
    for kernel in [Kernel::Bicubic, Kernel::Bilinear, Kernel::Nearest] {
        assert_eq!(one(&batch, QUARTER, &with(kernel, Padding::Zeros)), want);
    }
}

#[test]
fn two_quarter_turns_are_a_half_turn() {
    let batch = image(3, 6, 6, noise(108, 1));
    let once = image(3, 6, 6, one(&batch, QUARTER, &Resample::default()));
    let twice = one(&once, QUARTER, &Resample::default());
    assert_eq!(twice, one(&batch, QUARTER.then(&QUARTER).unwrap(), &Resample::default()));
    let reversed: Vec<f32> =
        batch.data().chunks(36).flat_map(|plane| plane.iter().rev().copied()).collect();
    assert_eq!(twice, reversed);
}

/// In a 2 x 4 image a unit is 2 pixels, so tx = 0.5 reads one pixel to the right.
#[test]
fn a_shift_by_one_pixel_moves_the_columns() {
    let batch = image(1, 2, 4, (1..=8).map(|v| v as f32).collect());
    let shift = Map::Plane([1.0, 0.0, 0.5, 0.0, 1.0, 0.0]);
    let shifted = |padding| one(&batch, shift, &with(Kernel::Bicubic, padding));
    assert_eq!(shifted(Padding::Zeros), [2.0, 3.0, 4.0, 0.0, 6.0, 7.0, 8.0, 0.0]);
    assert_eq!(shifted(Padding::Border), [2.0, 3.0, 4.0, 4.0, 6.0, 7.0, 8.0, 8.0]);
    assert_eq!(shifted(Padding::Fill(vec![-5.0])), [2.0, 3.0, 4.0, -5.0, 6.0, 7.0, 8.0, -5.0]);
    assert_eq!(shifted(Padding::Auto), shifted(Padding::Border));
}

/// Of the 16 outermost pixels of a 5 x 5 image one may be light, and so may those within.
#[test]
fn edges_are_continued_unless_nine_in_ten_of_them_are_black() {
    let mut digit = vec![0.0; 25];
    (digit[4], digit[12]) = (0.5, 1.0);
    let map = Map::Plane(GENERIC);
    let of = |pixels: &[f32], padding| {
        one(&image(1, 5, 5, pixels.to_vec()), map, &with(Kernel::Bicubic, padding))
    };
    assert_eq!(of(&digit, Padding::Auto), of(&digit, Padding::Zeros));
    digit[0] = 0.5;
    assert_eq!(of(&digit, Padding::Auto), of(&digit, Padding::Border));
    assert_ne!(of(&digit, Padding::Zeros), of(&digit, Padding::Border));
}

/// Halfway between pixels the cubic weights are -0.09375, 0.59375, 0.59375, -0.09375.
#[test]
fn a_shift_by_half_a_pixel_weighs_four_pixels() {
    let batch = image(1, 1, 4, vec![0.0, 1.0, 0.0, 0.0]);
    let shift = Map::Plane([1.0, 0.0, 0.25, 0.0, 1.0, 0.0]);
    let mut resample = Resample::default();
    assert_eq!(one(&batch, shift, &resample), [0.59375, 0.59375, -0.09375, 0.0]);
    resample.clamp = true;
    assert_eq!(one(&batch, shift, &resample), [0.59375, 0.59375, 0.0, 0.0]);
    resample.kernel = Kernel::Bilinear;
    assert_eq!(one(&batch, shift, &resample), [0.5, 0.5, 0.0, 0.0]);
}

/// A tap outside reads the colour, and the weights sum to one: the view is that
/// of the image minus the colour, plus the colour.
#[test]
fn a_fill_colour_is_zero_padding_around_that_colour() {
    let colour = [0.2, 0.5, 0.9];
    let batch = image(3, 5, 7, noise(105, 2));
    let per_channel = |k: usize| colour[k / 35];
    let less: Vec<f32> = batch.data().iter().enumerate().map(|(k, v)| v - per_channel(k)).collect();
    let zeros = one(&image(3, 5, 7, less), Map::Plane(GENERIC), &Resample::default());
    let want: Vec<f32> = zeros.iter().enumerate().map(|(k, v)| v + per_channel(k)).collect();
    let fill = with(Kernel::Bicubic, Padding::Fill(colour.to_vec()));
    assert_close(&one(&batch, Map::Plane(GENERIC), &fill), &want, 1e-6, "fill");
}

#[test]
fn views_come_in_the_order_asked_and_do_not_depend_on_threads() {
    let batch = image(3, 9, 6, noise(3 * 54 * 3, 3));
    let views: Vec<View> = (0..50)
        .map(|k| {
            let t = k as f32 / 10.0;
            View { item: (k * 7) % 3, map: Map::Plane([0.9, -t, 0.1, t, 1.1, 0.2]) }
        })
        .collect();
    let cotangent = image(3, 9, 6, noise(50 * 162, 4));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let all = warp(&batch, &views, &Resample::default()).unwrap();
            (all, pullback(&batch, &views, &Resample::default(), &cotangent).unwrap())
        })
    };
    let (all, slopes) = run(1);
    assert_eq!(run(4), (all.clone(), slopes));
    for (k, view) in views.iter().enumerate() {
        let alone =
            warp(&batch.select(&[view.item]), &[View { item: 0, ..*view }], &Resample::default());
        assert_eq!(alone.unwrap().data(), all.item(k));
    }
}

/// Central differences of a weighted sum of the view.
fn differences(batch: &Batch, map: Map, resample: &Resample, weights: &Batch, h: f32) -> Vec<f64> {
    let total = |map: Map| -> f64 {
        let view = one(batch, map, resample);
        view.iter().zip(weights.data()).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    (0..map.entries().len())
        .map(|k| {
            let mut ends = [map, map];
            let step = |map: &mut Map, by: f32| match map {
                Map::Plane(m) => {
                    m[k] += by;
                    f64::from(m[k])
                }
                Map::Space(m) => {
                    m[k] += by;
                    f64::from(m[k])
                }
            };
            let width = step(&mut ends[1], h) - step(&mut ends[0], -h);
            (total(ends[1]) - total(ends[0])) / width
        })
        .collect()
}

/// Whether number `k` of a view is read within 0.01 pixels of a row or column of the input.
fn on_a_kink(signal: Signal, map: Map, k: usize) -> bool {
    let (Signal::Image { height, width, .. }, Map::Plane([a, b, tx, c, d, ty])) = (signal, map)
    else {
        return false;
    };
    let (half_w, half_h) = ((width - 1) as f32 / 2.0, (height - 1) as f32 / 2.0);
    let (u, v) = ((k % width) as f32 - half_w, (k / width % height) as f32 - half_h);
    let unit = width.max(height) as f32 / 2.0;
    let near = |at: f32| (at - at.round()).abs() < 0.01;
    near(a * u + b * v + tx * unit + half_w) || near(c * u + d * v + ty * unit + half_h)
}

fn assert_slopes(batch: &Batch, map: Map, resample: &Resample, h: f32, tolerance: f64) {
    let n = batch.signal().size();
    let mut weights: Vec<f32> = noise(n, 5).iter().map(|v| v - 0.3).collect();
    if resample.kernel == Kernel::Bilinear {
        for (k, weight) in weights.iter_mut().enumerate() {
            *weight *= f32::from(u8::from(!on_a_kink(batch.signal(), map, k)));
        }
    }
    let weights = Batch::new(batch.signal(), weights).unwrap();
    let got = pullback(batch, &[View { item: 0, map }], resample, &weights).unwrap();
    let want = differences(batch, map, resample, &weights, h);
    let scale = want.iter().fold(1.0_f64, |a, b| a.max(b.abs()));
    for (got, want) in got.row(0).iter().zip(&want) {
        let error = (f64::from(*got) - want).abs();
        assert!(error <= tolerance * scale, "{got} against {want} with {resample:?} under {map:?}");
    }
}

#[test]
fn pullback_agrees_with_finite_differences() {
    let maps = [GENERIC, [0.7, 0.66, -0.3, -0.71, 0.64, 0.23], [1.9, 0.13, 0.4, -0.37, 2.3, -0.2]];
    for (channels, height, width) in [(1, 6, 9), (3, 8, 5), (3, 7, 7)] {
        let batch = image(channels, height, width, noise(channels * height * width, 6));
        let fill = Padding::Fill((0..channels).map(|c| 0.2 + 0.3 * c as f32).collect());
        for padding in [Padding::Zeros, Padding::Border, fill] {
            for map in maps.map(Map::Plane) {
                let cubic = with(Kernel::Bicubic, padding.clone());
                assert_slopes(&batch, map, &cubic, 5e-4, 1e-3);
                let linear = with(Kernel::Bilinear, padding.clone());
                assert_slopes(&batch, map, &linear, 1e-4, 2e-3);
            }
        }
    }
}

#[test]
fn where_values_are_clamped_the_derivative_is_zero() {
    let contrast = noise(49, 8).iter().map(|v| if *v > 0.5 { 1.0 } else { 0.0 }).collect();
    let batch = image(1, 7, 7, contrast);
    let map = Map::Plane(GENERIC);
    let mut resample = Resample { clamp: true, ..Resample::default() };
    assert_slopes(&batch, map, &resample, 1e-4, 1e-2);
    let ones = image(1, 7, 7, vec![1.0; 49]);
    let views = [View { item: 0, map }];
    let clamped = pullback(&batch, &views, &resample, &ones).unwrap();
    resample.clamp = false;
    assert_ne!(clamped, pullback(&batch, &views, &resample, &ones).unwrap());
    let beyond = image(1, 7, 7, batch.data().iter().map(|v| v + 5.0).collect());
    resample = Resample { clamp: true, padding: Padding::Border, ..resample };
    assert_eq!(pullback(&beyond, &views, &resample, &ones).unwrap().data(), [0.0; 6]);
}

#[test]
fn the_nearest_kernel_has_no_derivative() {
    let batch = image(1, 5, 5, noise(25, 9));
    let views = [View { item: 0, map: Map::Plane(GENERIC) }];
    let nearest = with(Kernel::Nearest, Padding::Zeros);
    assert_eq!(pullback(&batch, &views, &nearest, &batch).unwrap().data(), [0.0; 6]);
}

/// A dot drawn at a stroke's point is seen where the warped stroke has its point. Two more
/// points at the picture's corners make its frame that of the strokes.
#[test]
fn a_stroke_moves_like_a_drawing_of_it() {
    let (size, row, col) = (9_usize, 2_usize, 6_usize);
    let centred = |k: usize| (2 * k + 1) as f32 / size as f32 - 1.0;
    let mut pixels = vec![0.0; size * size];
    pixels[row * size + col] = 1.0;
    let drawing = image(1, size, size, pixels);
    let corners = [-1.0, -1.0, 1.0, 1.0, 1.0, 0.0];
    let stroke = [&[centred(col), centred(row), 1.0], &corners[..], &[7.0, 8.0, -1.0]].concat();
    let stroke = Batch::new(Signal::Strokes { length: 4 }, stroke).unwrap();
    for map in [QUARTER, Map::Plane([1.0, 0.0, 4.0 / 9.0, 0.0, 1.0, -2.0 / 9.0])] {
        let view = one(&drawing, map, &with(Kernel::Nearest, Padding::Zeros));
        let at = upright::internal::tensor::argmax(&view);
        let moved = one(&stroke, map, &Resample::default());
        let want = [centred(at % size), centred(at / size), 1.0];
        assert_close(&moved[..3], &want, 1e-6, "stroke");
        assert_eq!(moved[9..], [7.0, 8.0, -1.0], "padding");
    }
}

/// About the centre (20, 10) of the box 0..40 x 5..15: twice as far to the right is seen
/// half as far, and a shift of 0.5 is a quarter of the box's width, 10.
#[test]
fn strokes_move_about_the_centre_of_their_box_whatever_their_units() {
    let rows = vec![0.0, 5.0, 1.0, 40.0, 15.0, 0.0, 30.0, 10.0, 0.0, 900.0, -900.0, -1.0];
    let strokes = Batch::new(Signal::Strokes { length: 4 }, rows).unwrap();
    let double = Map::Plane([2.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let want = [10.0, 5.0, 1.0, 30.0, 15.0, 0.0, 25.0, 10.0, 0.0, 900.0, -900.0, -1.0];
    assert_eq!(one(&strokes, double, &Resample::default()), want);
    let shift = Map::Plane([1.0, 0.0, 0.5, 0.0, 1.0, 0.0]);
    let want = [-10.0, 5.0, 1.0, 30.0, 15.0, 0.0, 20.0, 10.0, 0.0, 900.0, -900.0, -1.0];
    assert_eq!(one(&strokes, shift, &Resample::default()), want);
    let empty = Batch::new(Signal::Strokes { length: 1 }, vec![1.0, 2.0, -1.0]).unwrap();
    assert_eq!(one(&empty, double, &Resample::default()), [1.0, 2.0, -1.0]);
}

#[test]
fn strokes_pull_back_like_finite_differences() {
    let mut rows = noise(30, 10);
    rows[29] = -1.0;
    let batch = Batch::new(Signal::Strokes { length: 10 }, rows).unwrap();
    assert_slopes(&batch, Map::Plane(GENERIC), &Resample::default(), 1e-3, 1e-4);
    assert_slopes(&batch, Map::IDENTITY, &Resample::default(), 1e-3, 1e-4);
}

/// A quarter turn about z takes the view's (x, y, z) to the input's (-y, x, z), so the input's
/// (1, 2, 3) is seen at (2, -1, 3).
#[test]
fn a_point_of_a_cloud_is_seen_where_the_map_back_puts_it() {
    let batch =
        Batch::new(Signal::Cloud { points: 2 }, vec![1.0, 2.0, 3.0, 0.5, 0.0, -1.0]).unwrap();
    let turn = Map::Space([0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(one(&batch, turn, &Resample::default()), [2.0, -1.0, 3.0, 0.0, -0.5, -1.0]);
    assert_slopes(&batch, turn, &Resample::default(), 1e-2, 1e-4);
    let there = Batch::new(batch.signal(), one(&batch, turn, &Resample::default())).unwrap();
    assert_eq!(one(&there, turn.inverse().unwrap(), &Resample::default()), batch.data());
}

/// The same rotation about z moves a cloud in the plane z = 0 as it moves strokes.
#[test]
fn one_rotation_means_the_same_for_strokes_and_clouds() {
    let (sin, cos) = (0.6_f32, 0.8_f32);
    let plane = Map::Plane([cos, -sin, 0.0, sin, cos, 0.0]);
    let space = Map::Space([cos, -sin, 0.0, sin, cos, 0.0, 0.0, 0.0, 1.0]);
    let rows = vec![-1.0, -0.5, 0.0, 1.0, 0.5, 0.0, 0.3, -0.2, 0.0];
    let strokes = Batch::new(Signal::Strokes { length: 3 }, rows.clone()).unwrap();
    let cloud = Batch::new(Signal::Cloud { points: 3 }, rows).unwrap();
    let (a, b) =
        (one(&strokes, plane, &Resample::default()), one(&cloud, space, &Resample::default()));
    assert_close(&a, &b, 1e-6, "rotation");
}

#[test]
fn what_cannot_be_done_is_an_error() {
    let picture = image(3, 2, 2, vec![0.5; 12]);
    let strokes = Batch::new(Signal::Strokes { length: 1 }, vec![1.0, 2.0, 0.0]).unwrap();
    let cloud = Batch::new(Signal::Cloud { points: 1 }, vec![1.0, 2.0, 0.0]).unwrap();
    let fails = |batch: &Batch, item, map, padding| {
        let resample = with(Kernel::Bicubic, padding);
        let views = [View { item: 0, map: Map::IDENTITY }, View { item, map }];
        let views = if batch.signal() == cloud.signal() { &views[1..] } else { &views[..] };
        warp(batch, views, &resample).map_err(|e| e.to_string()).unwrap_err()
    };
    let flat = Map::Plane([1.0, 2.0, 0.0, 2.0, 4.0, 0.0]);
    let nan = Map::Plane([f32::NAN, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let zeros = || Padding::Zeros;
    assert_eq!(
        fails(&picture, 0, Map::IDENTITY_3, zeros()),
        "map of view 1: expected a plane map, got a space map"
    );
    assert_eq!(
        fails(&cloud, 0, Map::IDENTITY, zeros()),
        "map of view 0: expected a space map, got a plane map"
    );
    assert!(fails(&strokes, 0, flat, zeros()).contains("a map with an inverse"));
    assert!(fails(&picture, 0, nan, zeros()).contains("finite"));
    assert_eq!(fails(&picture, 1, flat, zeros()), "item of view 1: expected below 1, got 1");
    let two = Padding::Fill(vec![0.1, 0.2]);
    assert!(fails(&picture, 0, flat, two).contains("one number or 3, one per channel"));
    assert!(fails(&picture, 0, flat, Padding::Fill(vec![])).contains("one number or 3"));
    assert!(fails(&picture, 0, flat, Padding::Fill(vec![f32::NAN])).contains("finite numbers"));
    let views = [View { item: 0, map: flat }; 2];
    assert!(pullback(&picture, &views, &Resample::default(), &picture).is_err());
}

#[test]
fn nothing_asked_gives_nothing() {
    let picture = image(1, 2, 2, vec![0.5; 4]);
    assert!(warp(&picture, &[], &Resample::default()).unwrap().is_empty());
    assert_eq!(
        pullback(&picture, &[], &Resample::default(), &image(1, 2, 2, vec![])).unwrap().rows(),
        0
    );
}

/// The border of the first plane is 1, 2, 3, 4, 6, 7, 8, 9 (the 5 inside does
/// not count): the middle is (4 + 6) / 2.
#[test]
fn the_border_colour_is_the_median_of_the_outermost_pixels() {
    let mut data: Vec<f32> = (1..=9).map(|v| v as f32).collect();
    data.extend([0.25, 0.25, 9.0, 0.25, 7.0, 0.25, 0.25, 0.25, -8.0]);
    assert_eq!(border_colour(&image(2, 3, 3, data), 0).unwrap(), [5.0, 0.25]);
    assert_eq!(border_colour(&image(1, 1, 3, vec![3.0, 1.0, 2.0]), 0).unwrap(), [2.0]);
    assert!(border_colour(&image(1, 1, 1, vec![3.0]), 1).is_err());
    let cloud = Batch::new(Signal::Cloud { points: 1 }, vec![0.0; 3]).unwrap();
    assert!(border_colour(&cloud, 0).is_err());
}

#[test]
fn resampling_is_written_in_plain_words() {
    let text = r#"{"kernel":"bicubic","padding":{"fill":[0.5]},"clamp":true}"#;
    let resample: Resample = serde_json::from_str(text).unwrap();
    assert_eq!(resample.padding, Padding::Fill(vec![0.5]));
    assert_eq!(serde_json::to_string(&resample).unwrap(), text);
    assert_eq!(serde_json::from_str::<Resample>("{}").unwrap(), Resample::default());
    let default = Resample { kernel: Kernel::Bicubic, padding: Padding::Zeros, clamp: false };
    assert_eq!(Resample::default(), default);
}

proptest! {
    #[test]
    fn the_identity_copies_bit_for_bit(bits in prop::collection::vec(any::<u32>(), 24)) {
        let data: Vec<f32> = bits.iter().map(|b| f32::from_bits(*b)).collect();
        let resample = Resample { clamp: true, ..Resample::default() };
        for (signal, map) in [
            (Signal::image(2, 3, 4), Map::IDENTITY),
            (Signal::Strokes { length: 8 }, Map::IDENTITY),
            (Signal::Cloud { points: 8 }, Map::IDENTITY_3),
        ] {
            let batch = Batch::new(signal, data.clone()).unwrap();
            let copy: Vec<u32> = one(&batch, map, &resample).iter().map(|v| v.to_bits()).collect();
            prop_assert_eq!(&copy, &bits);
        }
    }

    #[test]
    fn a_constant_image_stays_constant_under_border_padding(
        map in prop::array::uniform6(-3.0_f32..3.0),
        (height, width) in (1_usize..9, 1_usize..9),
        value in 0.0_f32..1.0,
    ) {
        let batch = image(1, height, width, vec![value; height * width]);
        for kernel in [Kernel::Bicubic, Kernel::Bilinear, Kernel::Nearest] {
            for v in one(&batch, Map::Plane(map), &with(kernel, Padding::Border)) {
                prop_assert!((v - value).abs() < 1e-6, "{} became {}", value, v);
            }
        }
    }

    #[test]
    fn any_finite_map_stays_inside_the_image(
        exponents in prop::array::uniform6(-38_i32..38),
        (height, width) in (1_usize..6, 1_usize..6),
    ) {
        let map = exponents.map(|e| 10.0_f32.powi(e) * if e % 2 == 0 { 1.0 } else { -1.0 });
        let batch = image(1, height, width, noise(height * width, 11));
        for kernel in [Kernel::Bicubic, Kernel::Bilinear, Kernel::Nearest] {
            let view = one(&batch, Map::Plane(map), &with(kernel, Padding::Border));
            prop_assert!(view.iter().all(|v| v.abs() < 2.0));
        }
    }
}

/// Prints microseconds per view on one thread; run in release with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn time_per_view() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for (channels, side, count) in [(1, 40, 20), (3, 224, 1)] {
        let batch = image(channels, side, side, noise(channels * side * side * 4, 12));
        let views: Vec<View> =
            (0..count).map(|k| View { item: k % 4, map: Map::Plane(GENERIC) }).collect();
        let cotangent = warp(&batch, &views, &Resample::default()).unwrap();
        for kernel in [Kernel::Bicubic, Kernel::Bilinear, Kernel::Nearest] {
            let resample = with(kernel, Padding::Zeros);
            let time = |run: &(dyn Fn() + Sync)| {
                let once = || {
                    let start = Instant::now();
                    pool.install(run);
                    start.elapsed().as_secs_f64() * 1e6 / count as f64
                };
                (0..300).map(|_| once()).fold(f64::INFINITY, f64::min)
            };
            let forward = time(&|| drop(warp(&batch, &views, &resample).unwrap()));
            let back = time(&|| drop(pullback(&batch, &views, &resample, &cotangent).unwrap()));
            eprintln!(
                "{side}x{side}x{channels} {kernel:?}: {forward:.1} us, pullback {back:.1} us"
            );
        }
    }
}
