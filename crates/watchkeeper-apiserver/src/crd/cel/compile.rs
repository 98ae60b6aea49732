//! From text to a program, whatever the text.

use kube_cel::cel::{
    IdedExpr, Program,
    common::ast::{EntryExpr, Expr},
};

use super::Compiled;

/// Longest text of a rule, in bytes.
const LENGTH: usize = 16 * 1024;
/// How deep expressions may be nested: what runs them needs stack for each.
const DEPTH: usize = 100;
/// Reading a text that is nested deeper than that needs more stack than a task has.
const STACK_BYTES: usize = 64 << 20;

/// Compiles a rule.
///
/// # Errors
/// What is wrong with it, as a sentence.
pub(crate) fn compile(source: &str) -> Result<Compiled, String> {
    if source.len() > LENGTH {
        return Err(format!("compilation failed: the rule has more than {LENGTH} bytes"));
    }
    let source = source.to_owned();
    let reader = std::thread::Builder::new()
        .name("cel".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || read(&source))
        .map_err(|error| format!("compilation failed: no thread to compile on: {error}"))?;
    // A library that panics has refused the rule.
    reader.join().unwrap_or_else(|_| Err("compilation failed: the rule cannot be read".to_owned()))
}

fn read(source: &str) -> Result<Compiled, String> {
    let program = Program::compile(source).map_err(|errors| format!("compilation failed: {errors}"))?;
    let mut steps = Vec::new();
    let depth = count(program.expression(), 0, &mut steps);
    if depth > DEPTH {
        return Err(format!("compilation failed: expressions are nested deeper than {DEPTH}"));
    }
    Ok(Compiled { program, steps_by_depth: steps })
}

/// Counts steps by how many loops they are in; answers how deep expressions are nested.
fn count(expression: &IdedExpr, loops: usize, steps: &mut Vec<u64>) -> usize {
    if steps.len() <= loops {
        steps.resize(loops + 1, 0);
    }
    if let Some(steps) = steps.get_mut(loops) {
        *steps += 1;
    }
    let mut below = |expression: &IdedExpr, loops: usize| count(expression, loops, steps);
    let depth = match &expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => 0,
        Expr::Select(select) => below(&select.operand, loops),
        Expr::Call(call) => {
            let target = call.target.as_ref().map_or(0, |target| below(target, loops));
            call.args.iter().map(|argument| below(argument, loops)).max().unwrap_or(0).max(target)
        }
        Expr::List(list) => list.elements.iter().map(|element| below(element, loops)).max().unwrap_or(0),
        Expr::Map(map) => {
            map.entries.iter().map(|entry| entry_depth(&entry.expr, loops, &mut below)).max().unwrap_or(0)
        }
        Expr::Struct(of) => {
            of.entries.iter().map(|entry| entry_depth(&entry.expr, loops, &mut below)).max().unwrap_or(0)
        }
        Expr::Comprehension(of) => {
            let once = [&of.iter_range, &of.accu_init, &of.result].map(|part| below(part, loops));
            let each = [&of.loop_cond, &of.loop_step].map(|part| below(part, loops + 1));
            once.into_iter().chain(each).max().unwrap_or(0)
        }
    };
    depth + 1
}

fn entry_depth(entry: &EntryExpr, loops: usize, below: &mut dyn FnMut(&IdedExpr, usize) -> usize) -> usize {
    match entry {
        EntryExpr::StructField(field) => below(&field.value, loops),
        EntryExpr::MapEntry(entry) => below(&entry.key, loops).max(below(&entry.value, loops)),
    }
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn what_is_no_rule_is_refused_and_nothing_breaks() {
        let deep = format!("{}1{}", "(".repeat(3000), ")".repeat(3000));
        let long = format!("{}1", "1+".repeat(4000));
        let nots = format!("{}true", "!".repeat(5000));
        for source in ["self.bogus(", "", "1 +", "'", "self.é(", &deep, &long, &"x".repeat(20_000)] {
            assert!(compile(source).is_err(), "{}", source.get(..20).unwrap_or(source));
        }
        // Two of them undo each other, so these are not deep.
        assert!(compile(&nots).is_ok());
        assert!(compile("self.x.all(i, i > 0)").is_ok());
    }
}
