//! Weights as numbers: a stored tensor, or one that constants lead to through
//! nodes that only rename, recast or rearrange it.

use half::{bf16, f16};

use crate::onnx::graph::Graph;
use crate::onnx::proto::{NodeProto, TensorProto, data_type};

/// Longest chain of nodes between a weight and its use.
const DEPTH: usize = 16;

/// A constant tensor of real numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its dimensions, outermost first; empty for a single number.
    pub shape: Vec<usize>,
    /// Its numbers, row-major.
    pub data: Vec<f32>,
}

impl Constant {
    /// Reads a stored tensor; `None` if its numbers are not real or their count is wrong.
    pub(crate) fn read(t: &TensorProto) -> Option<Self> {
        let (shape, size) = dims(t)?;
        let raw = t.raw_data.as_deref();
        let data: Vec<f32> = match t.data_type? {
            data_type::FLOAT => match raw {
                Some(raw) => chunks(raw, f32::from_le_bytes),
                None => t.float_data.clone(),
            },
            data_type::DOUBLE => match raw {
                Some(raw) => chunks(raw, |b| f64::from_le_bytes(b) as f32),
                None => t.double_data.iter().map(|v| *v as f32).collect(),
            },
            data_type::FLOAT16 => match raw {
                Some(raw) => chunks(raw, |b| f16::from_le_bytes(b).to_f32()),
                None => t.int32_data.iter().map(|v| f16::from_bits(*v as u16).to_f32()).collect(),
            },
            data_type::BFLOAT16 => match raw {
                Some(raw) => chunks(raw, |b| bf16::from_le_bytes(b).to_f32()),
                None => t.int32_data.iter().map(|v| bf16::from_bits(*v as u16).to_f32()).collect(),
            },
            _ => return None,
        };
        (data.len() == size).then_some(Constant { shape, data })
    }

    pub(crate) fn transposed(&self, perm: &[usize]) -> Option<Self> {
        let rank = self.shape.len();
        let mut seen = vec![false; rank];
        for &p in perm {
            *seen.get_mut(p)? = true;
        }
        if perm.len() != rank || seen.contains(&false) {
            return None;
        }
        let mut strides = vec![1; rank];
        for i in (1..rank).rev() {
            strides[i - 1] = strides[i] * self.shape[i];
        }
        let shape: Vec<usize> = perm.iter().map(|&p| self.shape[p]).collect();
        let mut data = Vec::with_capacity(self.data.len());
        let mut at = vec![0; rank];
        for _ in 0..self.data.len() {
            data.push(self.data[at.iter().zip(perm).map(|(i, &p)| i * strides[p]).sum::<usize>()]);
            for axis in (0..rank).rev() {
                at[axis] += 1;
                if at[axis] < shape[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
        Some(Constant { shape, data })
    }

    fn reshaped(self, to: &[i64], zero_copies: bool) -> Option<Self> {
        let mut shape = Vec::new();
        for (i, &d) in to.iter().enumerate() {
            shape.push(match d {
                0 if zero_copies => *self.shape.get(i)?,
                -1 => {
                    let known = to.iter().filter(|d| **d != -1);
                    let rest = known.copied().try_fold(1i64, i64::checked_mul)?;
                    self.data.len().checked_div(usize::try_from(rest).ok()?)?
                }
                d => usize::try_from(d).ok()?,
            });
        }
        let size = shape.iter().try_fold(1usize, |a, d| a.checked_mul(*d))?;
        (size == self.data.len()).then_some(Constant { shape, data: self.data })
    }
}

impl Graph {
    /// The value of a tensor that does not depend on the input: a weight, a `Constant` node,
    /// or either behind Identity, Cast, Transpose, Reshape, Squeeze, Unsqueeze or Flatten, of
    /// which the last three are read as dropping every dimension of size 1.
    pub fn constant(&self, tensor: &str) -> Option<Constant> {
        self.constant_behind(tensor, DEPTH)
    }

    fn constant_behind(&self, tensor: &str, depth: usize) -> Option<Constant> {
        if let Some(t) = self.raw_initializer(tensor) {
            return Constant::read(t);
        }
        let node = self.node(tensor)?;
        if node.op() == "Constant" {
            return literal(node);
        }
        let value = || self.constant_behind(node.arg(0)?, depth.checked_sub(1)?);
        match node.op() {
            "Identity" | "Cast" | "CastLike" | "Dropout" => value(),
            "Transpose" => {
                let value = value()?;
                let perm: Vec<usize> = match node.attr("perm") {
                    Some(a) => {
                        a.ints.iter().map(|p| usize::try_from(*p).ok()).collect::<Option<_>>()?
                    }
                    None => (0..value.shape.len()).rev().collect(),
                };
                value.transposed(&perm)
            }
            "Reshape" => {
                let to = self.integers(node.arg(1)?)?;
                value()?.reshaped(&to, node.int("allowzero", 0) == 0)
            }
            "Squeeze" | "Unsqueeze" | "Flatten" => {
                let value = value()?;
                let kept: Vec<i64> =
                    value.shape.iter().filter(|d| **d != 1).map(|d| *d as i64).collect();
                value.reshaped(&kept, false)
            }
            _ => None,
        }
    }

    /// A constant of whole numbers: a shape, or axes.
    pub(crate) fn integers(&self, tensor: &str) -> Option<Vec<i64>> {
        self.integers_behind(tensor, DEPTH)
    }

    fn integers_behind(&self, tensor: &str, depth: usize) -> Option<Vec<i64>> {
        let stored = if let Some(t) = self.raw_initializer(tensor) {
            t
        } else {
            let node = self.node(tensor)?;
            match node.op() {
                "Constant" => match node.attr("value").and_then(|a| a.t.as_ref()) {
                    Some(t) => t,
                    None => return node.attr("value_ints").map(|a| a.ints.clone()),
                },
                "Identity" => return self.integers_behind(node.arg(0)?, depth.checked_sub(1)?),
                _ => return None,
            }
        };
        whole(stored)
    }
}

/// The numbers of a stored tensor of whole ones.
pub(super) fn whole(t: &TensorProto) -> Option<Vec<i64>> {
    Some(match (t.data_type?, t.raw_data.as_deref()) {
        (data_type::INT64, Some(raw)) => chunks(raw, i64::from_le_bytes),
        (data_type::INT64, None) => t.int64_data.clone(),
        (data_type::INT32, Some(raw)) => chunks(raw, |b| i64::from(i32::from_le_bytes(b))),
        (data_type::INT32, None) => t.int32_data.iter().map(|v| i64::from(*v)).collect(),
        _ => return None,
    })
}

fn literal(node: &NodeProto) -> Option<Constant> {
    if let Some(t) = node.attr("value").and_then(|a| a.t.as_ref()) {
        return Constant::read(t);
    }
    if let Some(v) = node.attr("value_float").and_then(|a| a.f) {
        return Some(Constant { shape: vec![], data: vec![v] });
    }
    let data = node.attr("value_floats")?.floats.clone();
    Some(Constant { shape: vec![data.len()], data })
}

fn chunks<const N: usize, T>(raw: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    raw.as_chunks::<N>().0.iter().map(|b| read(*b)).collect()
}

/// `(x - zero) scale` of a stored tensor of whole numbers, with one scale and zero point or one
/// per entry of an axis.
pub(super) fn dequantised(
    stored: &TensorProto,
    scale: &[f32],
    zero: Option<&TensorProto>,
    axis: i64,
) -> Option<Constant> {
    let (shape, size) = dims(stored)?;
    let stored = bytes(stored)?;
    let zero = match zero {
        Some(zero) => bytes(zero)?,
        None => vec![0],
    };
    let axis = usize::try_from(axis.rem_euclid((shape.len() as i64).max(1))).ok()?;
    let inner: usize = shape.iter().skip(axis + 1).product();
    let entries = shape.get(axis).copied().unwrap_or(1);
    let of = |i: usize, count: usize| if count == 1 { 0 } else { i / inner.max(1) % entries };
    let fits = |count: usize| count == 1 || count == entries;
    if stored.len() != size || !fits(scale.len()) || !fits(zero.len()) {
        return None;
    }
    let value = |(i, b): (usize, &i32)| {
        (i64::from(*b) - i64::from(zero[of(i, zero.len())])) as f32 * scale[of(i, scale.len())]
    };
    Some(Constant { shape, data: stored.iter().enumerate().map(value).collect() })
}

/// Whether a zero point is the lowest number of its type, so that nothing below zero is stored.
pub(super) fn lowest(zero: &TensorProto) -> bool {
    let least = match zero.data_type {
        Some(data_type::UINT8 | data_type::UINT16) => 0,
        Some(data_type::INT8) => i32::from(i8::MIN),
        Some(data_type::INT16) => i32::from(i16::MIN),
        _ => return false,
    };
    bytes(zero).is_some_and(|all| all == [least])
}

/// The tensor that a `Constant` node stores.
pub(super) fn stored_value(node: &NodeProto) -> Option<&TensorProto> {
    let value = node.attr("value").filter(|_| node.op() == "Constant")?;
    value.t.as_ref()
}

/// The whole numbers of a quantised tensor.
fn bytes(t: &TensorProto) -> Option<Vec<i32>> {
    Some(match (t.data_type?, t.raw_data.as_deref()) {
        (data_type::INT8, Some(raw)) => raw.iter().map(|b| i32::from(b.cast_signed())).collect(),
        (data_type::UINT8, Some(raw)) => raw.iter().map(|b| i32::from(*b)).collect(),
        (data_type::INT16, Some(raw)) => chunks(raw, |b| i32::from(i16::from_le_bytes(b))),
        (data_type::UINT16, Some(raw)) => chunks(raw, |b| i32::from(u16::from_le_bytes(b))),
        (data_type::INT32, Some(raw)) => chunks(raw, i32::from_le_bytes),
        (
            data_type::INT8
            | data_type::UINT8
            | data_type::INT16
            | data_type::UINT16
            | data_type::INT32,
            None,
        ) => t.int32_data.clone(),
        _ => return None,
    })
}

/// A stored tensor's dimensions and their product; `None` if one is negative, or if the product
/// of any of them cannot be counted.
fn dims(t: &TensorProto) -> Option<(Vec<usize>, usize)> {
    let shape: Vec<usize> =
        t.dims.iter().map(|d| usize::try_from(*d).ok()).collect::<Option<_>>()?;
    let most = shape.iter().try_fold(1usize, |a, d| a.checked_mul((*d).max(1)))?;
    let size = if shape.contains(&0) { 0 } else { most };
    Some((shape, size))
}

/// Checks that a stored tensor holds as many bytes or numbers as its dimensions say.
pub(crate) fn check_length(t: &TensorProto) -> Result<(), String> {
    let Some((shape, size)) = dims(t) else {
        return Err(format!("impossible dimensions {:?}", t.dims));
    };
    let code = t.data_type.unwrap_or(0);
    let bytes = match code {
        data_type::UINT8 | data_type::INT8 | data_type::BOOL => 1,
        data_type::UINT16 | data_type::INT16 | data_type::FLOAT16 | data_type::BFLOAT16 => 2,
        data_type::FLOAT | data_type::INT32 | data_type::UINT32 => 4,
        data_type::DOUBLE | data_type::INT64 | data_type::UINT64 => 8,
        _ => return Ok(()),
    };
    let (unit, want, got) = match &t.raw_data {
        Some(raw) => ("bytes", size.saturating_mul(bytes), raw.len()),
        None => (
            "numbers",
            size,
            match code {
                data_type::FLOAT => t.float_data.len(),
                data_type::DOUBLE => t.double_data.len(),
                data_type::INT64 => t.int64_data.len(),
                data_type::UINT32 | data_type::UINT64 => t.uint64_data.len(),
                _ => t.int32_data.len(),
            },
        ),
    };
    if want == got {
        return Ok(());
    }
    Err(format!("dimensions {shape:?} need {want} {unit}, there are {got}"))
}
