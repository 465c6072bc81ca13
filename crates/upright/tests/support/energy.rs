//! A tiny energy network, written field by field: `x w` of flattened images.

/// A field of bytes.
fn bytes(tag: u8, data: &[u8]) -> Vec<u8> {
    let mut out = vec![tag << 3 | 2];
    let mut length = data.len();
    while length >= 128 {
        out.push((length % 128) as u8 | 128);
        length /= 128;
    }
    out.push(length as u8);
    out.extend(data);
    out
}

/// A field of a number below 128, or of two bytes.
fn int(tag: u8, value: u16) -> Vec<u8> {
    if value < 128 {
        vec![tag << 3, value as u8]
    } else {
        vec![tag << 3, (value % 128) as u8 | 128, (value / 128) as u8]
    }
}

fn node(op: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let mut all: Vec<u8> = inputs.iter().flat_map(|name| bytes(1, name.as_bytes())).collect();
    all.extend(bytes(2, output.as_bytes()));
    all.extend(bytes(4, op.as_bytes()));
    bytes(1, &all)
}

/// An input or output of floats whose first dimension is open.
fn port(tag: u8, name: &str, shape: &[u16]) -> Vec<u8> {
    let mut dims = bytes(1, &bytes(2, b"n"));
    dims.extend(shape.iter().flat_map(|d| bytes(1, &int(1, *d))));
    let tensor = [int(1, 1), bytes(2, &dims)].concat();
    bytes(tag, &[bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat())
}

/// An ONNX file that takes images `[N,1,side,side]` and gives `outputs` weighted sums of their
/// pixels; weight `i` is `weight(i)`, row by row.
pub(crate) fn energy(side: u16, outputs: u16, weight: impl Fn(usize) -> f32) -> Vec<u8> {
    let pixels = side * side;
    let count = usize::from(pixels) * usize::from(outputs);
    let data: Vec<u8> = (0..count).flat_map(|i| weight(i).to_le_bytes()).collect();
    let weights = [int(1, pixels), int(1, outputs), int(2, 1), bytes(8, b"w"), bytes(9, &data)];
    let graph = [
        node("Flatten", &["image"], "flat"),
        node("Gemm", &["flat", "w"], "energy"),
        bytes(2, b"energy"),
        bytes(5, &weights.concat()),
        port(11, "image", &[1, side, side]),
        port(12, "energy", &[outputs]),
    ];
    [int(1, 8), bytes(7, &graph.concat()), bytes(8, &int(2, 17))].concat()
}
