//! Human-readable ages.

use jiff::Timestamp;

/// Returns the age of a time of an object at `now`; `<unknown>` without a time.
pub(super) fn since(time: Option<&str>, now: Timestamp) -> String {
    match time.filter(|time| !time.is_empty()) {
        None => "<unknown>".to_owned(),
        Some(time) => match time.parse::<Timestamp>() {
            Ok(time) => human(now.duration_since(time).as_secs()),
            Err(_) => "<invalid>".to_owned(),
        },
    }
}

/// Formats seconds in the one or two largest units, as kubectl does.
pub(super) fn human(seconds: i64) -> String {
    // Clocks may differ by a second.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let with_rest = |whole: i64, unit: char, rest: i64, small: char| {
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{small}") }
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => with_rest(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => with_rest(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 24 * 8 => with_rest(days, 'd', hours % 24, 'h'),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => with_rest(days / 365, 'y', days % 365, 'd'),
        () => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_durations_are_shown_in_coarser_units() {
        const HOUR: i64 = 3600;
        const DAY: i64 = 24 * HOUR;
        let table = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (8 * HOUR - 1, "7h59m"),
            (47 * HOUR, "47h"),
            (48 * HOUR, "2d"),
            (8 * DAY - 1, "7d23h"),
            (729 * DAY, "729d"),
            (730 * DAY, "2y"),
            (731 * DAY, "2y1d"),
            (9 * 365 * DAY, "9y"),
        ];
        for (seconds, text) in table {
            assert_eq!(human(seconds), text);
        }
    }
}
