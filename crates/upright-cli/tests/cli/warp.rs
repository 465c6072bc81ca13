//! `upright warp` as a user runs it.

use crate::support::{png, upright};
use tempfile::tempdir;

/// A quarter turn about the centre moves whole pixels.
#[test]
fn a_quarter_turn_permutes_the_pixels_and_the_inverse_undoes_it() {
    let folder = tempdir().unwrap();
    let pixels: Vec<f32> = (0..9).map(|i| i as f32 / 8.0).collect();
    png(&folder.path().join("in.png"), &pixels, 3);
    let ran = upright(folder.path(), &["warp", "in.png", "out.png", "--pose", "rotate=90"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let before = image::open(folder.path().join("in.png")).unwrap().to_luma8();
    let after = image::open(folder.path().join("out.png")).unwrap().to_luma8();
    for (x, y, pixel) in after.enumerate_pixels() {
        // (x, y) is read at R(90) (x, y) = (-y, x) about the centre (1, 1).
        assert_eq!(pixel, before.get_pixel(2 - y, x), "{x} {y}");
    }
    let back = ["warp", "out.png", "back.png", "--pose", "rotate=90", "--inverse"];
    assert_eq!(upright(folder.path(), &back).code, 0);
    let back = image::open(folder.path().join("back.png")).unwrap().to_luma8();
    assert_eq!(back, before);
}

#[test]
fn a_matrix_and_a_pose_say_the_same() {
    let folder = tempdir().unwrap();
    let pixels: Vec<f32> = (0..64).map(|i| (i % 7) as f32 / 6.0).collect();
    png(&folder.path().join("in.png"), &pixels, 8);
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let warp = |out: &str, args: &[&str]| {
        let mut all = vec!["warp", "in.png", out, "--json"];
        all.extend(args);
        let ran = upright(folder.path(), &all);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    let said = warp("a.png", &["--pose", "scale-x=2", "--pose", "shear-x=0.5"]);
    assert!(said.contains("\"map\":[2.0,0.5,0.0,0.0,1.0,0.0]"), "{said}");
    warp("b.png", &["--matrix", "2,0.5,0,0,1,0"]);
    assert_eq!(read("a.png"), read("b.png"));
    warp("c.png", &["--matrix", "2,0.5,0,0,1,0", "--padding", "#ffffff"]);
    assert_ne!(read("a.png"), read("c.png"));
}

#[test]
fn wrong_poses_matrices_and_files_get_a_clear_error() {
    let folder = tempdir().unwrap();
    png(&folder.path().join("in.png"), &[0.5; 4], 2);
    for (args, code, words) in [
        (
            vec!["in.png", "o.png", "--pose", "twist=3"],
            2,
            "unknown axis `twist`; there are: rotate",
        ),
        (vec!["in.png", "o.png", "--pose", "rotate"], 2, "is not a pose"),
        (vec!["in.png", "o.png", "--matrix", "1,2,3"], 2, "is not a matrix"),
        (vec!["in.png", "o.png", "--matrix", "1,1,0,1,1,0", "--inverse"], 2, "has no inverse"),
        (vec!["in.png", "o.png", "--padding", "mirror"], 2, "unknown padding `mirror`"),
        (vec!["in.png", "o.xyz"], 2, "does not end like an image"),
        (vec!["no.png", "o.png"], 3, "no.png"),
    ] {
        let mut all = vec!["warp"];
        all.extend(args);
        let ran = upright(folder.path(), &all);
        assert_eq!(ran.code, code, "{all:?}: {}", ran.err);
        assert!(ran.err.contains(words), "{all:?}: {}", ran.err);
    }
    assert!(!folder.path().join("o.png").exists());
}
