//! Sessions: searches of inputs that come and go, as those of a server do. Any
//! number of them advance in step; one can be added or taken out between two
//! steps. What comes of an input is what [`Canonicalizer::predict`] says.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::underway::{Begun, Underway};
use super::{Canonicalizer, Prediction};
use crate::error::{Error, Result};
use crate::tensor::Batch;

/// An input that was looked at as it is.
pub struct Looked<'c> {
    canonicalizer: &'c Canonicalizer,
    begun: Begun<'c>,
}

impl std::fmt::Debug for Looked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Looked({:?})", self.begun.trace.raw_look())
    }
}

impl Looked<'_> {
    /// Whether the gate opens for it.
    pub fn opens(&self) -> bool {
        self.canonicalizer.gate().search(self.begun.trace.raw_look())
    }

    /// The bare model's answer: the whole answer, unless the gate opens.
    pub fn bare(&self) -> Prediction {
        self.canonicalizer.kept(&self.begun.trace)
    }

    /// The answer of a search that was stopped before its first view.
    pub fn unsearched(&self) -> Prediction {
        self.canonicalizer.decide(&self.begun.trace)
    }
}

impl Canonicalizer {
    /// Looks at inputs as they are.
    #[doc(hidden)]
    pub fn look_at(&self, batch: &Batch) -> Result<Vec<Looked<'_>>> {
        let begun = self.begin_with(batch, |item| batch.item(item).to_vec().into())?;
        Ok(begun.into_iter().map(|begun| Looked { canonicalizer: self, begun }).collect())
    }
}

/// What became of a search: an answer, an error, or after a panic nothing.
pub type Outcome = Option<Result<Prediction>>;

/// Searches under way, each with a tag that tells whose it is.
pub struct Session<'c, T> {
    canonicalizer: &'c Canonicalizer,
    /// Those that begin with the next step.
    fresh: Vec<(Vec<f32>, Begun<'c>, T)>,
    /// Those that have waited longest for a step first.
    searches: VecDeque<Search<'c, T>>,
}

/// One search of a session.
pub struct Search<'c, T> {
    canonicalizer: &'c Canonicalizer,
    item: Vec<f32>,
    underway: Underway<'c>,
    tag: T,
}

impl<T> Search<'_, T> {
    /// Whose it is.
    pub fn tag(&self) -> &T {
        &self.tag
    }

    /// The answer if it were stopped now.
    pub fn best(&self) -> Prediction {
        self.canonicalizer.decide(&self.underway.so_far())
    }
}

impl<T> std::fmt::Debug for Session<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({} searches)", self.len())
    }
}

impl<'c, T> Session<'c, T> {
    /// A session without any search.
    pub fn new(canonicalizer: &'c Canonicalizer) -> Self {
        Session { canonicalizer, fresh: Vec::new(), searches: VecDeque::new() }
    }

    /// Adds the search of an input, whose numbers are `item`.
    pub fn add(&mut self, item: Vec<f32>, looked: Looked<'c>, tag: T) {
        self.fresh.push((item, looked.begun, tag));
    }

    /// How many searches there are.
    pub fn len(&self) -> usize {
        self.fresh.len() + self.searches.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The searches that have begun.
    pub fn searches(&self) -> impl Iterator<Item = &Search<'c, T>> {
        self.searches.iter()
    }

    /// What the searches may still cost, in forward passes.
    pub fn cost(&self) -> usize {
        let budget = self.canonicalizer.config.budget;
        let left = |search: &Search<T>| budget.saturating_sub(search.underway.cost());
        self.fresh.len() * budget + self.searches.iter().map(left).sum::<usize>()
    }

    /// Gives up the searches that `which` chooses.
    pub fn give_up(&mut self, which: impl Fn(&T) -> bool) {
        self.fresh.retain(|(_, _, tag)| !which(tag));
        self.searches.retain(|search| !which(&search.tag));
    }

    /// Lets the searches that have waited longest look at about `views` views, at least those
    /// of one search, and gives what became of those that are over. An input whose step fails
    /// is answered on its own, so that no other suffers.
    pub fn step(&mut self, views: usize) -> Vec<(T, Outcome)> {
        let mut over = self.begin();
        let (mut taken, mut wanted) = (Vec::new(), 0);
        while wanted < views
            && let Some(search) = self.searches.pop_front()
        {
            wanted += search.underway.wanted();
            taken.push(search);
        }
        let (mut items, mut searches, mut tags) = (Vec::new(), Vec::new(), Vec::new());
        for Search { item, underway, tag, .. } in taken {
            items.push(item);
            searches.push(underway);
            tags.push(tag);
        }
        let c = self.canonicalizer;
        let places: Vec<usize> = (0..items.len()).collect();
        let advance = || c.advance(&c.batch_of(&items)?, &places, &mut searches);
        if !matches!(catch_unwind(AssertUnwindSafe(advance)), Ok(Ok(()))) {
            let alone = items.iter().map(|item| c.alone(item));
            over.extend(tags.into_iter().zip(alone));
            return over;
        }
        for ((item, underway), tag) in items.into_iter().zip(searches).zip(tags) {
            over.extend(self.put_back(item, underway, tag));
        }
        over
    }

    /// Begins the fresh searches; those that fail, end at once or go to a second model are over.
    fn begin(&mut self) -> Vec<(T, Outcome)> {
        let (mut items, mut begun, mut tags) = (Vec::new(), Vec::new(), Vec::new());
        for (item, one, tag) in self.fresh.drain(..) {
            items.push(item);
            begun.push(one);
            tags.push(tag);
        }
        if items.is_empty() {
            return Vec::new();
        }
        let c = self.canonicalizer;
        let contents = items.iter().map(Vec::as_slice).collect();
        let start = || {
            if c.switches()
                && let Some(traces) = c.routed(&c.batch_of(&items)?, &begun)?
            {
                return Ok((traces.iter().map(|trace| c.decide(trace)).collect(), Vec::new()));
            }
            Result::Ok((Vec::new(), c.start(begun, contents)?))
        };
        let Ok(Ok((routed, searches))) = catch_unwind(AssertUnwindSafe(start)) else {
            let alone = items.iter().map(|item| c.alone(item));
            return tags.into_iter().zip(alone).collect();
        };
        if !routed.is_empty() {
            return tags.into_iter().zip(routed.into_iter().map(|p| Some(Ok(p)))).collect();
        }
        let mut over = Vec::new();
        for ((item, underway), tag) in items.into_iter().zip(searches).zip(tags) {
            over.extend(self.put_back(item, underway, tag));
        }
        over
    }

    /// Puts a search at the end of the line, or gives its answer if it is over.
    fn put_back(&mut self, item: Vec<f32>, underway: Underway<'c>, tag: T) -> Option<(T, Outcome)> {
        let canonicalizer = self.canonicalizer;
        if underway.wanted() == 0 {
            return Some((tag, Some(Ok(canonicalizer.decide(&underway.end())))));
        }
        self.searches.push_back(Search { canonicalizer, item, underway, tag });
        None
    }
}

impl Canonicalizer {
    fn batch_of(&self, items: &[Vec<f32>]) -> Result<Batch<'static>> {
        let mut batch = Batch::with_capacity(self.model.signal(), items.len());
        items.iter().try_for_each(|item| batch.push(item))?;
        Ok(batch)
    }

    /// The answer for one input, whatever it does to others.
    #[doc(hidden)]
    pub fn alone(&self, item: &[f32]) -> Outcome {
        let answer = || {
            let batch = Batch::borrowed(self.model.signal(), item)?;
            let mut all = self.predict(&batch)?;
            all.pop().ok_or_else(|| Error::shape("answers", 1, 0))
        };
        catch_unwind(AssertUnwindSafe(answer)).ok()
    }
}
