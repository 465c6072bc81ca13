//! The LZF packing of PCD files: runs of literal bytes, and copies of what
//! came at most 8192 bytes before.

/// Unpacks exactly `size` bytes.
pub(super) fn unpack(packed: &[u8], size: usize) -> Result<Vec<u8>, String> {
    // A copy of 264 bytes takes three.
    if size > packed.len().saturating_mul(88).saturating_add(88) {
        return Err(format!("{size} bytes cannot come from {} packed ones", packed.len()));
    }
    let cut = || "its packed data are cut off".to_owned();
    let mut out: Vec<u8> = Vec::new();
    let mut at = 0;
    while at < packed.len() {
        let control = usize::from(packed[at]);
        at += 1;
        if control < 32 {
            out.extend(packed.get(at..=at + control).ok_or_else(cut)?);
            at += control + 1;
        } else {
            let mut length = control >> 5;
            if length == 7 {
                length += usize::from(*packed.get(at).ok_or_else(cut)?);
                at += 1;
            }
            let low = usize::from(*packed.get(at).ok_or_else(cut)?);
            at += 1;
            let back = (control & 31) << 8 | low;
            let from = out
                .len()
                .checked_sub(back + 1)
                .ok_or("its packed data point before their start")?;
            for i in from..from + length + 2 {
                out.push(out[i]);
            }
        }
        if out.len() > size {
            return Err(format!("its packed data hold more than {size} bytes"));
        }
    }
    if out.len() != size {
        return Err(format!("its packed data hold {} bytes, not {size}", out.len()));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies_worked_by_hand() {
        // "abc" literally; then 3 from 3 back; then 10 from 1 back, its length in a byte of its own.
        let packed = [2, b'a', b'b', b'c', 1 << 5, 2, 7 << 5, 1, 0];
        assert_eq!(unpack(&packed, 16).unwrap(), b"abcabccccccccccc"[..16].to_vec());
    }

    #[test]
    fn damaged_packing_is_refused() {
        assert!(unpack(&[5, b'a'], 6).unwrap_err().contains("cut off"));
        assert!(unpack(&[1 << 5, 0], 3).unwrap_err().contains("before their start"));
        assert!(unpack(&[0, b'a'], 2).unwrap_err().contains("hold 1 bytes, not 2"));
        assert!(unpack(&[1, b'a', b'a'], 1).unwrap_err().contains("more than 1"));
        assert!(unpack(&[0, b'a'], 1 << 40).unwrap_err().contains("cannot come from"));
        assert!(unpack(&[7 << 5], 9).unwrap_err().contains("cut off"));
    }
}
