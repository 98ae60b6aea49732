//! Statistics of repeated runs: medians with their range, which is all that a few rounds support.

use serde::Serialize;

/// The median of some values and their range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Returns the spread of `values`; `None` if there are no values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, min, max })
    }

    /// Returns the spread of optional values; `None` if any is missing, so that sides stay comparable.
    pub(crate) fn of_all(values: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        Self::of(values.into_iter().collect::<Option<Vec<f64>>>()?)
    }
}

/// Returns the value that `percent` of `sorted` do not exceed (nearest rank).
pub(crate) fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_median_between_the_extremes() {
        let cases: [(&[f64], [f64; 3]); 4] = [
            (&[7.0], [7.0, 7.0, 7.0]),
            (&[3.0, 1.0], [2.0, 1.0, 3.0]),
            (&[9.0, 1.0, 5.0], [5.0, 1.0, 9.0]),
            (&[4.0, 1.0, 100.0, 2.0], [3.0, 1.0, 100.0]),
        ];
        for (values, [median, min, max]) in cases {
            let want = Some(Spread { median, min, max });
            assert_eq!(Spread::of(values.iter().copied()), want, "{values:?}");
        }
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_figure_missing_from_one_run_is_missing_from_the_spread() {
        assert_eq!(Spread::of_all([Some(1.0), None]), None);
        assert_eq!(Spread::of_all([Some(1.0), Some(3.0)]).map(|spread| spread.median), Some(2.0));
    }

    #[test]
    fn a_percentile_is_a_value_that_occurred() {
        let hundred: Vec<u64> = (1..=100).collect();
        let cases: [(&[u64], usize, Option<u64>); 6] = [
            (&[], 99, None),
            (&[5], 99, Some(5)),
            (&[1, 2], 50, Some(1)),
            (&[1, 2, 3], 50, Some(2)),
            (&hundred, 99, Some(99)),
            (&hundred, 100, Some(100)),
        ];
        for (sorted, percent, want) in cases {
            assert_eq!(percentile(sorted, percent), want, "p{percent} of {} values", sorted.len());
        }
    }
}
