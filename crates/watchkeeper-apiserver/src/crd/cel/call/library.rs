//! Functions that the `kube-cel` library implements: times, URLs, quantities, addresses, versions and named formats.
//!
//! Each takes time linear in the length of its text arguments, which is charged before the call, and returns a value of
//! bounded size. Lists and maps that expressions create are not passed to the library.

use std::{cell::RefCell, sync::Arc};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, IdedExpr, Value as Library,
        common::ast::{CallExpr, Expr},
        objects::{Key as LibraryKey, OptionalValue},
    },
};

use super::{
    super::{
        eval::EvalResult,
        meter::{EvalError, Meter, no_overload},
        value::{Key, Value},
    },
    Arguments, Entries, owned, owned_map,
};

thread_local! {
    /// The library context. Cached because registering the functions takes longer than most calls.
    static FUNCTIONS: RefCell<Context<'static>> = RefCell::new(Context::default().with_all());
}

/// The names of the arguments in the scope of a call.
const NAMES: [&str; 4] = ["a0", "a1", "a2", "a3"];

/// Calls a library function.
pub(super) fn call<'a>(args: &Arguments<'_, 'a>, meter: &mut Meter) -> EvalResult<'a> {
    let result = invoke(args.function, args.is_member, &args.values, meter);
    // The library drops the optional around these results.
    match (args.function, result) {
        ("format.named", Err(EvalError::Error(_))) => Ok(Value::Optional(None)),
        ("format.named" | "validate", Ok(value)) if !matches!(value, Value::Optional(_)) => {
            Ok(Value::some(value))
        }
        (_, result) => result,
    }
}

/// Applies an operator to library values.
pub(super) fn operator<'a>(
    name: &str,
    left: &Value<'a>,
    right: &Value<'a>,
    meter: &mut Meter,
) -> EvalResult<'a> {
    invoke(name, false, &[left.clone(), right.clone()], meter)
}

/// Calls a library function by name.
pub(super) fn invoke<'a>(
    name: &str,
    is_member: bool,
    values: &[Value<'a>],
    meter: &mut Meter,
) -> EvalResult<'a> {
    meter.work(2_000)?;
    let mut given = Vec::with_capacity(values.len());
    for value in values {
        given.push(match value {
            Value::Bool(value) => Library::Bool(*value),
            Value::Int(value) => Library::Int(*value),
            Value::String(text) => {
                meter.allocate(text.len().saturating_mul(8))?;
                Library::String(Arc::new(text.to_string()))
            }
            Value::Library(value) => value.clone(),
            _ => return no_overload(),
        });
    }
    if given.len() > NAMES.len() {
        return no_overload();
    }
    let ident = |name: &str| IdedExpr { id: 0, expr: Expr::Ident(name.to_owned()) };
    let mut names = NAMES.iter().take(given.len()).map(|name| ident(name));
    let target = if is_member { names.next().map(Box::new) } else { None };
    let call = CallExpr { func_name: name.to_owned(), target, args: names.collect() };
    let expr = IdedExpr { id: 0, expr: Expr::Call(call) };
    let result = FUNCTIONS.with_borrow(|functions| {
        let run = || {
            let mut scope = functions.new_inner_scope();
            for (name, value) in NAMES.iter().zip(given) {
                scope.add_variable_from_value(*name, value);
            }
            scope.resolve(&expr)
        };
        // A panic of the library becomes an error of the expression.
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
    });
    match result {
        Ok(Ok(value)) => own(value, meter),
        Ok(Err(error)) => EvalError::error(error.to_string()),
        Err(_) => EvalError::error("internal error"),
    }
}

/// Converts a result of the library.
fn own<'a>(value: Library, meter: &mut Meter) -> EvalResult<'a> {
    Ok(match value {
        Library::Null => Value::Null,
        Library::Bool(value) => Value::Bool(value),
        Library::Int(value) => Value::Int(value),
        Library::UInt(value) => Value::Uint(value),
        Library::Float(value) => Value::Double(value),
        Library::String(text) => {
            meter.allocate(text.len())?;
            Value::text(text.to_string())
        }
        Library::Bytes(bytes) => {
            meter.allocate(bytes.len())?;
            Value::Bytes(bytes.as_slice().into())
        }
        Library::List(items) => {
            meter.allocate_values(items.len())?;
            let mut owned_items = Vec::with_capacity(items.len());
            for item in items.iter() {
                owned_items.push(own(item.clone(), meter)?);
            }
            Value::List(owned(owned_items))
        }
        Library::Map(map) => {
            let mut entries = Entries::new();
            meter.allocate_values(map.map.len() * 2)?;
            for (key, value) in map.map.iter() {
                let key = match key {
                    LibraryKey::Bool(key) => Key::Bool(*key),
                    LibraryKey::Int(key) => Key::Number(i128::from(*key)),
                    LibraryKey::Uint(key) => Key::Number(i128::from(*key)),
                    LibraryKey::String(key) => Key::String(key.to_string().into()),
                };
                entries.insert(key, own(value.clone(), meter)?);
            }
            owned_map(entries)
        }
        Library::Opaque(opaque) => {
            let any: &dyn std::any::Any = &*opaque;
            match any.downcast_ref::<OptionalValue>() {
                Some(optional) => match optional.value() {
                    Some(value) => Value::some(own(value.clone(), meter)?),
                    None => Value::Optional(None),
                },
                None => Value::Library(Library::Opaque(opaque)),
            }
        }
        value @ (Library::Duration(_) | Library::Timestamp(_)) => Value::Library(value),
        Library::Function(..) => return no_overload(),
    })
}
