//! The memory limit of this process, its resident memory, and amounts of memory in flags.

use std::{
    fs,
    path::{Component, Path, PathBuf},
    str::FromStr,
};

/// The memory of this process and of its machine, in bytes. A value that cannot be read is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessMemory {
    /// The smallest limit of the process's cgroup and of all its ancestors.
    pub(crate) cgroup_limit: Option<u64>,
    /// The memory of the machine.
    pub(crate) machine_total: Option<u64>,
    /// The memory that the machine can provide without swapping.
    pub(crate) machine_available: Option<u64>,
    /// The resident memory of the process.
    pub(crate) resident: Option<u64>,
}

impl ProcessMemory {
    /// Reads the values of this process from the files below `root`, which is `/` in programs.
    ///
    /// This reads about ten small files. All values are `None` on a platform without `/proc`.
    pub(crate) fn read(root: &Path) -> Self {
        let read = |path: &Path| fs::read_to_string(root.join(path)).ok();
        let meminfo = read(Path::new("proc/meminfo")).unwrap_or_default();
        let cgroup_limit = read(Path::new("proc/self/cgroup")).and_then(|own| {
            let files = limit_files(&own);
            files.iter().filter_map(|path| parse_limit(&read(path)?)).min()
        });
        let page_bytes = rustix::param::page_size() as u64;
        Self {
            cgroup_limit,
            machine_total: parse_meminfo(&meminfo, "MemTotal"),
            machine_available: parse_meminfo(&meminfo, "MemAvailable"),
            resident: read(Path::new("proc/self/statm"))
                .and_then(|statm| parse_resident_pages(&statm))
                .and_then(|pages| pages.checked_mul(page_bytes)),
        }
    }

    /// Returns the memory limit: that of the cgroup, or the memory of the machine if that is less or the cgroup has
    /// none.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.cgroup_limit.into_iter().chain(self.machine_total).min()
    }

    /// Returns the resident memory that the process should stay below: `percent` of its cgroup's limit. Without a
    /// limit, its resident memory and `percent` of what the machine has available.
    pub(crate) fn ceiling(&self, percent: u8) -> Option<u64> {
        let of_limit = self.limit().map(|limit| share(limit, percent));
        if self.cgroup_limit.is_some_and(|limit| Some(limit) == self.limit()) {
            return of_limit;
        }
        match (self.machine_available, self.resident) {
            (Some(available), Some(resident)) => Some(resident.saturating_add(share(available, percent))),
            _ => of_limit,
        }
    }
}

/// An amount of memory as flags state it: bytes, or a share of the memory limit.
///
/// | text | amount |
/// |---|---|
/// | `"1000000"` | bytes |
/// | `"512Mi"`, `"2Gi"` | powers of 1,024: `Ki`, `Mi`, `Gi`, `Ti` |
/// | `"500M"`, `"2G"` | powers of 1,000: `k`, `M`, `G`, `T` |
/// | `"25%"` | a share of the memory limit, from 0 to 100 percent |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryAmount {
    /// A number of bytes.
    Bytes(u64),
    /// A share of the memory limit, in percent. At most 100.
    Percent(u8),
}

/// The text is not an amount of memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AmountError {
    /// The text is empty.
    #[error(
        "amount of memory is empty (write auto, decoded, packed, an amount such as 512Mi, or a share such as 25%)"
    )]
    Empty,
    /// The text does not begin with a whole number.
    #[error(
        "amount of memory {0:?} is not auto, decoded or packed, and does not begin with a whole number (write 1536Mi instead of 1.5Gi)"
    )]
    NotANumber(String),
    /// The number is followed by an unknown unit.
    #[error("amount of memory {0:?} has an unknown unit (known are Ki, Mi, Gi, Ti, k, M, G, T and %)")]
    UnknownUnit(String),
    /// The amount is more than 100 %, or more bytes than 64 bits can count.
    #[error("amount of memory {0:?} is too large (at most 100%, or 16 EiB)")]
    TooLarge(String),
}

impl MemoryAmount {
    /// Returns the bytes, or `None` for a share of an unknown limit.
    pub(crate) fn bytes(self, limit: Option<u64>) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Percent(percent) => limit.map(|limit| share(limit, percent)),
        }
    }
}

impl FromStr for MemoryAmount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        if text.is_empty() {
            return Err(AmountError::Empty);
        }
        if number.is_empty() || unit.starts_with('.') {
            return Err(AmountError::NotANumber(text.to_owned()));
        }
        let too_large = || AmountError::TooLarge(text.to_owned());
        let number: u64 = number.parse().map_err(|_| too_large())?;
        let factor = match unit {
            "%" => {
                let percent = u8::try_from(number).ok().filter(|percent| *percent <= 100);
                return percent.map(Self::Percent).ok_or_else(too_large);
            }
            "" => 1,
            "k" => 1000,
            "M" => 1000_u64.pow(2),
            "G" => 1000_u64.pow(3),
            "T" => 1000_u64.pow(4),
            "Ki" => 1 << 10,
            "Mi" => 1 << 20,
            "Gi" => 1 << 30,
            "Ti" => 1 << 40,
            _ => return Err(AmountError::UnknownUnit(text.to_owned())),
        };
        number.checked_mul(factor).map(Self::Bytes).ok_or_else(too_large)
    }
}

/// Returns `percent` of `bytes`, rounded down.
fn share(bytes: u64, percent: u8) -> u64 {
    let scaled = u128::from(bytes) * u128::from(percent.min(100)) / 100;
    u64::try_from(scaled).unwrap_or(bytes)
}

/// Returns the files with the limits of a process, from its `/proc/self/cgroup`: its own cgroup and all ancestors,
/// version 2 and version 1.
///
/// In a container, the path is often that of the host while the mounted hierarchy begins at the container's cgroup.
/// The files of the path then do not exist, and the last ancestor is the container.
fn limit_files(own: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(hierarchy), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (mount, file) = if hierarchy == "0" && controllers.is_empty() {
            ("sys/fs/cgroup", "memory.max")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            continue;
        };
        // A path outside the namespace of the process begins with "/..", and only its mount can be read.
        let inside: PathBuf = Path::new(path)
            .components()
            .filter(|component| !matches!(component, Component::RootDir | Component::CurDir))
            .take_while(|component| matches!(component, Component::Normal(_)))
            .collect();
        files.extend(inside.ancestors().map(|path| Path::new(mount).join(path).join(file)));
    }
    files
}

/// Returns the limit in a file of a cgroup. `None` for no limit, which version 1 writes as almost 2^63.
fn parse_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|limit| *limit < 1 << 62)
}

/// Returns the bytes of a row of `/proc/meminfo`, whose unit is KiB.
fn parse_meminfo(text: &str, row: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(row)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the resident pages in `/proc/self/statm`.
fn parse_resident_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;
