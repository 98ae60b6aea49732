//! When a dictionary is renewed.

/// The thresholds of a [`Renewal`], in objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RenewalOptions {
    /// The number of objects over which the ratio is measured. Defaults to 512.
    pub(crate) window: u32,
    /// The number of objects for which the ratio has to be low before the dictionary is renewed. Defaults to 4,096:
    /// packing them takes as long as a quarter of the training.
    pub(crate) required: u32,
    /// The largest number that this is raised to. Defaults to 1,048,576.
    pub(crate) required_max: u32,
}

impl Default for RenewalOptions {
    fn default() -> Self {
        Self { window: 512, required: 4096, required_max: 1 << 20 }
    }
}

/// The next step after an object was packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advice {
    /// The dictionary is good enough.
    Keep,
    /// The dictionary no longer fits the objects. Collect samples, train, and call [`Renewal::renewed`].
    Collect,
}

/// Decides when a dictionary is renewed, from the lengths of packed objects.
///
/// The ratio after a training is the baseline. A renewal is due after the ratio was less than two thirds of the baseline
/// for [`required`](RenewalOptions::required) objects in which it did not return to four fifths.
///
/// The required number doubles when a renewal did not improve the ratio by a tenth, or follows the previous one within
/// sixteen times that number. It is halved when neither is the case. Collections that alternate between two kinds of
/// contents therefore cost a bounded share of the CPU time.
#[derive(Debug)]
pub(crate) struct Renewal {
    options: RenewalOptions,
    phase: Phase,
    window: Window,
    /// The ratio before the last renewal.
    before: Option<Ratio>,
    required: u32,
    age_objects: u64,
}

#[derive(Debug)]
enum Phase {
    /// The ratio of the new dictionary is measured.
    Baseline,
    /// The ratio is compared with the baseline. `low` counts the objects since it fell.
    Watching { baseline: Ratio, low: u32 },
    /// Samples are collected.
    Collecting,
}

/// Sums of the lengths of the same objects.
#[derive(Debug, Clone, Copy, Default)]
struct Ratio {
    plain: u64,
    packed: u64,
}

impl Ratio {
    /// Returns whether this ratio is less than `numerator / denominator` of `other`.
    fn is_below(self, numerator: u64, denominator: u64, other: Self) -> bool {
        let product = |a: u64, b: u64, c: u64| u128::from(a) * u128::from(b) * u128::from(c);
        product(self.plain, other.packed, denominator) < product(other.plain, self.packed, numerator)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            plain: self.plain.saturating_add(other.plain),
            packed: self.packed.saturating_add(other.packed),
        }
    }
}

/// The ratio of the last objects: a full half of the window and the one that is being filled.
#[derive(Debug, Default)]
struct Window {
    previous: Option<Ratio>,
    current: Ratio,
    objects: u32,
}

impl Window {
    fn record(&mut self, ratio: Ratio, window: u32) {
        if self.objects >= (window / 2).max(1) {
            self.previous = Some(self.current);
            self.current = Ratio::default();
            self.objects = 0;
        }
        self.current = self.current.plus(ratio);
        self.objects += 1;
    }

    /// Returns the ratio when at least a half of the window was filled before the current one.
    fn ratio(&self) -> Option<Ratio> {
        self.previous.map(|previous| previous.plus(self.current))
    }

    fn is_full(&self, window: u32) -> bool {
        self.previous.is_some() && self.objects >= (window / 2).max(1)
    }
}

impl Renewal {
    /// Returns the state after the first training.
    pub(crate) fn new(options: RenewalOptions) -> Self {
        Self {
            options,
            phase: Phase::Baseline,
            window: Window::default(),
            before: None,
            required: options.required.max(1),
            age_objects: 0,
        }
    }

    /// Records an object that was packed with the current dictionary.
    ///
    /// [`Advice::Collect`] is returned once for each renewal.
    pub(crate) fn record(&mut self, plain: usize, packed: usize) -> Advice {
        self.age_objects = self.age_objects.saturating_add(1);
        let ratio = Ratio { plain: plain as u64, packed: packed as u64 };
        self.window.record(ratio, self.options.window);
        match &mut self.phase {
            Phase::Baseline if self.window.is_full(self.options.window) => {
                let baseline = self.window.ratio().unwrap_or_default();
                self.adjust_required(baseline);
                self.phase = Phase::Watching { baseline, low: 0 };
            }
            Phase::Baseline | Phase::Collecting => {}
            Phase::Watching { baseline, low } => {
                let recent = self.window.ratio().unwrap_or_default();
                if recent.is_below(2, 3, *baseline) {
                    *low = low.saturating_add(1);
                } else if !recent.is_below(4, 5, *baseline) {
                    *low = 0;
                }
                if *low >= self.required {
                    self.before = Some(recent);
                    self.phase = Phase::Collecting;
                    return Advice::Collect;
                }
            }
        }
        Advice::Keep
    }

    /// Raises or lowers the required number after a renewal, whose dictionary has the ratio `baseline`.
    fn adjust_required(&mut self, baseline: Ratio) {
        let Some(before) = self.before else { return };
        let is_soon = self.age_objects < u64::from(self.required) * 16;
        let has_helped = before.is_below(10, 11, baseline);
        self.required = if is_soon || !has_helped {
            self.required.saturating_mul(2).min(self.options.required_max.max(1))
        } else {
            (self.required / 2).max(self.options.required)
        };
        self.age_objects = 0;
    }

    /// Starts to measure the ratio of a new dictionary. Objects recorded from now on were packed with it.
    pub(crate) fn renewed(&mut self) {
        self.phase = Phase::Baseline;
        self.window = Window::default();
    }
}

#[cfg(test)]
mod tests;
