use super::{check, ints, numbers, text, with};
use crate::onnx::build::{node, weight};
use crate::onnx::proto::AttributeProto;

fn conv(what: &str, op: &str, x: &[usize], w: &[i64], attributes: Vec<AttributeProto>) {
    let size = w.iter().product::<i64>() as usize;
    let weights = vec![weight("w", w, &numbers(size, 7))];
    let kernel = ints("kernel_shape", &w[2..]);
    let node = with(node(op, &["x", "w"], "y"), [vec![kernel], attributes].concat());
    check(what, x, vec![node], weights);
}

fn group(n: i64) -> AttributeProto {
    crate::onnx::write::int("group", n)
}

#[test]
fn convolutions_are_differentiated_for_every_stride_and_padding() {
    let x = &[2, 2, 6, 5];
    let w = &[3, 2, 3, 2];
    conv("Conv", "Conv", x, w, vec![]);
    conv("Conv padded", "Conv", x, w, vec![ints("pads", &[1, 0, 2, 1])]);
    conv("Conv overpadded", "Conv", x, w, vec![ints("pads", &[3, 2, 3, 2])]);
    conv(
        "Conv dilated",
        "Conv",
        x,
        w,
        vec![ints("dilations", &[2, 3]), ints("pads", &[1, 1, 2, 2])],
    );
    conv("Conv groups", "Conv", &[2, 4, 4, 3], &[6, 2, 3, 1], vec![group(2)]);
    conv(
        "Conv depthwise",
        "Conv",
        &[2, 3, 4, 4],
        &[3, 1, 3, 3],
        vec![group(3), ints("pads", &[1, 1, 1, 1])],
    );
    for size in 5..9 {
        for (k, s, p, d) in [
            (1, 2, 0, 1),
            (3, 2, 1, 1),
            (3, 2, 0, 1),
            (2, 2, 0, 1),
            (4, 3, 2, 1),
            (3, 3, 1, 2),
            (2, 3, 0, 1),
        ] {
            let what = format!("Conv {size} {k} {s} {p} {d}");
            conv(
                &what,
                "Conv",
                &[1, 2, size, 7],
                &[2, 2, k, k],
                vec![
                    ints("strides", &[s, s]),
                    ints("pads", &[p, p, p, p]),
                    ints("dilations", &[d, 1]),
                ],
            );
        }
        conv(
            &format!("Conv same {size}"),
            "Conv",
            &[1, 1, size, 6],
            &[2, 1, 3, 3],
            vec![text("auto_pad", "SAME_UPPER"), ints("strides", &[2, 2])],
        );
    }
    conv(
        "Conv groups strided",
        "Conv",
        &[2, 4, 6, 5],
        &[6, 2, 3, 2],
        vec![group(2), ints("strides", &[2, 2])],
    );
    conv(
        "Conv depthwise strided",
        "Conv",
        &[2, 3, 6, 5],
        &[3, 1, 3, 3],
        vec![group(3), ints("strides", &[2, 2]), ints("pads", &[1, 1, 1, 1])],
    );
    conv("Conv line", "Conv", &[2, 3, 7], &[4, 3, 3], vec![ints("pads", &[1, 1])]);
    conv("Conv line strided", "Conv", &[2, 3, 7], &[4, 3, 3], vec![ints("strides", &[2])]);
}

#[test]
fn transposed_convolutions_are_differentiated() {
    let x = &[2, 2, 3, 4];
    conv("ConvTranspose", "ConvTranspose", x, &[2, 3, 3, 2], vec![]);
    conv(
        "ConvTranspose strided",
        "ConvTranspose",
        x,
        &[2, 3, 3, 2],
        vec![
            ints("strides", &[2, 3]),
            ints("pads", &[1, 0, 1, 1]),
            ints("output_padding", &[1, 2]),
        ],
    );
    conv("ConvTranspose groups", "ConvTranspose", &[2, 4, 3, 3], &[4, 1, 2, 2], vec![group(2)]);
}

#[test]
fn windows_of_pools_hand_back_their_shares() {
    for op in ["MaxPool", "AveragePool"] {
        for (size, k, s, p) in
            [(6, 2, 2, 0), (7, 3, 2, 1), (8, 3, 2, 1), (5, 3, 1, 1), (7, 2, 2, 0), (7, 2, 3, 0)]
        {
            for (flag, value) in [("", 0), ("ceil_mode", 1), ("count_include_pad", 1)] {
                if op == "MaxPool" && flag == "count_include_pad" {
                    continue;
                }
                let mut pool = with(
                    node(op, &["x"], "y"),
                    vec![
                        ints("kernel_shape", &[k, k]),
                        ints("strides", &[s, s]),
                        ints("pads", &[p, p, p, p]),
                    ],
                );
                if !flag.is_empty() {
                    pool = pool.with_int(flag, value);
                }
                let what = format!("{op} {size} {k} {s} {p} {flag}");
                check(&what, &[1, 1, size, size], vec![pool], vec![]);
            }
        }
    }
    let line = with(node("MaxPool", &["x"], "y"), vec![ints("kernel_shape", &[3])]);
    check("MaxPool line", &[2, 3, 7], vec![line], vec![]);
}

/// Kernels so large, over so few positions, that engines get them as products.
#[test]
fn convolutions_as_products_are_differentiated() {
    let pads = || ints("pads", &[1, 1, 1, 1]);
    let strides = || ints("strides", &[2, 2]);
    conv("product", "Conv", &[1, 2, 3, 3], &[14_600, 2, 3, 3], vec![pads()]);
    conv("product strided", "Conv", &[1, 1, 5, 4], &[66_000, 1, 3, 3], vec![pads(), strides()]);
    conv(
        "product dilated",
        "Conv",
        &[1, 1, 4, 3],
        &[44_000, 1, 3, 2],
        vec![ints("dilations", &[2, 1]), ints("pads", &[2, 0, 1, 1])],
    );
    conv("product in line", "Conv", &[1, 2, 6], &[44_000, 2, 3], vec![ints("pads", &[2, 1])]);
}
