//! The schedule and the time zone of a `CronJob`.

use crate::strategy::cursor::{Cursor, Errors};

/// The names of the IANA time zone database, sorted, one per line.
const TIME_ZONES: &str = include_str!("time_zones.txt");

/// Checks a time zone by its name.
pub(super) fn time_zone(zone: &Cursor<'_>, errors: &mut Errors) {
    let name = zone.text();
    if !zone.is_set() {
        return;
    }
    if name.is_empty() {
        errors.push(zone.invalid("timeZone must be nil or non-empty string"));
        return;
    }
    let is_part = |part: &str| {
        !matches!(part, "." | ".." | "")
            && part.len() <= 14
            && !part.starts_with('-')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte))
    };
    if !name.split('/').all(is_part) {
        errors.push(zone.invalid(format!("unknown time zone {name}")));
        return;
    }
    if name.eq_ignore_ascii_case("local") {
        errors.push(
            zone.invalid(
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
            ),
        );
    }
    if name != "Local" && !TIME_ZONES.lines().any(|known| known == name) {
        errors.push(zone.invalid(format!("unknown time zone {name}")));
    }
}

/// Checks a schedule. A schedule may contain a time zone only if the stored one already does.
pub(super) fn schedule(spec: &Cursor<'_>, old: Option<&Cursor<'_>>, errors: &mut Errors) {
    let schedule = spec.at("schedule");
    if !schedule.required(errors) {
        return;
    }
    if let Err(detail) = check_schedule(schedule.text()) {
        errors.push(schedule.invalid(detail));
    }
    if !schedule.text().contains("TZ") {
        return;
    }
    let is_old = old.is_some_and(|old| old.at("schedule").text().contains("TZ"));
    if !is_old {
        errors.push(schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
    } else if spec.at("timeZone").is_set() {
        errors.push(schedule.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
    }
}

/// Checks a schedule: five fields of numbers, names, ranges and steps, or a descriptor such as `@daily`.
fn check_schedule(text: &str) -> Result<(), String> {
    const FIELDS: [(&str, u32, u32); 5] = [
        ("minute", 0, 59),
        ("hour", 0, 23),
        ("day of month", 1, 31),
        ("month", 1, 12),
        ("day of week", 0, 6),
    ];
    const WORDS: [&str; 7] =
        ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    let text = match text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
        Some(rest) => rest.split_once(' ').map(|(_, rest)| rest).unwrap_or_default(),
        None => text,
    };
    if WORDS.contains(&text) {
        return Ok(());
    }
    if let Some(every) = text.strip_prefix("@every ") {
        let is_duration = every.bytes().any(|byte| byte.is_ascii_digit())
            && every.bytes().all(|byte| byte.is_ascii_digit() || b".hmsun".contains(&byte));
        return if is_duration { Ok(()) } else { Err(format!("failed to parse duration {text}")) };
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: {fields:?}", fields.len()));
    }
    for (field, (name, least, most)) in fields.iter().zip(FIELDS) {
        for part in field.split(',') {
            check_range(part, name, least, most)?;
        }
    }
    Ok(())
}

fn check_range(part: &str, name: &str, least: u32, most: u32) -> Result<(), String> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    let number = |text: &str| -> Result<u32, String> {
        let lower = text.to_lowercase();
        let named = match name {
            "month" => MONTHS.iter().position(|month| *month == lower).map(|index| index + 1),
            "day of week" => DAYS.iter().position(|day| *day == lower),
            _ => None,
        };
        let number = match named {
            Some(index) => u32::try_from(index).map_err(|error| error.to_string())?,
            None => text.parse().map_err(|_| format!("failed to parse int from {text}"))?,
        };
        if number < least {
            return Err(format!("beginning of range ({number}) below minimum ({least}): {part}"));
        }
        if number > most {
            return Err(format!("end of range ({number}) above maximum ({most}): {part}"));
        }
        Ok(number)
    };
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (part, None),
    };
    if let Some(step) = step
        && !step.parse::<u32>().is_ok_and(|step| step > 0)
    {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    match range.split_once('-') {
        _ if range == "*" || range == "?" => Ok(()),
        Some((from, to)) if number(from)? > number(to)? => {
            Err(format!("beginning of range ({from}) beyond end of range ({to}): {part}"))
        }
        Some(_) => Ok(()),
        None => number(range).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::check_schedule;

    #[test]
    fn schedules_are_parsed_like_cron_expressions() {
        for good in [
            "* * * * *",
            "*/5 0-6 1,15 jan-mar MON",
            "@hourly",
            "@every 1h30m",
            "0 0 ? * 6",
            "TZ=UTC 0 0 * * *",
        ] {
            assert_eq!(check_schedule(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "* * * *",
            "60 * * * *",
            "* * 0 * *",
            "x * * * *",
            "5-1 * * * *",
            "*/0 * * * *",
            "@never",
            "@every x",
        ] {
            assert!(check_schedule(bad).is_err(), "{bad}");
        }
    }
}
