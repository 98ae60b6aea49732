use proptest::prelude::*;

use super::*;

const MEMINFO: &str = "MemTotal:       16384 kB\nMemFree:  100 kB\nMemAvailable:    8192 kB\n";

/// Returns the memory of a process whose files are `files`.
fn read(files: &[(&str, &str)]) -> ProcessMemory {
    let root =
        std::env::temp_dir().join(format!("watchkeeper-limit-{}-{:x}", std::process::id(), hash(files)));
    for (path, contents) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        fs::write(path, contents).expect("a writable file");
    }
    let memory = ProcessMemory::read(&root);
    if !files.is_empty() {
        fs::remove_dir_all(root).expect("removable files");
    }
    memory
}

fn hash(files: &[(&str, &str)]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    hasher.finish()
}

fn cgroup_limit(files: &[(&str, &str)]) -> Option<u64> {
    read(files).cgroup_limit
}

#[test]
fn the_limit_of_version_2_is_the_smallest_of_the_cgroup_and_its_ancestors() {
    let own = ("proc/self/cgroup", "0::/kubepods/pod1/container\n");
    let pod = ("sys/fs/cgroup/kubepods/pod1/memory.max", "3000\n");
    let container = ("sys/fs/cgroup/kubepods/pod1/container/memory.max", "2000\n");
    let unlimited = ("sys/fs/cgroup/kubepods/pod1/container/memory.max", "max\n");
    let node = ("sys/fs/cgroup/kubepods/memory.max", "1000\n");
    assert_eq!(cgroup_limit(&[own, pod, container]), Some(2000));
    assert_eq!(cgroup_limit(&[own, pod, unlimited]), Some(3000));
    assert_eq!(cgroup_limit(&[own, pod, container, node]), Some(1000));
    assert_eq!(cgroup_limit(&[own, unlimited]), None);
    assert_eq!(cgroup_limit(&[own]), None);
}

#[test]
fn the_root_of_a_cgroup_namespace_has_the_limit_of_the_container() {
    let mounted = ("sys/fs/cgroup/memory.max", "4000\n");
    for own in ["0::/\n", "0::/../../other\n", "0::/host/path\n"] {
        assert_eq!(cgroup_limit(&[("proc/self/cgroup", own), mounted]), Some(4000), "{own}");
    }
}

#[test]
fn the_limit_of_version_1_is_read_from_the_memory_controller() {
    let own = ("proc/self/cgroup", "12:cpu,cpuacct:/a\n5:hugetlb,memory:/docker/b\n1:name=systemd:/a\n");
    let path = ("sys/fs/cgroup/memory/docker/b/memory.limit_in_bytes", "5000\n");
    let mounted = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "6000\n");
    let unlimited = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_eq!(cgroup_limit(&[own, path, unlimited]), Some(5000));
    assert_eq!(cgroup_limit(&[own, mounted]), Some(6000));
    assert_eq!(cgroup_limit(&[own, unlimited]), None);
}

#[test]
fn values_that_cannot_be_read_are_absent() {
    assert_eq!(read(&[]), ProcessMemory::default());
    let garbage = [
        ("proc/self/cgroup", "0::/a\nx\n:\n::\n\u{0}"),
        ("sys/fs/cgroup/a/memory.max", "-1"),
        ("proc/meminfo", "MemTotal: lots kB\nMemAvailable: 18446744073709551615 kB\n"),
        ("proc/self/statm", "1"),
    ];
    assert_eq!(read(&garbage), ProcessMemory::default());
}

#[test]
fn the_memory_of_the_machine_and_of_the_process_is_read_from_proc() {
    let memory = read(&[("proc/meminfo", MEMINFO), ("proc/self/statm", "900 10 3 1 0 20 0\n")]);
    assert_eq!(memory.machine_total, Some(16 << 20));
    assert_eq!(memory.machine_available, Some(8 << 20));
    assert_eq!(memory.resident, Some(10 * rustix::param::page_size() as u64));
    assert_eq!(memory.limit(), Some(16 << 20));
}

#[test]
fn the_ceiling_is_a_share_of_the_cgroup_limit_or_of_the_available_memory() {
    let memory = |cgroup_limit| ProcessMemory {
        cgroup_limit,
        machine_total: Some(10_000),
        machine_available: Some(4000),
        resident: Some(1000),
    };
    assert_eq!(memory(Some(8000)).ceiling(75), Some(6000));
    assert_eq!(memory(None).ceiling(75), Some(1000 + 3000));
    assert_eq!(memory(Some(80_000)).ceiling(75), Some(1000 + 3000), "a limit beyond the machine's memory");
    let total = ProcessMemory { machine_total: Some(10_000), ..ProcessMemory::default() };
    assert_eq!(total.ceiling(75), Some(7500));
    assert_eq!(ProcessMemory::default().ceiling(75), None);
    assert_eq!(ProcessMemory { cgroup_limit: Some(u64::MAX), ..total }.ceiling(255), Some(10_000));
}

#[test]
fn amounts_are_bytes_or_a_share_of_the_limit() {
    let cases = [
        ("0", MemoryAmount::Bytes(0)),
        ("1000000", MemoryAmount::Bytes(1_000_000)),
        (" 64Ki ", MemoryAmount::Bytes(64 << 10)),
        ("512Mi", MemoryAmount::Bytes(512 << 20)),
        ("2Gi", MemoryAmount::Bytes(2 << 30)),
        ("1Ti", MemoryAmount::Bytes(1 << 40)),
        ("3k", MemoryAmount::Bytes(3000)),
        ("500M", MemoryAmount::Bytes(500_000_000)),
        ("2G", MemoryAmount::Bytes(2_000_000_000)),
        ("1T", MemoryAmount::Bytes(1_000_000_000_000)),
        ("25%", MemoryAmount::Percent(25)),
        ("0%", MemoryAmount::Percent(0)),
        ("100%", MemoryAmount::Percent(100)),
    ];
    for (text, amount) in cases {
        assert_eq!(text.parse(), Ok(amount), "{text}");
    }
    assert_eq!(MemoryAmount::Percent(25).bytes(Some(1000)), Some(250));
    assert_eq!(MemoryAmount::Percent(25).bytes(None), None);
    assert_eq!(MemoryAmount::Bytes(7).bytes(None), Some(7));
}

#[test]
fn text_that_is_no_amount_is_rejected_with_the_reason() {
    let error = |text: &str| text.parse::<MemoryAmount>().err();
    assert_eq!(error(""), Some(AmountError::Empty));
    assert_eq!(error("  "), Some(AmountError::Empty));
    for text in ["-1", "+1", "Mi", "%", "x", "1.5Gi", "½"] {
        assert_eq!(error(text), Some(AmountError::NotANumber(text.to_owned())), "{text}");
    }
    for text in ["1MB", "1 Mi", "1mi", "1Pi", "25%%", "1e3", "1é"] {
        assert_eq!(error(text), Some(AmountError::UnknownUnit(text.to_owned())), "{text}");
    }
    for text in ["101%", "256%", "18446744073709551616", "18446744073709551615Ki"] {
        assert_eq!(error(text), Some(AmountError::TooLarge(text.to_owned())), "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,40}", path in "[0-9:a-z,./]{0,60}") {
        let _ = text.parse::<MemoryAmount>();
        let _ = (parse_limit(&text), parse_meminfo(&text, "MemTotal"), parse_resident_pages(&text));
        for file in limit_files(&path) {
            prop_assert!(file.starts_with("sys/fs/cgroup"));
            prop_assert!(!file.components().any(|component| component == Component::ParentDir));
        }
    }
}
