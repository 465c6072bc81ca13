use super::*;
use crate::item::Item;
use upright::Picture;

fn pixels(item: Item) -> Vec<f32> {
    let Item::Image(picture) = item else { panic!("{:?}", item.kind()) };
    picture.data().to_vec()
}

/// Every tenth image is broken, every third asks to be turned; the value is the row.
struct Numbers(usize);

impl Items for Numbers {
    fn len(&self) -> usize {
        self.0
    }

    fn name(&self, row: usize) -> String {
        format!("n/{row}.png")
    }

    fn item(&self, row: usize) -> std::result::Result<Decoded, Unusable> {
        if row % 10 == 9 {
            return Err("truncated at byte 8".into());
        }
        let picture = Picture::new(1, 1, 1, vec![row as f32]).unwrap();
        let change = if row.is_multiple_of(3) { Change::Turned } else { Change::None };
        Ok(Decoded { item: Item::Image(picture), change })
    }
}

fn source(rows: usize, options: &Options) -> Source {
    let prepare = Prepare {
        signal: Signal::image(1, 1, 1),
        apply: Box::new(|item| Ok(Ok((pixels(item), Change::None)))),
    };
    Source::new(Path::new("n"), Set::new(Numbers(rows), Labels::None), options, prepare).unwrap()
}

fn options(allowance: Allowance) -> Options {
    Options { allowance, ..Options::new(Want::Inputs, Signal::image(1, 1, 1)) }
}

#[test]
fn rows_come_in_the_asked_order_without_the_broken_ones() {
    let source = source(20, &options(Allowance::Percent(10.0)));
    let loaded = source.read(&[12, 9, 3, 99]).unwrap();
    assert_eq!(loaded.rows, [12, 3]);
    assert_eq!(loaded.batch.data(), [12.0, 3.0]);
    source.read(&[9]).unwrap();
    assert_eq!(source.skipped_count(), 1, "a row counts once");
}

#[test]
fn more_broken_rows_than_allowed_stop_the_reading() {
    let source = source(100, &options(Allowance::Count(2)));
    assert!(source.read(&[9, 19]).is_ok());
    let e = source.read(&(20..40).collect::<Vec<_>>()).unwrap_err();
    assert_eq!(e.to_string(), "4 of 100 images unreadable, first: `n/9.png` (truncated at byte 8)");
    assert_eq!(e.code(), "data::corrupt");
}

#[test]
fn broken_and_turned_rows_are_noted_and_kept() {
    let source = source(100, &options(Allowance::Percent(10.0)));
    source.read(&(0..100).collect::<Vec<_>>()).unwrap();
    let notes = source.notes();
    assert_eq!(
        notes[0].to_string(),
        "30 of 90 images carry an EXIF rotation; applied before everything"
    );
    assert_eq!(
        notes[1].to_string(),
        "10 of 100 images unreadable, first: `n/9.png` (truncated at byte 8)"
    );
    let skipped = source.skipped();
    assert_eq!((skipped.len(), skipped[1].row), (10, 19));
    assert_eq!(skipped[1].to_string(), "`n/19.png` (truncated at byte 8)");
}

#[test]
fn patterns_choose_rows_by_their_names() {
    let rows = |include: &[&str], exclude: &[&str]| {
        let list = |p: &[&str]| p.iter().map(|&p| p.to_owned()).collect();
        let options = Options {
            include: list(include),
            exclude: list(exclude),
            ..options(Allowance::Count(9))
        };
        let set = Set::new(Numbers(30), Labels::Numbers((0..30).collect()));
        let prepare = Prepare {
            signal: Signal::image(1, 1, 1),
            apply: Box::new(|item| Ok(Ok((pixels(item), Change::None)))),
        };
        let source = Source::new(Path::new("n"), set, &options, prepare)?;
        Ok::<Vec<u32>, Error>((0..source.len()).map(|r| source.label(r).unwrap()).collect())
    };
    assert_eq!(rows(&["n/1?.png", "*/2.png"], &["*[02468].png"]).unwrap(), [11, 13, 15, 17, 19]);
    assert_eq!(rows(&[], &["*/?.png", "*/1?.png"]).unwrap().len(), 10);
    let e = rows(&["1?.png"], &[]).unwrap_err();
    assert_eq!(e.to_string(), "n: the patterns leave none of its 30 rows");
    assert!(matches!(e, Error::NoMatch { example, .. } if example == "n/0.png"));
}

#[test]
fn an_unusable_image_is_skipped_but_a_wrong_set_up_stops() {
    let mut s = source(5, &options(Allowance::Count(5)));
    s.prepare.apply = Box::new(|_| Ok(Err("too thin".into())));
    let read = s.load(&[1]).unwrap();
    assert_eq!((read.rows.len(), read.skipped[0].why.to_string()), (0, "too thin".into()));
    s.prepare.apply = Box::new(|_| Err(upright::Error::shape("image", 1, 2)));
    assert_eq!(s.read(&[1]).unwrap_err().code(), "input::shape");
}
