//! Device capacities that several claims share.

use std::collections::BTreeSet;

use crate::strategy::{
    cursor::{Cursor, Errors},
    quantity::Quantity,
    table,
};

/// Checks the request policy of a capacity.
pub(super) fn check_policy(capacity: &Cursor<'_>, is_shared: bool, errors: &mut Errors) {
    let policy = capacity.at("requestPolicy");
    if !policy.is_set() {
        return;
    }
    if !is_shared {
        errors.push(policy.forbidden("allowMultipleAllocations must be true"));
        return;
    }
    let (values, range, default) = (policy.at("validValues"), policy.at("validRange"), policy.at("default"));
    let Some(most) = Quantity::from_value(capacity.at("value").value) else { return };
    match (values.is_empty(), range.is_set()) {
        (false, true) => errors.push(policy.forbidden(
            "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time",
        )),
        (false, false) => match Quantity::from_value(default.value) {
            None => errors.push(default.missing("required when validValues is defined")),
            Some(default) => check_values(&values, default, most, errors),
        },
        (true, true) => match Quantity::from_value(default.value) {
            None => errors.push(default.missing("required when validRange is defined")),
            Some(default) => check_range(&range, default, most, errors),
        },
        (true, false) => {}
    }
}

fn check_values(values: &Cursor<'_>, default: Quantity, most: Quantity, errors: &mut Errors) {
    let mut before: Option<Quantity> = None;
    for value in values.items() {
        let amount = Quantity::from_value(value.value);
        if let (Some(before), Some(amount)) = (before, amount)
            && before > amount
        {
            errors.push(value.invalid("values must be sorted in ascending order"));
        }
        before = amount;
    }
    if values.items().count() > 10 {
        errors.push(table::too_many(values, 10));
        return;
    }
    let mut seen = BTreeSet::new();
    let mut has_default = false;
    for value in values.items() {
        let Some(amount) = Quantity::from_value(value.value) else { continue };
        if amount > most {
            errors.push(value.invalid(format!("option is larger than capacity value: {}", most.canonical())));
        }
        has_default |= amount == default;
        if !seen.insert(amount.canonical()) {
            errors.push(value.duplicate());
        }
    }
    if !has_default {
        errors.push(values.invalid("default value is not valid according to the requestPolicy"));
    }
}

fn check_range(range: &Cursor<'_>, default: Quantity, most: Quantity, errors: &mut Errors) {
    let at = |member: &str| Quantity::from_value(range.at(member).value);
    let Some(low) = at("min") else {
        errors.push(range.at("min").missing("required when validRange is defined"));
        return;
    };
    let report = |member: &str, is_broken: bool, detail: &str, bound: Quantity, errors: &mut Errors| {
        if is_broken {
            errors.push(range.at(member).invalid(format!("{detail}: {}", bound.canonical())));
        }
    };
    report("min", low > most, "min is larger than capacity value", most, errors);
    report("default", default < low, "default is less than min", low, errors);
    if let Some(high) = at("max") {
        report("max", low > high, "min is larger than max", high, errors);
        report("max", high > most, "max is larger than capacity value", most, errors);
        report("default", default > high, "default is more than max", high, errors);
    }
    if let Some(step) = at("step") {
        if step.is_negative() || step.is_zero() {
            errors.push(range.at("step").invalid("must be greater than zero"));
            return;
        }
        for value in [Some(default), at("max")].into_iter().flatten() {
            let steps = (value.to_f64() - low.to_f64()) / step.to_f64();
            if (steps - steps.round()).abs() > 1e-9 {
                errors.push(range.at("step").invalid(format!(
                    "value is not a multiple of a given step ({}) from ({})",
                    step.canonical(),
                    low.canonical()
                )));
            }
        }
    }
}
