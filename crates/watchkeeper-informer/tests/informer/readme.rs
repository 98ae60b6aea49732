//! The tables in `README.md` name tests that exist, and contain every case that they announce.

use std::{collections::BTreeSet, fs, path::Path};

/// The names of the functions in every file below a folder.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("it can be read");
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
}

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/README.md")).expect("it is there")
}

#[test]
fn every_test_in_the_tables_exists() {
    let mut known = BTreeSet::new();
    functions(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"), &mut known);
    let readme = readme();
    // Of what is set as code, the names of tests are what has underscores, and neither dots nor slashes.
    let code = readme.split('`').skip(1).step_by(2);
    let named: Vec<&str> = code.filter(|code| code.contains('_') && !code.contains(['.', '/'])).collect();
    assert!(named.len() > 100, "the tables are found");
    let missing: Vec<&&str> = named.iter().filter(|name| !known.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_fact_and_every_case_that_concerns_an_informer_has_a_row() {
    let readme = readme();
    let (cases, facts) = readme.split_once("## Facts of client-go's tests").expect("two tables");
    let numbers = |table: &str| {
        let firsts = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
        let ranges = firsts.flat_map(|first| first.split(", ").map(str::to_owned).collect::<Vec<_>>());
        let mut found = BTreeSet::new();
        for range in ranges {
            let (from, to) = range.split_once('-').unwrap_or((&range, &range));
            if let (Ok(from), Ok(to)) = (from.parse::<u32>(), to.parse::<u32>()) {
                found.extend(from..=to);
            }
        }
        found
    };
    assert_eq!(numbers(facts), (1..=94).collect());
    let concerning = [1..=2, 7..=9, 11..=14, 16..=17, 20..=21, 27..=31, 33..=41, 43..=49];
    let rows = numbers(cases);
    let missing: Vec<u32> = concerning.into_iter().flatten().filter(|case| !rows.contains(case)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
