//! The estimated costs of function calls.

use super::{
    super::types::CelType,
    CallCost, Estimator, Node, ONE,
    size::{CostRange, REGEX_FACTOR, STRING_FACTOR},
    union,
};

/// The length that Kubernetes assumes for the regular expression of a named format.
const FORMAT_REGEX: f64 = 128.0;

fn sum(costs: &[CostRange]) -> CostRange {
    costs.iter().fold(CostRange::ZERO, |sum, cost| sum.add(*cost))
}

fn known(node: &Node<'_>) -> CostRange {
    node.size.unwrap_or(CostRange::UNKNOWN)
}

impl Estimator<'_> {
    pub(super) fn function(
        &mut self,
        id: usize,
        function: &str,
        overload: &str,
        target: Option<&Node<'_>>,
        args: &[Node<'_>],
        costs: &[CostRange],
    ) -> CallCost {
        let found = match self.list_library(overload, target, args) {
            Some(found) => Some(found),
            None => self.kubernetes(function, overload, target, args),
        };
        if let Some(found) = found {
            return CallCost { cost: found.cost.add(sum(costs)), size: found.size };
        }
        self.standard(id, overload, target, args, costs)
    }

    fn size_of(&self, node: &Node<'_>) -> CostRange {
        node.size.or_else(|| self.size_at(&node.path)).unwrap_or(CostRange::UNKNOWN)
    }

    /// Returns the size of the items of a list, and whether they are strings or bytes.
    fn item_size(&self, list: &Node<'_>) -> Option<(CostRange, bool)> {
        let (CelType::List(item) | CelType::Map(item, _) | CelType::Optional(item)) = list.ty else {
            return None;
        };
        let path = if list.path.is_empty() { list.path.clone() } else { list.path.append(&self.items) };
        let size = self.size_at(&path).unwrap_or(CostRange::UNKNOWN);
        Some((size, matches!(**item, CelType::String | CelType::Bytes)))
    }

    /// Returns the costs of cel-go's extended lists and sets.
    fn list_library(&self, overload: &str, target: Option<&Node<'_>>, args: &[Node<'_>]) -> Option<CallCost> {
        let number = |node: &Node<'_>, default: u64| {
            node.number.and_then(|number| u64::try_from(number).ok()).unwrap_or(default)
        };
        let allocating = |factor: f64, size: CostRange| {
            CallCost::sized(size.scale(factor).add(CostRange::fixed(1 + 10)), size)
        };
        let sorted = |node: &Node<'_>| {
            let factor = if overload.starts_with("list_string_") || overload.starts_with("list_bytes_") {
                2.0 + STRING_FACTOR
            } else {
                2.0
            };
            let size = self.size_of(node);
            allocating(factor, size.multiply(size))
        };
        Some(match (overload, target, args) {
            (
                "list_sets_contains_list" | "list_sets_intersects_list" | "list_sets_equivalent_list",
                None,
                [a, b],
            ) => {
                let factor = if overload == "list_sets_equivalent_list" { 2.0 } else { 1.0 };
                CallCost::new(self.size_of(a).multiply(self.size_of(b)).scale(factor).add(ONE))
            }
            ("list_slice", Some(list), [start, end]) => {
                let (start, end) = (number(start, 0), number(end, self.size_of(list).max));
                allocating(1.0, CostRange::fixed(end.wrapping_sub(start)))
            }
            ("lists_range", None, [count]) => allocating(1.0, CostRange::fixed(number(count, u64::MAX))),
            ("list_reverse" | "list_flatten", Some(list), []) => allocating(1.0, self.size_of(list)),
            ("list_flatten_int", Some(list), [depth]) => {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "the arithmetic of the reference implementation"
                )]
                let depth = number(depth, u64::MAX) as f64;
                allocating(depth, self.size_of(list))
            }
            ("list_distinct", Some(list), []) => {
                let size = self.size_of(list);
                allocating(2.0, size.multiply(size))
            }
            (_, Some(list), []) if overload.ends_with("_sort") => sorted(list),
            (_, Some(_), [keys]) if overload.ends_with("_sortByAssociatedKeys") => sorted(keys),
            _ => return None,
        })
    }

    /// Returns the costs of the functions of the Kubernetes libraries whose costs depend on sizes.
    fn kubernetes(
        &self,
        function: &str,
        overload: &str,
        target: Option<&Node<'_>>,
        args: &[Node<'_>],
    ) -> Option<CallCost> {
        let read = |node: &Node<'_>| self.size_of(node).scale(STRING_FACTOR);
        Some(match (function, target, args) {
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(list), _) => {
                let size = self.size_of(list);
                CallCost::new(match self.item_size(list) {
                    Some((item, is_text)) => {
                        let each = if is_text { ONE.add(item.scale(STRING_FACTOR)) } else { ONE };
                        size.multiply(each)
                    }
                    None => size.scale(STRING_FACTOR),
                })
            }
            ("url", None, [text]) => CallCost::sized(read(text), self.size_of(text)),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
                CallCost::sized(read(text), self.size_of(text))
            }
            ("replace", Some(text), [from, to, ..]) => {
                let size = self.size_of(text);
                CallCost::sized(
                    size.scale(2.0 * STRING_FACTOR),
                    replaced(size, self.size_of(from), self.size_of(to)),
                )
            }
            ("split", Some(text), _) => {
                let size = self.size_of(text);
                let most = args.get(1).and_then(|limit| limit.number).map_or(size.max, i64::cast_unsigned);
                CallCost::sized(size.scale(2.0 * STRING_FACTOR), CostRange { min: 0, max: most })
            }
            ("join", Some(list), _) => {
                let count = self.size_of(list);
                let mut size = self.item_size(list).map_or(CostRange::ZERO, |(item, _)| count.multiply(item));
                if let Some(separator) = args.first() {
                    let gaps =
                        CostRange { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
                    size = size.add(self.size_of(separator).multiply(gaps));
                }
                CallCost::sized(size.scale(STRING_FACTOR), size)
            }
            ("find" | "findAll", Some(text), [pattern, ..]) => {
                let size = self.size_of(text);
                let cost =
                    size.add(ONE).scale(STRING_FACTOR).multiply(self.size_of(pattern).scale(REGEX_FACTOR));
                CallCost::sized(cost, CostRange { min: 0, max: size.max })
            }
            (
                "cidr" | "ip" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver",
                _,
                [text, ..],
            ) => CallCost::new(read(text)),
            ("ip.isCanonical", _, [text, ..]) => CallCost::new(self.size_of(text).scale(2.0 * STRING_FACTOR)),
            ("containsIP" | "containsCIDR", _, [other, ..]) => {
                let address = CostRange { min: 4, max: 16 };
                let mut cost = address.add(address).scale(STRING_FACTOR);
                if function == "containsCIDR" {
                    cost = cost.add(address.scale(STRING_FACTOR)).add(ONE);
                }
                if overload.ends_with("_string") {
                    cost = cost.add(read(other));
                }
                CallCost::new(cost)
            }
            ("validate", _, [text, ..]) => CallCost::new(read(text).scale(FORMAT_REGEX * REGEX_FACTOR)),
            ("_==_", None, [left, right]) => match (left.ty, right.ty) {
                (CelType::Named(a), CelType::Named(b)) if a == b => CallCost::new(match *a {
                    "kubernetes.NamedFormat" => CostRange { min: 1, max: 64 }.scale(STRING_FACTOR),
                    "kubernetes.URL" => {
                        let most = right.size.map_or(1, |size| size.max);
                        CostRange { min: 1, max: most }.scale(STRING_FACTOR)
                    }
                    _ => ONE,
                }),
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Returns the costs of the standard functions.
    fn standard(
        &mut self,
        id: usize,
        overload: &str,
        target: Option<&Node<'_>>,
        args: &[Node<'_>],
        costs: &[CostRange],
    ) -> CallCost {
        let all = sum(costs);
        match (overload, target, args) {
            ("string_format", Some(text), _) => CallCost::new(known(text).scale(STRING_FACTOR).add(all)),
            ("string_to_bytes", None, [text]) => {
                let size = known(text);
                // Four bytes for each character. The product wraps, as in the reference implementation.
                let bytes = CostRange { min: size.min, max: size.max.wrapping_mul(4) };
                CallCost::sized(size.scale(STRING_FACTOR).add(all), bytes)
            }
            ("bytes_to_string", None, [bytes]) => {
                let size = known(bytes);
                CallCost::sized(
                    size.scale(STRING_FACTOR).add(all),
                    CostRange { min: size.min / 4, max: size.max },
                )
            }
            ("strings_quote", None, [text]) => {
                let size = known(text);
                let quoted = CostRange {
                    min: size.min.wrapping_add(2),
                    max: size.max.wrapping_mul(2).wrapping_add(2),
                };
                CallCost::sized(size.scale(STRING_FACTOR).add(all), quoted)
            }
            ("starts_with_string" | "ends_with_string", _, [text]) => {
                CallCost::new(known(text).scale(STRING_FACTOR).add(all))
            }
            ("in_list", _, [_, list]) => CallCost::new(known(list).scale(1.0).add(all)),
            ("matches_string", Some(text), [pattern]) | ("matches", None, [text, pattern]) => {
                let text = known(text).add(ONE).scale(STRING_FACTOR);
                CallCost::new(text.multiply(known(pattern).scale(REGEX_FACTOR)).add(all))
            }
            ("contains_string", Some(text), [part]) => {
                let text = known(text).scale(STRING_FACTOR);
                CallCost::new(text.multiply(known(part).scale(STRING_FACTOR)).add(all))
            }
            ("logical_or" | "logical_and", _, _) => {
                let first = costs.first().map_or(0, |cost| cost.min);
                CallCost::new(CostRange { min: first, max: all.max })
            }
            ("conditional", _, [_, yes, no]) => {
                let size = known(yes).union(known(no));
                if let Some(entry) = union(yes.entry, no.entry) {
                    self.entries.insert(id, entry);
                }
                let cost = match costs {
                    [condition, yes, no] => condition.add(yes.union(*no)),
                    _ => all,
                };
                CallCost::sized(cost, size)
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let size = known(left).add(known(right));
                if let Some(entry) = union(left.entry, right.entry) {
                    self.entries.insert(id, entry);
                }
                let cost = if overload == "add_list" { ONE } else { size.scale(STRING_FACTOR) };
                CallCost::sized(cost.add(all), size)
            }
            (_, _, [left, right]) if compares_text(overload) => {
                let most = known(left).max.min(known(right).max);
                let range = CostRange { min: u64::from(most > 0), max: most };
                CallCost::new(range.scale(STRING_FACTOR).add(all))
            }
            _ => CallCost::new(ONE.add(all)),
        }
    }
}

fn compares_text(overload: &str) -> bool {
    matches!(overload, "equals" | "not_equals")
        || ["less_", "less_equals_", "greater_", "greater_equals_"]
            .iter()
            .any(|prefix| matches!(overload.strip_prefix(prefix), Some("string" | "bytes")))
}

/// Returns the size of a string after the replacement of parts.
fn replaced(text: CostRange, from: CostRange, to: CostRange) -> CostRange {
    // Returns the number of replacements, and the characters that are counted in addition to them.
    let bound = |size: u64, part: u64, is_shrinking: bool| match part {
        // An empty pattern matches around every character.
        0 => (size.saturating_add(1), size),
        _ if is_shrinking => (0, size),
        _ => (size.div_ceil(part), 0),
    };
    let (min_count, min_kept) = bound(text.min, from.max, from.max <= to.min);
    let (max_count, max_kept) = bound(text.max, from.min, to.max <= from.min);
    let count = CostRange { min: min_count, max: max_count };
    count.multiply(to).add(CostRange { min: min_kept, max: max_kept })
}
