//! Searches under way: each is asked for poses, all views are evaluated
//! together, each is told what was seen.

use rayon::prelude::*;

use super::Canonicalizer;
use super::views::{Asked, Told};
use crate::error::{Error, Result};
use crate::proposer::{self, Proposal};
use crate::role::Role;
use crate::search::{self, Ask, Brief, Run, Seen};
use crate::seed;
use crate::tensor::Batch;
use crate::trace::{Proposed, Trace};

/// An input that was looked at as it is.
pub(super) struct Begun<'a> {
    pub(super) trace: Trace,
    pub(super) proposer: Box<dyn proposer::Run + 'a>,
    /// What the proposer suggests after the input as it is.
    pub(super) suggested: Vec<Proposal>,
}

/// The search of one input.
pub(super) struct Underway<'a> {
    trace: Trace,
    proposer: Box<dyn proposer::Run + 'a>,
    run: Box<dyn Run + 'a>,
    /// The views to look at next, and what they cost; none: the search is over.
    asks: Vec<Ask>,
    price: usize,
}

impl Underway<'_> {
    /// Views that it looks at next; none if it is over.
    pub(super) fn wanted(&self) -> usize {
        self.asks.len()
    }

    /// What the views so far have cost.
    pub(super) fn cost(&self) -> usize {
        self.trace.cost
    }

    /// Everything that was looked at, with the choice that the search would make now.
    pub(super) fn so_far(&self) -> Trace {
        Trace { pick: self.run.pick(), ..self.trace.clone() }
    }

    /// Everything that was looked at.
    pub(super) fn end(self) -> Trace {
        Trace { pick: self.run.pick(), ..self.trace }
    }

    fn tell(&mut self, told: Told) {
        let Told { evaluations, proposals } = told;
        if evaluations.is_empty() {
            return;
        }
        let (seen, logits): (Vec<Seen>, Vec<Vec<f32>>) = evaluations.into_iter().unzip();
        self.run.tell(&seen);
        self.trace.seen.extend(seen);
        self.trace.logits.extend(logits);
        if !proposals.is_empty() {
            self.run.suggest(&proposals);
            note(&mut self.trace, &proposals);
        }
    }
}

impl Canonicalizer {
    /// Begins the searches of inputs with these contents.
    pub(super) fn start<'a>(
        &'a self,
        begun: Vec<Begun<'a>>,
        contents: Vec<&[f32]>,
    ) -> Result<Vec<Underway<'a>>> {
        let first = self.fitted.search.first(self.config.budget);
        let mut searches: Vec<Underway> = begun
            .into_par_iter()
            .zip(contents)
            .map(|(Begun { mut trace, mut proposer, mut suggested }, content)| {
                let mut proposals = proposer.first(first);
                proposals.append(&mut suggested);
                let run = self.fitted.search.start(&Brief {
                    space: &self.space,
                    seed: seed::of_content(self.config.seed, content),
                    budget: self.config.budget,
                    raw: &trace.raw,
                    proposals: &proposals,
                    sure: self.fitted.score.sure(),
                });
                note(&mut trace, &proposals);
                Underway { trace, proposer, run, asks: Vec::new(), price: 0 }
            })
            .collect();
        self.ask(&mut searches)?;
        Ok(searches)
    }

    /// Lets searches look at the views that they have asked for, all together, and ask again;
    /// `items` are the places of their inputs in the batch.
    pub(super) fn advance(
        &self,
        batch: &Batch,
        items: &[usize],
        searches: &mut [Underway],
    ) -> Result<()> {
        let mut asked: Vec<Asked> = searches
            .iter_mut()
            .zip(items)
            .map(|(Underway { trace, proposer, asks, price, .. }, &item)| {
                trace.cost += std::mem::take(price);
                let asks = std::mem::take(asks);
                Asked { item, asks, proposed: &trace.proposals, run: proposer.as_mut() }
            })
            .collect();
        let told = self.evaluate(batch, &mut asked)?;
        drop(asked);
        searches.iter_mut().zip(told).for_each(|(search, told)| search.tell(told));
        self.ask(searches)
    }

    /// Asks each search what to look at next, which must be within its budget.
    fn ask(&self, searches: &mut [Underway]) -> Result<()> {
        // A gradient that cannot be had is not paid for.
        let gradients = search::row(&self.config.part(Role::Search).name)?.make.gradient
            && self.model.differentiable().is_ok();
        searches.par_iter_mut().try_for_each(|search| {
            let room = self.config.budget - search.trace.cost;
            search.asks = if room == 0 { Vec::new() } else { search.run.ask(room) };
            let prices = search.asks.iter().map(|ask| if gradients { ask.cost() } else { 1 });
            search.price = prices.sum();
            if search.price <= room {
                return Ok(());
            }
            Err(Error::BadSetting {
                part: format!("search {}", self.config.part(Role::Search).name),
                name: "budget".into(),
                value: format!("{} asked", search.price),
                range: format!("at most {room}"),
            })
        })
    }
}

/// Records what was proposed after the views so far.
fn note(trace: &mut Trace, proposals: &[Proposal]) {
    let after = trace.seen.len();
    let proposed = |p: &Proposal| Proposed { after, proposal: p.clone() };
    trace.proposals.extend(proposals.iter().map(proposed));
}
