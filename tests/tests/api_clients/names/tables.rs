//! Tables of names: a section per package, with rows `their name | here | what differs`.

/// A row of a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) package: String,
    /// `Name` or `Type.Member`.
    pub(super) names: Vec<String>,
    pub(super) here: String,
    pub(super) differs: String,
}

const HEADER: &str = "| their name | here | what differs |";

pub(super) fn parse(text: &str) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let mut package = "";
    let mut in_table = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(heading) = line.strip_prefix("## ") {
            package = heading.trim();
        }
        if line == HEADER {
            in_table = true;
        } else if !line.starts_with('|') {
            in_table = false;
        } else if !line.starts_with("|---") {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [names, here, differs] = cells[..] else {
                return Err(format!("line {number} has {} cells instead of 3", cells.len()));
            };
            if !in_table || package.is_empty() {
                return Err(format!("line {number} is a row outside of a table of names"));
            }
            let names =
                full_names(names).ok_or_else(|| format!("line {number} has no name in its first cell"))?;
            rows.push(Row {
                line: number,
                package: package.to_owned(),
                names,
                here: here.to_owned(),
                differs: differs.to_owned(),
            });
        }
    }
    Ok(rows)
}

/// The names of a cell. A name that begins with a dot belongs to the type before it.
fn full_names(cell: &str) -> Option<Vec<String>> {
    let mut owner = None;
    let mut names = Vec::new();
    for name in code(cell) {
        if name.starts_with('.') {
            names.push(format!("{}{name}", owner?));
        } else {
            owner = name.split('.').next();
            names.push(name.to_owned());
        }
    }
    (!names.is_empty()).then_some(names)
}

/// The parts of a text that are in backticks.
pub(super) fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn rows_have_the_package_of_their_section_and_names_the_type_before_them() {
    let text = "# Title\n\n## tools/cache\n\nText | with a bar.\n\n| their name | here | what differs |\n|---|---|---|\n\
                | `Store` `.Add` `.List` `New` | `Store::add` | Same. |\n| `KeyError.Unwrap` `.Error` | none | No `Unwrap`. |\n";
    let rows = parse(text).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].package, "tools/cache");
    assert_eq!(rows[0].names, ["Store", "Store.Add", "Store.List", "New"]);
    assert_eq!((rows[0].line, rows[0].here.as_str(), rows[0].differs.as_str()), (9, "`Store::add`", "Same."));
    assert_eq!(rows[1].names, ["KeyError.Unwrap", "KeyError.Error"]);
}

#[test]
fn rows_that_are_not_of_a_table_of_names_are_errors() {
    let table = |row: &str| parse(&format!("## p\n\n{HEADER}\n|---|---|---|\n{row}\n")).unwrap_err();
    assert_eq!(table("| `A` | `B` |"), "line 5 has 2 cells instead of 3");
    assert_eq!(table("| `A` | `|x| B` | c |"), "line 5 has 5 cells instead of 3");
    assert_eq!(table("| A | `B` | c |"), "line 5 has no name in its first cell");
    assert_eq!(table("| `.A` | `B` | c |"), "line 5 has no name in its first cell");
    assert_eq!(parse("## p\n| a | b | c |\n").unwrap_err(), "line 2 is a row outside of a table of names");
    assert_eq!(parse("| `A` | b | c |\n").unwrap_err(), "line 1 is a row outside of a table of names");
}
