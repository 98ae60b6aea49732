//! The list of commands in `commands.txt`.

use crate::session::Kubectl;

/// A line of the list.
struct Command<'a> {
    exit_code: i32,
    line: &'a str,
    /// A text that the output contains.
    fragment: &'a str,
}

impl<'a> Command<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut columns = text.splitn(3, '|').map(str::trim);
        let exit_code = columns.next()?.parse().ok()?;
        Some(Self { exit_code, line: columns.next()?, fragment: columns.next()? })
    }

    /// Runs the command. Returns the difference between its result and the expected one.
    fn difference(&self, kubectl: &Kubectl) -> Option<String> {
        let output = kubectl.run_with(self.line, "");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        let is_expected = output.status.code() == Some(self.exit_code) && text.contains(self.fragment);
        (!is_expected).then(|| {
            let Self { exit_code, line, fragment } = self;
            format!("kubectl {line}: {}, expected {exit_code} and {fragment:?}:\n{text}", output.status)
        })
    }
}

/// Runs all commands in order. Panics with the commands whose output differs from the list.
pub(crate) fn run_all(kubectl: &Kubectl) {
    let lines = include_str!("commands.txt").lines();
    let commands: Vec<Command<'_>> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| Command::parse(line).unwrap_or_else(|| panic!("{line:?}: expected three columns")))
        .collect();
    let different: Vec<String> = commands.iter().filter_map(|command| command.difference(kubectl)).collect();
    let (count, all) = (different.len(), commands.len());
    assert!(different.is_empty(), "{count} of {all} commands:\n{}", different.join("\n"));
}
