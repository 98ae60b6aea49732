//! The cost of a call at run time, from the sizes of its arguments.

use super::{
    super::{
        ast::op,
        estimate::size::{REGEX_FACTOR, STRING_FACTOR, scale},
        meter::{EvalError, Meter},
        value::Value,
    },
    Arguments, walk,
};

/// The length Kubernetes assumes for the regular expression of a named format.
const FORMAT_REGEX: u64 = 30;

impl Arguments<'_, '_> {
    /// Returns the cost of the call.
    ///
    /// # Errors
    /// Returns [`EvalError::Exhausted`] if determining the sizes alone takes more work than is left.
    pub(in super::super) fn cost(&self, meter: &mut Meter) -> Result<u64, EvalError> {
        for value in &self.values {
            if let Value::String(text) = value {
                meter.read(text)?;
            }
        }
        let size = |index: usize| self.values.get(index).map_or(1, Value::size);
        let read = |size: u64| scale(size, STRING_FACTOR);
        let compared = |size: u64| size.saturating_mul(size).saturating_mul(2);
        Ok(match self.function {
            op::EQUALS | op::NOT_EQUALS => match self.values.first() {
                Some(Value::Library(_)) => 1,
                _ => read(size(0).min(size(1))),
            },
            op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS => match self.values.first() {
                Some(Value::String(_) | Value::Bytes(_)) => read(size(0).min(size(1))),
                _ => 1,
            },
            op::ADD => match self.values.first() {
                Some(Value::String(_) | Value::Bytes(_)) => read(size(0).saturating_add(size(1))),
                _ => 1,
            },
            op::IN => match self.values.get(1) {
                Some(Value::List(list)) => list.len() as u64,
                _ => 1,
            },
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => self.traversal(meter)?,
            "bytes" | "strings.quote" | "format" | "ip" | "url" | "lowerAscii" | "upperAscii"
            | "substring" | "trim" | "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver"
            | "isSemver" => read(size(0)),
            "replace" | "split" | "ip.isCanonical" => scale(size(0), 2.0 * STRING_FACTOR),
            "join" => scale(self.joined(meter)?, 2.0 * STRING_FACTOR),
            "find" | "findAll" | "matches" => {
                scale(size(0).saturating_add(1), STRING_FACTOR).saturating_mul(scale(size(1), REGEX_FACTOR))
            }
            "validate" => scale(size(1).saturating_add(1), STRING_FACTOR)
                .saturating_mul(scale(FORMAT_REGEX, REGEX_FACTOR)),
            "containsIP" | "containsCIDR" => {
                // The bytes of the address family, which the other address has too.
                let is_long = matches!(self.values.get(1), Some(Value::String(text)) if text.contains(':'));
                let address = if is_long { 16 } else { 4 };
                let mut cost = read(2 * address);
                if self.function == "containsCIDR" {
                    cost += read(address) + 1;
                }
                if matches!(self.values.get(1), Some(Value::String(_))) {
                    cost += read(size(1));
                }
                cost
            }
            "startsWith" | "endsWith" => read(size(1)),
            "contains" => read(size(0)).saturating_mul(read(size(1))),
            "string" => match self.values.first() {
                Some(Value::Bytes(bytes)) => read(bytes.len() as u64),
                _ => 1,
            },
            "sets.contains" | "sets.intersects" => size(0).saturating_mul(size(1)).saturating_add(1),
            "sets.equivalent" => size(0).saturating_mul(size(1)).saturating_mul(2).saturating_add(1),
            "slice" => match self.values.as_slice() {
                [_, Value::Int(start), Value::Int(end)] => {
                    u64::try_from(end.saturating_sub(*start)).unwrap_or(0).min(size(0)).saturating_add(11)
                }
                _ => 11,
            },
            "lists.range" => match self.values.as_slice() {
                // A longer range is an error, which costs little.
                [Value::Int(count @ 0..=10_000_000)] => u64::try_from(*count).unwrap_or(0).saturating_add(11),
                _ => 11,
            },
            "reverse" => size(0).saturating_add(11),
            "flatten" => {
                let depth = match self.values.get(1) {
                    Some(Value::Int(depth)) => u64::try_from(*depth).unwrap_or(1),
                    _ => 1,
                };
                size(0).saturating_mul(depth).saturating_add(11)
            }
            "distinct" | "sort" => compared(size(0)).saturating_add(11),
            op::SORT_BY_KEYS => compared(size(1)).saturating_add(11),
            _ => 1,
        })
    }

    /// Returns the cost of reading the first argument and everything in it.
    fn traversal(&self, meter: &mut Meter) -> Result<u64, EvalError> {
        let mut cost: u64 = 0;
        if let Some(value) = self.values.first() {
            walk(value, &mut |part| {
                let length = match part {
                    Value::String(text) => Some(text.len()),
                    Value::Bytes(bytes) => Some(bytes.len()),
                    _ => None,
                };
                // Rounded down, unlike the costs of calls.
                cost = cost.saturating_add(length.map_or(1, |length| length as u64 / 10));
                meter.work(2)
            })?;
        }
        Ok(cost)
    }

    /// Returns the number of characters of a joined list.
    fn joined(&self, meter: &mut Meter) -> Result<u64, EvalError> {
        let Some(Value::List(list)) = self.values.first() else { return Ok(1) };
        let separator = self.values.get(1).map_or(0, Value::size);
        let mut size = separator.saturating_mul((list.len() as u64).saturating_sub(1));
        for item in list.iter() {
            let item = item?;
            if let Value::String(text) = &item {
                meter.read(text)?;
            }
            size = size.saturating_add(item.size());
        }
        Ok(size)
    }
}
