//! Lists of names: `package.Name` or `package.Type.Member`, one per line.

/// A name of a package.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) package: String,
    /// `Name` or `Type.Member`.
    pub(super) name: String,
}

impl Listed {
    /// The type, if any, and the name itself, without the package.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.name.split('.')
    }
}

pub(super) fn parse(text: &str) -> Result<Vec<Listed>, String> {
    text.lines()
        .map(|line| match line.split_once('.') {
            Some((package, name)) if !package.is_empty() && name.split('.').all(|word| !word.is_empty()) => {
                Ok(Listed { package: package.to_owned(), name: name.to_owned() })
            }
            _ => Err(format!("not `package.Name`: {line}")),
        })
        .collect()
}

#[test]
fn a_line_is_a_package_and_a_name() {
    let listed = |package: &str, name: &str| Listed { package: package.to_owned(), name: name.to_owned() };
    let names =
        parse("tools/cache.Store\ntools/cache.Store.Add\nkube_runtime::wait.await_condition\n").unwrap();
    assert_eq!(
        names,
        [
            listed("tools/cache", "Store"),
            listed("tools/cache", "Store.Add"),
            listed("kube_runtime::wait", "await_condition"),
        ]
    );
    assert_eq!(names[1].words().collect::<Vec<_>>(), ["Store", "Add"]);
    for bad in ["Store", ".Store", "cache.", "cache..Add"] {
        assert_eq!(parse(bad), Err(format!("not `package.Name`: {bad}")));
    }
}
