use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;
const WINDOW: Duration = Duration::from_secs(5);

/// A simulated process with an informer.
struct Simulation {
    controller: AutoBudget,
    now: Duration,
    /// The objects of the cache, and the bytes of each decoded one.
    objects: u64,
    object_bytes: u64,
    /// Reads of each window, spread over all objects.
    reads: u64,
    /// The resident memory apart from decoded objects, and the ceiling.
    other_bytes: u64,
    ceiling: Option<u64>,
    /// The resident bytes of a decoded byte, in percent.
    overhead: u64,
    /// Whether memory that was freed stays resident.
    is_retained: bool,
    peak: u64,
    decoded: u64,
    warnings: Vec<(Duration, Pressure)>,
}

impl Simulation {
    /// Returns a process whose cache of 50,000 pods is listed `lists` times in each window.
    fn new(lists: u64, ceiling: Option<u64>) -> Self {
        Self {
            controller: AutoBudget::new(AutoOptions::default(), &Ledger::new(), Duration::ZERO),
            now: Duration::ZERO,
            objects: 50_000,
            object_bytes: 33_000,
            reads: lists * 50_000,
            other_bytes: 100 * MIB,
            ceiling,
            overhead: 100,
            is_retained: false,
            peak: 0,
            decoded: 0,
            warnings: Vec::new(),
        }
    }

    fn wanted(&self) -> u64 {
        self.objects * self.object_bytes
    }

    fn resident(&self) -> u64 {
        let resident = self.other_bytes + self.decoded * self.overhead / 100;
        if self.is_retained { resident.max(self.peak) } else { resident }
    }

    /// Simulates a window and returns the budget after it.
    fn window(&mut self) -> u64 {
        let read = self.reads * self.object_bytes;
        let kept = self.decoded.min(self.controller.budget());
        let hits = scaled(self.reads, kept, self.wanted());
        self.decoded = kept.saturating_add(read).min(self.controller.budget()).min(self.wanted());
        self.peak = self.resident();
        self.now += WINDOW;
        let decodes = self.reads - hits;
        let observation = Observation {
            decodes,
            decode_time: Duration::from_micros(40 * decodes),
            hits,
            decoded_bytes: self.decoded,
            wanted_bytes: self.wanted(),
            resident: Some(self.resident()),
            ceiling: self.ceiling,
        };
        let decision = self.controller.observe(self.now, &observation);
        self.warnings.extend(decision.pressure.map(|pressure| (self.now, pressure)));
        decision.budget
    }

    /// Returns the budgets after each of the next windows.
    fn windows(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.window()).collect()
    }
}

fn changes(budgets: &[u64]) -> usize {
    budgets.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[test]
fn a_cache_that_is_listed_in_a_loop_is_decoded_within_a_minute() {
    for lists in [1, 2, 20] {
        let mut simulation = Simulation::new(lists, Some(4096 * MIB));
        let budgets = simulation.windows(12);
        assert!(budgets[11] >= simulation.wanted(), "{lists} lists: {budgets:?}");
        assert_eq!(changes(&simulation.windows(200)), 0);
        assert_eq!(simulation.warnings, []);
    }
}

#[test]
fn a_moderate_rate_of_reads_doubles_the_budget_until_it_is_cheap() {
    let mut simulation = Simulation::new(0, Some(4096 * MIB));
    simulation.reads = 10_000;
    let budgets = simulation.windows(12);
    assert!(budgets.windows(2).all(|pair| pair[1] <= 2 * pair[0]), "{budgets:?}");
    assert!((1024 * MIB..=2048 * MIB).contains(&budgets[11]), "{budgets:?}");
    assert_eq!(changes(&simulation.windows(200)), 0);
}

#[test]
fn rare_reads_and_a_single_expensive_window_change_nothing() {
    let mut simulation = Simulation::new(0, Some(4096 * MIB));
    simulation.reads = 1500;
    assert_eq!(simulation.windows(500), [32 * MIB; 500]);
    for _ in 0..20 {
        simulation.reads = 50_000;
        simulation.window();
        simulation.reads = 0;
        assert_eq!(simulation.windows(10), [32 * MIB; 10]);
    }
}

#[test]
fn reads_that_do_not_use_the_budget_do_not_grow_it() {
    let mut simulation = Simulation::new(20, Some(4096 * MIB));
    simulation.objects = 500;
    assert_eq!(simulation.windows(50), [32 * MIB; 50]);
    assert_eq!(simulation.warnings, []);
}

#[test]
fn growth_stops_below_the_ceiling_with_one_warning_in_ten_minutes() {
    let mut simulation = Simulation::new(2, Some(600 * MIB));
    let budgets = simulation.windows(361);
    assert!(simulation.peak <= 600 * MIB);
    let last = budgets[360];
    assert!((400 * MIB..=500 * MIB).contains(&last), "{last}");
    assert_eq!(changes(&budgets[12..]), 0, "{budgets:?}");
    let times: Vec<_> = simulation.warnings.iter().map(|(at, _)| at.as_secs()).collect();
    assert_eq!(times.len(), 3, "{times:?}");
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 600), "{times:?}");
    let (_, pressure) = simulation.warnings[0];
    assert!((10_000.0..20_000.0).contains(&pressure.decodes_per_second), "{pressure:?}");
    assert_eq!((pressure.budget, pressure.wanted_bytes), (last, simulation.wanted()));
}

#[test]
fn a_process_above_its_ceiling_shrinks_at_once_and_not_below_a_quarter_of_the_base() {
    let mut simulation = Simulation::new(2, Some(4096 * MIB));
    let before = simulation.windows(12)[11];
    simulation.other_bytes = 3000 * MIB;
    let after = simulation.windows(2)[1];
    assert!(simulation.resident() <= 4096 * MIB, "{}", simulation.resident() / MIB);
    assert!(after < before && after > 512 * MIB, "no more than what is needed: {after}");
    simulation.other_bytes = 5000 * MIB;
    assert_eq!(simulation.windows(100)[99], 8 * MIB);
}

#[test]
fn the_budget_grows_again_after_the_cooldown_of_a_shortage() {
    let mut simulation = Simulation::new(0, Some(1000 * MIB));
    simulation.windows(12);
    simulation.other_bytes = 2000 * MIB;
    assert_eq!(simulation.windows(12)[11], 8 * MIB);
    simulation.other_bytes = 100 * MIB;
    let budgets = simulation.windows(130);
    assert_eq!(budgets[100], 8 * MIB);
    assert_eq!(budgets[129], 32 * MIB);
    assert_eq!(changes(&budgets), 1);
}

#[test]
fn shortages_in_succession_double_the_cooldown() {
    let mut simulation = Simulation::new(2, Some(1000 * MIB));
    let mut waits = Vec::new();
    for _ in 0..4 {
        simulation.other_bytes = 2000 * MIB;
        simulation.windows(6);
        simulation.other_bytes = 100 * MIB;
        let low = simulation.window();
        waits.push((1..2000).find(|_| simulation.window() > low).expect("grows again"));
    }
    assert!((100..=120).contains(&waits[0]), "{waits:?}");
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0] + pair[0] / 2), "{waits:?}");
}

#[test]
fn the_budget_returns_to_the_base_slowly_after_ten_minutes_without_need() {
    let mut simulation = Simulation::new(2, Some(4096 * MIB));
    let before = simulation.windows(12)[11];
    simulation.reads = 0;
    assert_eq!(simulation.windows(119), vec![before; 119]);
    let budgets = simulation.windows(300);
    assert!(budgets.windows(10).all(|ten| changes(ten) <= 1), "{budgets:?}");
    assert!(budgets.windows(2).all(|pair| pair[1] >= pair[0] - pair[0] / 4), "{budgets:?}");
    assert_eq!(budgets[299], 32 * MIB);
}

#[test]
fn a_budget_whose_objects_are_read_is_kept() {
    let mut simulation = Simulation::new(2, Some(4096 * MIB));
    let before = simulation.windows(12)[11];
    simulation.reads = 4000;
    assert_eq!(simulation.windows(500), vec![before; 500]);
}

#[test]
fn without_measured_memory_the_budget_grows_to_eight_times_the_base() {
    let mut simulation = Simulation::new(2, None);
    assert_eq!(simulation.windows(100)[99], 256 * MIB);
    assert_eq!(simulation.warnings.len(), 1);
}

#[test]
fn informers_that_share_a_ledger_stay_below_the_ceiling_together() {
    let ledger = Ledger::new();
    let mut all: Vec<_> = (0..5)
        .map(|_| {
            let mut simulation = Simulation::new(2, Some(1000 * MIB));
            simulation.controller = AutoBudget::new(AutoOptions::default(), &ledger, Duration::ZERO);
            simulation
        })
        .collect();
    for _ in 0..100 {
        for n in 0..all.len() {
            let others: u64 = (0..all.len()).filter(|m| *m != n).map(|m| all[m].decoded).sum();
            all[n].other_bytes = 100 * MIB + others;
            all[n].window();
        }
        let decoded: u64 = all.iter().map(|simulation| simulation.decoded).sum();
        assert!(decoded + 100 * MIB <= 1000 * MIB);
        assert!(ledger.reserved() <= 900 * MIB);
    }
    let reserved = ledger.reserved();
    assert!(reserved >= 700 * MIB, "the ceiling allows more than {reserved}");
    drop(all);
    assert_eq!((ledger.reserved(), ledger.used()), (0, 0));
}

#[test]
fn an_observation_without_elapsed_time_changes_nothing() {
    let mut simulation = Simulation::new(20, Some(4096 * MIB));
    simulation.window();
    let observation = Observation { decodes: 1 << 40, decode_time: Duration::MAX, ..Observation::default() };
    for now in [Duration::ZERO, WINDOW] {
        let decision = simulation.controller.observe(now, &observation);
        assert_eq!(decision, Decision { budget: 32 * MIB, pressure: None });
    }
}

proptest! {
    #[test]
    fn the_budget_changes_at_most_once_in_ten_windows_after_it_converged(
        reads in 0..500_000_u64,
        objects in 100..100_000_u64,
        ceiling in 50..4000_u64,
        other in 10..2000_u64,
        overhead in 80..140_u64,
        is_retained in any::<bool>(),
        noise in 0..30_u64,
        seed in any::<u64>(),
    ) {
        let mut simulation = Simulation::new(0, Some(ceiling * MIB));
        simulation.reads = reads;
        simulation.objects = objects;
        simulation.overhead = overhead;
        simulation.is_retained = is_retained;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut budgets = Vec::new();
        for _ in 0..600 {
            simulation.other_bytes = other * MIB * (1000 + rng.u64(0..=noise)) / 1000;
            budgets.push(simulation.window());
        }
        for (start, ten) in budgets[80..].windows(10).enumerate() {
            prop_assert!(changes(ten) <= 1, "windows from {}: {:?}", start + 80, ten);
        }
        prop_assert!(budgets.iter().all(|budget| *budget >= 8 * MIB));
    }

    #[test]
    fn no_observation_makes_the_controller_panic_or_warn_too_often(
        observations in prop::collection::vec(
            (any::<[u64; 5]>(), prop::option::of(any::<u64>()), prop::option::of(any::<u64>()), any::<u32>()),
            1..60,
        ),
    ) {
        let ledger = Ledger::new();
        let mut controller = AutoBudget::new(AutoOptions::default(), &ledger, Duration::ZERO);
        let mut now = Duration::ZERO;
        let mut warned = None;
        for ([decodes, nanos, hits, decoded_bytes, wanted_bytes], resident, ceiling, millis) in observations {
            now += Duration::from_millis(u64::from(millis));
            let decode_time = Duration::from_nanos(nanos);
            let observation =
                Observation { decodes, decode_time, hits, decoded_bytes, wanted_bytes, resident, ceiling };
            let decision = controller.observe(now, &observation);
            prop_assert!(decision.budget >= 8 * MIB);
            prop_assert_eq!(decision.budget, ledger.reserved());
            if decision.pressure.is_some() {
                prop_assert!(warned.is_none_or(|at| now.saturating_sub(at) >= Duration::from_mins(10)));
                warned = Some(now);
            }
        }
    }
}
