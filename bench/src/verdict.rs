//! The verdict on a row: the ratio as its target defines it, and its report line.

use std::fmt;

use serde::Serialize;

use crate::suite::Target;

/// The result of a row compared with its target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "judgement")]
pub(crate) enum Verdict {
    /// The target is met.
    Ok { value: f64 },
    /// The target is missed.
    Short { value: f64 },
    /// The peer was not available.
    NoPeer,
}

/// Judges the medians of the compared figure. Returns the reason if a figure cannot be compared.
pub(crate) fn judge(target: Target, ours: f64, peer: Option<f64>) -> Result<Verdict, String> {
    let comparable = |figure: f64, whose: &str| {
        if figure.is_finite() && figure > 0.0 {
            Ok(figure)
        } else {
            Err(format!("{whose} figure is {figure}, too small to compare; run more operations"))
        }
    };
    let (value, is_met) = match (target, peer) {
        (Target::Absolute { bound, .. }, _) => (ours, ours <= bound),
        (_, None) => return Ok(Verdict::NoPeer),
        (Target::TimesLess(bound), Some(peer)) => {
            let ratio = comparable(peer, "the peer's")? / comparable(ours, "our")?;
            (ratio, ratio >= bound)
        }
        (Target::ShareOfPeer(bound), Some(peer)) => {
            let ratio = comparable(ours, "our")? / comparable(peer, "the peer's")?;
            (ratio, ratio <= bound)
        }
    };
    Ok(if is_met { Verdict::Ok { value } } else { Verdict::Short { value } })
}

impl Target {
    /// Formats a value in the unit of this target, rounded to two places away from the good side of the
    /// bound, so that a value that misses the target never appears to meet it.
    fn show(self, value: f64) -> String {
        match self {
            Self::TimesLess(_) => format!("{:.2}x", (value * 100.0).floor() / 100.0),
            Self::ShareOfPeer(_) => format!("{:.2}x", (value * 100.0).ceil() / 100.0),
            Self::Absolute { unit, .. } => format!("{:.2}{unit}", (value * 100.0).ceil() / 100.0),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimesLess(bound) => write!(f, ">={bound:.2}x"),
            Self::ShareOfPeer(bound) => write!(f, "<={bound:.2}x"),
            Self::Absolute { bound, unit } => write!(f, "<={bound:.2}{unit}"),
        }
    }
}

/// Returns the report line of a row, for people and for scripts.
pub(crate) fn line(suite: &str, row: &str, target: Target, verdict: Verdict) -> String {
    let (value, word) = match verdict {
        Verdict::Ok { value } => (target.show(value), "ok"),
        Verdict::Short { value } => (target.show(value), "short"),
        Verdict::NoPeer => ("n/a".to_owned(), "no-peer"),
    };
    format!("ratio {suite}/{row} {value} target {target} {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENESS: Target = Target::Absolute { bound: 2.0, unit: "ms" };

    #[test]
    fn a_row_is_one_line_that_names_ratio_target_and_judgement() {
        let cases = [
            (Target::TimesLess(3.0), 50.0, Some(215.6), "4.31x target >=3.00x ok"),
            (Target::TimesLess(3.0), 50.0, Some(150.0), "3.00x target >=3.00x ok"),
            (Target::TimesLess(3.0), 50.0, Some(149.9), "2.99x target >=3.00x short"),
            (Target::TimesLess(3.0), 50.0, None, "n/a target >=3.00x no-peer"),
            (Target::ShareOfPeer(0.5), 33.0, Some(75.0), "0.44x target <=0.50x ok"),
            (Target::ShareOfPeer(0.5), 50.1, Some(100.0), "0.51x target <=0.50x short"),
            (Target::ShareOfPeer(0.5), 33.0, None, "n/a target <=0.50x no-peer"),
            (LATENESS, 1.52, Some(217.7), "1.52ms target <=2.00ms ok"),
            (LATENESS, 2.0001, Some(217.7), "2.01ms target <=2.00ms short"),
            (LATENESS, 0.0, None, "0.00ms target <=2.00ms ok"),
        ];
        for (target, ours, peer, want) in cases {
            let verdict = judge(target, ours, peer).unwrap();
            assert_eq!(line("queue", "row", target, verdict), format!("ratio queue/row {want}"));
        }
    }

    #[test]
    fn a_figure_of_nothing_is_refused_instead_of_winning() {
        let cases = [
            (Target::TimesLess(3.0), 0.0, Some(100.0)),
            (Target::TimesLess(3.0), 100.0, Some(0.0)),
            (Target::ShareOfPeer(0.5), 0.0, Some(100.0)),
            (Target::ShareOfPeer(0.5), f64::NAN, Some(100.0)),
        ];
        for (target, ours, peer) in cases {
            assert!(judge(target, ours, peer).is_err(), "{target} with {ours} and {peer:?}");
        }
    }
}
