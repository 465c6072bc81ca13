//! What every search must do, on functions whose minimum is known.

use upright::config::Part;
use upright::search::{self, Brief, Search, Seen, TABLE};
use upright::space::{Space, SpaceConfig};

fn space(text: &str) -> Space {
    SpaceConfig::parse(text).unwrap().build().unwrap()
}

/// Runs a search to its end; returns what it saw, and checks the rules on the way.
fn run(
    search: &dyn Search,
    space: &Space,
    budget: usize,
    seed: u64,
    energy: &dyn Fn(&[f32]) -> f32,
) -> Vec<Seen> {
    let see = |pose: Vec<f32>, gradient: bool| Seen {
        energy: energy(&pose),
        label: 0,
        gradient: gradient.then(|| slope(space, &pose, energy)),
        pose,
    };
    let raw = see(space.identity(), false);
    let mut run = search.start(&Brief { space, seed, budget, raw: &raw });
    let (mut seen, mut cost): (Vec<Seen>, usize) = (Vec::new(), 0);
    loop {
        let asks = run.ask(budget - cost);
        if asks.is_empty() {
            break;
        }
        cost += asks.iter().map(search::Ask::cost).sum::<usize>();
        assert!(cost <= budget, "{cost} of {budget}");
        for ask in &asks {
            assert_eq!(ask.pose.len(), space.size());
            assert!(space.contains(&ask.pose), "{:?}", ask.pose);
        }
        let told: Vec<Seen> = asks.into_iter().map(|a| see(a.pose, a.gradient)).collect();
        run.tell(&told);
        seen.extend(told);
    }
    if let Some(pick) = run.pick() {
        assert!(pick < seen.len());
    }
    seen
}

fn slope(space: &Space, pose: &[f32], energy: &dyn Fn(&[f32]) -> f32) -> Vec<f32> {
    (0..space.size())
        .map(|k| {
            let (mut up, mut down) = (pose.to_vec(), pose.to_vec());
            up[k] += 1e-3;
            down[k] -= 1e-3;
            (energy(&up) - energy(&down)) / 2e-3
        })
        .collect()
}

fn each(check: impl Fn(&str, &dyn Search)) {
    for row in TABLE {
        check(row.name, search::make(&Part::new(row.name)).unwrap().as_ref());
    }
}

/// Zero at an angle of 1.2, periodic.
fn bowl(pose: &[f32]) -> f32 {
    1.0 - (pose[0] - 1.2).cos()
}

/// Many local minima, the lowest at an angle of -2.
fn ripples(pose: &[f32]) -> f32 {
    1.0 - (pose[0] + 2.0).cos() + 0.3 * (1.0 - (7.0 * (pose[0] + 2.0)).cos())
}

fn best(seen: &[Seen]) -> f32 {
    seen.iter().map(|s| s.energy).fold(f32::INFINITY, f32::min)
}

#[test]
fn every_search_keeps_to_its_budget_and_its_domain() {
    each(|_, search| {
        for text in ["rotate", "affine", "rotate=-30..30,scale", "flip,rotate", "flip"] {
            for budget in [0, 1, 2, 7, 60, 240] {
                run(search, &space(text), budget, 5, &bowl);
            }
        }
    });
}

#[test]
fn every_search_uses_its_budget_on_a_continuous_space() {
    each(|name, search| {
        let seen = run(search, &space("affine"), 60, 5, &bowl);
        assert!(seen.len() >= 24, "{name} {}", seen.len());
    });
}

#[test]
fn every_search_is_decided_by_its_seed() {
    each(|name, search| {
        let look = |seed| run(search, &space("affine"), 60, seed, &bowl);
        assert_eq!(look(1), look(1), "{name}");
        assert_ne!(look(1), look(2), "{name}");
    });
}

#[test]
fn no_search_asks_without_room() {
    for row in TABLE {
        let search = search::make(&Part::new(row.name)).unwrap();
        let space = space("rotate");
        let raw =
            Seen { pose: space.identity(), energy: 0.0, label: 0, gradient: None };
        let mut run = search.start(&Brief { space: &space, seed: 1, budget: 5, raw: &raw });
        assert!(run.ask(0).is_empty(), "{}", row.name);
    }
}

#[test]
fn every_search_finds_the_bottom_of_a_bowl() {
    each(|name, search| {
        for seed in 0..5 {
            let best = best(&run(search, &space("rotate"), 60, seed, &bowl));
            assert!(best < 0.01, "{name} {best}");
        }
    });
}

#[test]
fn every_search_gets_near_the_lowest_of_many_minima() {
    each(|name, search| {
        for seed in 0..5 {
            let best = best(&run(search, &space("rotate"), 120, seed, &ripples));
            assert!(best < 0.08, "{name} {best}");
        }
    });
}

#[test]
fn every_search_survives_energies_that_are_not_numbers() {
    each(|_, search| {
        run(search, &space("affine"), 60, 3, &|_| f32::NAN);
        run(search, &space("affine"), 60, 3, &|p| if p[0] > 0.0 { f32::NAN } else { p[1] });
        run(search, &space("affine"), 60, 3, &|_| f32::INFINITY);
    });
}

#[test]
fn lowest_takes_the_first_of_equals_and_nan_last() {
    assert_eq!(search::lowest([f32::NAN, 2.0, 1.0, 1.0]), Some(2));
    assert_eq!(search::lowest([f32::NAN, f32::NAN]), Some(0));
    assert_eq!(search::lowest([]), None);
}
