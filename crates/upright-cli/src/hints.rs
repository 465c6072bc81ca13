//! What would help, in the words of the command line.

use upright_data::{Hint, Note, supported};

use crate::report;

/// How to fix it.
pub fn words(hint: &Hint) -> String {
    match hint {
        Hint::GiveData => "give a folder or a file".into(),
        Hint::GiveOneSet => {
            "give one folder of class folders, or one list with the columns path,label".into()
        }
        Hint::GiveKnown { kind } => {
            format!("give a folder, a .csv or .jsonl list, or {}", supported(*kind))
        }
        Hint::GiveLabels => "give class folders, a list with the columns path,label, idx images \
                             with their labels file beside them, an npz archive with `y`, or \
                             `--labels FILE`"
            .into(),
        Hint::ClassFolders { folder, ending } => format!(
            "expected `{}/<class>/*.{ending}`; for unlabelled data use `predict`; for a list give \
             a CSV file with the columns path,label",
            folder.display()
        ),
        Hint::NameClasses => "give `--classes classes.txt` (order of model outputs) or \
                              `--allow-missing-classes`"
            .into(),
        Hint::ListClasses => {
            "write the names of all classes into a file, one per line in the order \
                              of the model's outputs, and give `--classes FILE`; with \
                              `--allow-missing-classes` where there are no data of some"
                .into()
        }
        Hint::GiveSupported { kind, heic } => {
            let heic = if *heic { "; convert HEIC first" } else { "" };
            format!("supported: {}{heic}", supported(*kind))
        }
        Hint::MatchModel { kind } => {
            format!("give {}, or pass a model of another kind", supported(*kind))
        }
        Hint::ChooseSplit => "choose one with `--split train|val|test`".into(),
        Hint::OtherSplit { files } => {
            let what = if *files { "file" } else { "folder" };
            format!("choose another `--split`, or give the {what} itself")
        }
        Hint::WholeNames { example } => {
            format!("names look like `{example}`; a pattern must fit a whole name")
        }
        Hint::Tolerate => {
            "repair or remove the files, or tolerate more with `--max-errors 5%`".into()
        }
        Hint::Fix(text) => text.clone().into_owned(),
        Hint::Model(hint) => library(hint),
        _ => String::new(),
    }
}

/// How to fix what the library found.
pub fn library(hint: &upright::Hint) -> String {
    use upright::Hint as H;
    match hint {
        H::ListParts { kind } => format!("`upright list` describes every {kind} in one sentence"),
        H::SimplerExport => "`--engine ort` runs it on ONNX Runtime, which knows most operators (a \
                             build with `--features ort`, and ORT_DYLIB_PATH naming the library); \
                             or export with opset 17 and without these operators"
            .into(),
        H::SearchWithoutGradient => {
            "choose a search that needs no gradient; `upright list` shows them".into()
        }
        H::ChooseTap => "`upright inspect MODEL` lists every tensor that can be tapped; choose \
                         one with `--tap NAME`, or a score that needs only logits (`--score energy`)"
            .into(),
        H::OtherTap => {
            "choose another tap or score (`--score energy` needs no features)".into()
        }
        H::NeedsProposer => {
            "use `--proposer learned` and a larger bank, or another score such as `--score knn`".into()
        }
        H::TapModel => "tap the model with `--tap auto`, or use `--score energy`".into(),
        H::MatchArtifact => "run `upright fit` again with this model, or give the model the \
                             artifact was fitted on"
            .into(),
        H::GiveSecond => "name it with `--switch MODEL.onnx`".into(),
        H::LeaveOutSecond => "leave out `--switch`, or fit with it".into(),
        H::GiveExternal => "name it with `--external ENERGY.onnx`".into(),
        H::LeaveOutExternal => "leave out `--external`, or use `--score external`".into(),
        H::Tolerate => {
            "repair or remove the files, or tolerate more with `--max-errors 5%`".into()
        }
        H::MoreHeldOut => "give more data, or `--held-out`".into(),
        H::ChooseSpace { signals, fits: [a, b] } => format!(
            "choose a space for {signals}, such as `-t {a}` or `-t {b}`, or say what the model \
             takes with `--signal`"
        ),
        H::BuildEngine { engine, other } => {
            format!("build with `--features {engine}`, or choose `--engine {other}`")
        }
        H::FindEngine { variable, library: (name, version), other } => format!(
            "set {variable} to the shared library of {name} {version} or later (the Python package \
             `onnxruntime` has one in its folder `capi`), or choose `--engine {other}`"
        ),
        H::SayPoints => "say how many with `--points N`".into(),
        H::SaySignal => "say which with `--signal strokes` or `--signal cloud`".into(),
        H::SaySize => "say the size it was trained with, such as `--resize 224`".into(),
        H::SayGray => "use `--channels gray`".into(),
        H::Resize { height, width, rgb } => {
            let size =
                if height == width { height.to_string() } else { format!("{height}x{width}") };
            let rgb = if *rgb { " --channels rgb" } else { "" };
            format!("add `--resize {size}{rgb}`")
        }
        H::ResizeForPad => "resize to what the padding expects with `--resize`".into(),
        H::ChangeSteps { gives: (height, width), steps } => format!(
            "these steps give {height}x{width}: {steps}; change `--resize`, `--crop` or `--pad`"
        ),
        other => other.to_string(),
    }
}

/// How to fix what stands in the way of a job.
pub fn job(hint: upright_job::Hint) -> String {
    use upright_job::Hint as H;
    match hint {
        H::OtherFolder => "name a new or empty folder with `--out`".into(),
        H::AsBefore => "run the command that it was begun with, or name another `--out`".into(),
        H::Wait => "wait until it ends, or name another `--out`".into(),
        H::Tolerate => "repair or remove them, or tolerate more with `--max-errors`; finished \
                        parts are kept"
            .into(),
        H::MakeRoom => "make room, then run the same command again: finished parts are kept".into(),
        H::MakeWritable => {
            "make it writable, then run the same command again: finished parts are kept".into()
        }
        H::Again => "run the same command again: finished parts are kept".into(),
        other => other.to_string(),
    }
}

/// A note with what can be done about it.
pub fn note(note: &Note) -> report::Note {
    let help = match note {
        Note::Transposed { .. } => {
            "`--transpose` exchanges rows and columns; leave it out if the model was trained on \
             the images as stored"
        }
        Note::Range { .. } => {
            "save images as uint8, or scale them to 0..1; normalisation comes later"
        }
        Note::Exif { applied: true, .. } => "`--ignore-exif` to see raw pixels",
        Note::Exif { .. } => "leave out `--ignore-exif` to turn them upright",
        Note::FewPoints { .. } => "scan more densely, or give meshes",
        Note::ManyStrokes { .. } => "simplify them, or use a model of longer sequences",
        Note::Unknown { .. } => "convert pictures among them to PNG or JPEG",
        Note::Skipped { .. } => {
            "skipped and listed in `errors.jsonl`; `--strict` to stop, `--max-errors` to allow \
             more or fewer"
        }
        _ => "",
    };
    report::Note {
        code: note.code(),
        warning: note.is_warning(),
        message: note.to_string(),
        help: help.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use upright::SignalKind;

    #[test]
    fn heic_is_mentioned_only_where_there_is_heic() {
        let hint = |heic| words(&Hint::GiveSupported { kind: SignalKind::Image, heic });
        assert_eq!(hint(false), "supported: png jpg bmp tif webp gif pnm, idx, npz, parquet, tar");
        assert_eq!(hint(true), hint(false) + "; convert HEIC first");
    }

    #[test]
    fn flags_are_named() {
        for (hint, flag) in [
            (Hint::GiveLabels, "--labels"),
            (Hint::NameClasses, "--classes"),
            (Hint::ListClasses, "--classes FILE"),
            (Hint::ChooseSplit, "--split"),
            (Hint::OtherSplit { files: true }, "--split"),
            (Hint::Tolerate, "--max-errors"),
        ] {
            assert!(words(&hint).contains(flag), "{hint:?}");
        }
    }
}
