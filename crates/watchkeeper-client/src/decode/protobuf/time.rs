//! Times as RFC 3339 text.

use super::{
    fault::{Cause, Fault},
    wire::Fields,
};

/// The seconds of the first and the last moment that RFC 3339 can express: the years 0 to 9999.
const SECONDS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

const SECONDS_OF_DAY: i64 = 86_400;

/// The number of bytes of a time with microseconds.
const LONGEST: usize = 27;

/// A time as text, without an allocation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rfc3339 {
    text: [u8; LONGEST],
    length: usize,
}

impl Rfc3339 {
    /// Reads a `Timestamp` message.
    pub(super) fn read(message: &[u8], with_micros: bool) -> Result<Self, Fault> {
        let (mut seconds, mut nanos) = (0, 0);
        let mut fields = Fields::new(message);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => seconds = value.signed()?,
                2 => nanos = value.signed32()?,
                _ => {}
            }
        }
        Self::of(seconds, nanos, with_micros)
            .ok_or_else(|| Fault::at(Cause::Wire("a time is not in the years 0 to 9999"), message))
    }

    /// Formats a time. `None` if it is out of the range.
    fn of(seconds: i64, nanos: i32, with_micros: bool) -> Option<Self> {
        let seconds = seconds.checked_add(i64::from(nanos.div_euclid(1_000_000_000)))?;
        if !SECONDS.contains(&seconds) {
            return None;
        }
        let (year, month, day) = date(seconds.div_euclid(SECONDS_OF_DAY));
        let of_day = seconds.rem_euclid(SECONDS_OF_DAY);
        let mut time = Self { text: [0; LONGEST], length: 0 };
        time.digits(year, 4);
        for (separator, value) in
            [(b'-', month), (b'-', day), (b'T', of_day / 3600), (b':', of_day / 60 % 60), (b':', of_day % 60)]
        {
            time.push(separator);
            time.digits(value, 2);
        }
        if with_micros {
            time.push(b'.');
            time.digits((nanos.rem_euclid(1_000_000_000) / 1000).into(), 6);
        }
        time.push(b'Z');
        Some(time)
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.text.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn digits(&mut self, value: i64, count: u32) {
        for power in (0..count).rev() {
            let digit = value / 10_i64.pow(power) % 10;
            self.push(b'0' + u8::try_from(digit).unwrap_or_default());
        }
    }

    /// Returns the text.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.text[..self.length]).unwrap_or_default()
    }
}

/// Returns year, month and day of a day, counted from 1970-01-01 (Howard Hinnant's algorithm `civil_from_days`).
fn date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn times_are_written_as_jiff_writes_them(seconds in SECONDS, nanos in 0..1_000_000_000_i32) {
            // Nanoseconds of jiff have the sign of the seconds.
            let time = Timestamp::from_nanosecond(i128::from(seconds) * 1_000_000_000 + i128::from(nanos));
            prop_assume!(time.is_ok());
            let time = time.unwrap();
            let of = |with_micros| Rfc3339::of(seconds, nanos, with_micros).unwrap().text().to_owned();
            let at = time.to_zoned(jiff::tz::TimeZone::UTC);
            let date = at.strftime("%Y-%m-%dT%H:%M:%S").to_string();
            prop_assert_eq!(of(false), format!("{date}Z"));
            prop_assert_eq!(of(true), format!("{date}.{:06}Z", nanos / 1000));
        }
    }

    #[test]
    fn times_outside_of_the_calendar_are_rejected() {
        for seconds in [*SECONDS.start() - 1, *SECONDS.end() + 1, i64::MIN, i64::MAX] {
            assert!(Rfc3339::of(seconds, 0, true).is_none(), "{seconds}");
        }
        assert_eq!(Rfc3339::of(*SECONDS.start(), 0, false).unwrap().text(), "0000-01-01T00:00:00Z");
        assert_eq!(Rfc3339::of(*SECONDS.end(), 0, false).unwrap().text(), "9999-12-31T23:59:59Z");
        assert_eq!(Rfc3339::of(0, -1, true).unwrap().text(), "1969-12-31T23:59:59.999999Z");
        assert!(Rfc3339::of(i64::MIN, i32::MIN, true).is_none());
    }
}
