//! States as bytes: safetensors with words beside them.

use std::collections::{BTreeMap, HashMap};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::state::{Data, State, Stored};

/// Tensors as they lie in a file, by name: type, shape and bytes.
pub(crate) type Packed = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

/// Adds the tensors of a state under a prefix.
pub(crate) fn add(packed: &mut Packed, prefix: &str, state: &State) {
    for (name, stored) in state.tensors() {
        let (dtype, bytes) = bytes_of(&stored.data);
        packed.insert(format!("{prefix}{name}"), (dtype, stored.shape.clone(), bytes));
    }
}

/// A file of tensors and words.
pub(crate) fn file(packed: &Packed, words: HashMap<String, String>) -> Result<Vec<u8>, String> {
    let views: Vec<(&String, TensorView)> = packed
        .iter()
        .map(|(name, (dtype, shape, bytes))| {
            TensorView::new(*dtype, shape.clone(), bytes).map(|view| (name, view))
        })
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    safetensors::serialize(views, Some(words)).map_err(|e| e.to_string())
}

/// The state and the words of a file that holds one state.
pub(crate) fn read(bytes: &[u8]) -> Option<(State, HashMap<String, String>)> {
    let (_, header) = SafeTensors::read_metadata(bytes).ok()?;
    let words = header.metadata().clone().unwrap_or_default();
    let mut state = State::new();
    for (name, view) in SafeTensors::deserialize(bytes).ok()?.iter() {
        state.put(name, stored(&view).ok()?);
    }
    Some((state, words))
}

fn bytes_of(data: &Data) -> (Dtype, Vec<u8>) {
    match data {
        Data::F32(v) => (Dtype::F32, v.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Data::F64(v) => (Dtype::F64, v.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Data::F16(v) => (Dtype::F16, v.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Data::U32(v) => (Dtype::U32, v.iter().flat_map(|x| x.to_le_bytes()).collect()),
    }
}

/// A tensor of a file, or why it is none of ours.
pub(crate) fn stored(view: &TensorView) -> Result<Stored, String> {
    fn each<T, const N: usize>(bytes: &[u8], read: fn([u8; N]) -> T) -> Vec<T> {
        bytes.as_chunks::<N>().0.iter().map(|b| read(*b)).collect()
    }
    let bytes = view.data();
    let data = match view.dtype() {
        Dtype::F32 => Data::F32(each(bytes, f32::from_le_bytes)),
        Dtype::F64 => Data::F64(each(bytes, f64::from_le_bytes)),
        Dtype::F16 => Data::F16(each(bytes, u16::from_le_bytes)),
        Dtype::U32 => Data::U32(each(bytes, u32::from_le_bytes)),
        other => return Err(format!("unexpected type {other:?}")),
    };
    Ok(Stored { shape: view.shape().to_vec(), data })
}
