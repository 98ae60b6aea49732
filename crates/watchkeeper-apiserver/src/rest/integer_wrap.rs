//! Integer overflow in objects that are converted from a map instead of from text.
//!
//! Upstream converts the results of strategic merge patches and of applies member by member. That conversion truncates a
//! number that is too large to its lower bits. Parsing the same number from text fails.

use serde_json::Value;

use crate::schema::{Scalar, Shape, TypeRef};

/// Truncates every integer of `value` that does not fit its type to its lower bits.
pub(super) fn integers(value: &mut Value, ty: &TypeRef) {
    match (value, ty.shape()) {
        (Value::Object(members), Shape::Struct(_) | Shape::Map { .. }) => {
            for (name, member) in members {
                if let Some(of) = ty.member(name) {
                    integers(member, &of);
                }
            }
        }
        (Value::Array(items), Shape::List { .. }) => {
            if let Some(of) = ty.item() {
                for item in items {
                    integers(item, &of);
                }
            }
        }
        (value @ Value::Number(_), Shape::Scalar(Scalar::Int32)) => {
            if let Some(number) = whole(value).filter(|number| i32::try_from(*number).is_err()) {
                #[expect(clippy::cast_possible_truncation, reason = "the lower bits are kept")]
                let lower = number as i32;
                *value = lower.into();
            }
        }
        (value @ Value::Number(_), Shape::Scalar(Scalar::Int64)) if !value.is_i64() => {
            if let Some(number) = whole(value) {
                *value = number.into();
            }
        }
        _ => {}
    }
}

/// Returns a number without a fraction as 64 bits. A number that needs more has only the highest bit set.
fn whole(value: &Value) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    let whole = (number.abs() < 9_223_372_036_854_775_808.0).then_some(number as i64);
    Some(whole.unwrap_or(i64::MIN))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_wrap_to_the_width_of_their_field() {
        let ty = TypeRef::builtin_named("io.k8s.api.apps.v1.DeploymentSpec");
        for (given, expected) in [
            (json!(5), json!(5)),
            (json!(99_999_999_999_i64), json!(1_215_752_191)),
            (json!(3_000_000_000_i64), json!(-1_294_967_296)),
            (json!(7.0), json!(7.0)),
            (json!(4_294_967_303.0), json!(7)),
            (json!(1e30), json!(0)),
            (json!(1.5), json!(1.5)),
            (json!("x"), json!("x")),
        ] {
            let mut spec = json!({"replicas": given});
            integers(&mut spec, &ty);
            assert_eq!(spec["replicas"], expected, "{given}");
        }
    }
}
