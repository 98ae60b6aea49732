//! Security contexts of pods and containers, and fields that the operating system of a pod excludes.

use std::collections::BTreeSet;

use crate::strategy::{
    cursor::{Cursor, Errors},
    formats, names,
    table::{
        self, FieldCondition,
        Rule::{
            Absent, Between, Check, EnumIfSet, Forbidden, Format, FormatIfSet, InvalidIfSet, MaxLength,
            OneOf, Pointer, Present, RequiredAs, When,
        },
        RuleTable,
    },
};

/// The largest user or group id.
const MAX_ID: i64 = i32::MAX as i64;

const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];

const SECCOMP: RuleTable = &[
    ("type", &[RequiredAs("type is required when seccompProfile is set"), OneOf(PROFILES)]),
    (
        "",
        &[
            When(
                FieldCondition::Is("type", "Localhost"),
                &[(
                    "localhostProfile",
                    &[
                        Present("must be set when seccomp type is Localhost"),
                        Format(formats::descending_path),
                    ],
                )],
            ),
            When(
                FieldCondition::IsNot("type", "Localhost"),
                &[("localhostProfile", &[InvalidIfSet("can only be set when seccomp type is Localhost")])],
            ),
        ],
    ),
];

const APP_ARMOR: RuleTable = &[
    (
        "",
        &[
            When(
                FieldCondition::Is("type", "Localhost"),
                &[(
                    "localhostProfile",
                    &[
                        RequiredAs("must be set when AppArmor type is Localhost"),
                        Check(unpadded),
                        MaxLength(4095),
                    ],
                )],
            ),
            When(FieldCondition::Is("type", "RuntimeDefault"), NO_LOCALHOST_PROFILE),
            When(FieldCondition::Is("type", "Unconfined"), NO_LOCALHOST_PROFILE),
        ],
    ),
    ("type", &[RequiredAs("type is required when appArmorProfile is set"), OneOf(PROFILES)]),
];

const NO_LOCALHOST_PROFILE: RuleTable =
    &[("localhostProfile", &[InvalidIfSet("can only be set when AppArmor type is Localhost")])];

const WINDOWS: RuleTable = &[
    ("gmsaCredentialSpecName", &[FormatIfSet(names::dns_subdomain)]),
    ("gmsaCredentialSpec", &[Check(credential_spec)]),
    ("runAsUserName", &[Check(windows_user)]),
];

const POD: RuleTable = &[
    ("fsGroup", &[Between(0, MAX_ID)]),
    ("runAsUser", &[Between(0, MAX_ID)]),
    ("runAsGroup", &[Between(0, MAX_ID)]),
    ("supplementalGroups[]", &[Between(0, MAX_ID)]),
];

const POD_POLICIES: RuleTable = &[
    ("fsGroupChangePolicy", &[EnumIfSet(&["Always", "OnRootMismatch"])]),
    ("seccompProfile", &[Pointer(SECCOMP)]),
    ("windowsOptions", &[Pointer(WINDOWS)]),
    ("appArmorProfile", &[Pointer(APP_ARMOR)]),
    ("supplementalGroupsPolicy", &[EnumIfSet(&["Merge", "Strict"])]),
    ("seLinuxChangePolicy", &[EnumIfSet(&["MountOption", "Recursive"])]),
];

const CONTAINER: RuleTable = &[
    ("runAsUser", &[Between(0, MAX_ID)]),
    ("runAsGroup", &[Between(0, MAX_ID)]),
    ("procMount", &[EnumIfSet(&["Default", "Unmasked"])]),
];

const CONTAINER_PROFILES: RuleTable = &[
    ("seccompProfile", &[Pointer(SECCOMP)]),
    ("", &[Check(privileges)]),
    ("windowsOptions", &[Pointer(WINDOWS)]),
    ("appArmorProfile", &[Pointer(APP_ARMOR)]),
];

/// Checks the security context of a pod.
pub(super) fn pod(spec: &Cursor<'_>, errors: &mut Errors) {
    let context = spec.at("securityContext");
    if !context.is_set() {
        return;
    }
    table::check(POD, &context, errors);
    sysctls(spec, &context.at("sysctls"), errors);
    table::check(POD_POLICIES, &context, errors);
}

/// Checks the security context of a container. `has_host_users` is whether the pod uses the user namespace of its host.
pub(super) fn container(context: &Cursor<'_>, has_host_users: bool, errors: &mut Errors) {
    if !context.is_set() {
        return;
    }
    table::check(CONTAINER, context, errors);
    let mount = context.at("procMount");
    if has_host_users && mount.text() == "Unmasked" {
        errors.push(mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    table::check(CONTAINER_PROFILES, context, errors);
}

fn unpadded(profile: &Cursor<'_>, errors: &mut Errors) {
    if profile.text().trim() != profile.text() {
        errors.push(profile.invalid("must not be padded with whitespace"));
    }
}

fn privileges(context: &Cursor<'_>, errors: &mut Errors) {
    if context.at("allowPrivilegeEscalation").value.as_bool() != Some(false) {
        return;
    }
    if context.at("privileged").is_true() {
        errors
            .push(context.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
    }
    let capabilities = context.at("capabilities");
    for _ in capabilities.at("add").items().filter(|capability| capability.text() == "CAP_SYS_ADMIN") {
        errors.push(
            context.invalid(
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
            ),
        );
    }
}

/// The sysctls of the network namespace, and those of the IPC namespace.
const NET_SYSCTLS: [&str; 1] = ["net."];
const IPC_SYSCTLS: [&str; 3] = ["kernel.shm", "kernel.msg", "fs.mqueue."];

fn sysctls(spec: &Cursor<'_>, sysctls: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for sysctl in sysctls.items() {
        let name = sysctl.at("name");
        let is_new = seen.insert(name.text().to_owned());
        if name.required(errors) {
            let wrong = formats::sysctl(name.text());
            if wrong.is_empty() && !is_new {
                errors.push(name.duplicate());
            }
            errors.extend(wrong.into_iter().map(|detail| name.invalid(detail)));
        }
        let dotted = name.text().replace('/', ".");
        let is_in = |prefixes: &[&str]| prefixes.iter().any(|prefix| dotted.starts_with(prefix));
        if spec.at("hostNetwork").is_true() && is_in(&NET_SYSCTLS) {
            errors.push(name.invalid("may not be specified when 'hostNetwork' is true"));
        } else if spec.at("hostIPC").is_true() && (is_in(&IPC_SYSCTLS) || dotted == "kernel.sem") {
            errors.push(name.invalid("may not be specified when 'hostIPC' is true"));
        }
    }
}

fn credential_spec(spec: &Cursor<'_>, errors: &mut Errors) {
    if spec.is_set() && spec.text().is_empty() {
        errors.push(spec.invalid("gmsaCredentialSpec cannot be an empty string"));
    } else if spec.text().len() > 64 * 1024 {
        errors.push(spec.invalid("gmsaCredentialSpec size must be under 64 KiB"));
    }
}

fn windows_user(name: &Cursor<'_>, errors: &mut Errors) {
    let text = name.text();
    if !name.is_set() {
        return;
    }
    let mut reject = |detail: &str| errors.push(name.invalid(detail));
    if text.is_empty() {
        return reject("runAsUserName cannot be an empty string");
    }
    if text.chars().any(|character| character.is_ascii_control()) {
        return reject("runAsUserName cannot contain control characters");
    }
    if text.matches('\\').count() > 1 {
        return reject("runAsUserName cannot contain more than one backslash");
    }
    let (domain, user) = text.split_once('\\').map_or((None, text), |(domain, user)| (Some(domain), user));
    if let Some(domain) = domain {
        if domain.len() >= 256 {
            reject("runAsUserName's Domain length must be under 256 characters");
        }
        let is_net_bios = (1..=15).contains(&domain.chars().count())
            && !domain.starts_with('.')
            && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|']);
        let is_label = |label: &str| {
            let bytes = label.as_bytes();
            (1..=63).contains(&bytes.len())
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if !is_net_bios && !domain.split('.').all(is_label) {
            reject("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
        }
    }
    if user.is_empty() {
        reject("runAsUserName's User cannot be empty");
    } else if user.len() > 104 {
        reject("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|character| matches!(character, '.' | ' ')) {
        reject("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        reject("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
}

/// The container lists of a spec, in the order of upstream's visitor.
pub(super) const ALL_CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Checks Windows host-process containers: all containers of a pod or none, and on the host network.
pub(super) fn host_processes(spec: &Cursor<'_>, errors: &mut Errors) {
    let flag =
        |of: &Cursor<'_>| of.at("securityContext").at("windowsOptions").at("hostProcess").value.as_bool();
    let of_pod = flag(spec);
    let (mut count, mut on_host) = (0, 0);
    for list in ALL_CONTAINERS {
        for container in spec.at(list).items() {
            count += 1;
            let own = flag(&container);
            if let (Some(of_pod), Some(own)) = (of_pod, own)
                && of_pod != own
            {
                let context = container.at("securityContext");
                let options = context.at("windowsOptions");
                errors.push(options.at("hostProcess").invalid(format!(
                    "pod hostProcess value must be identical if both are specified, was {of_pod}"
                )));
            }
            on_host += i32::from(own.or(of_pod) == Some(true));
        }
    }
    if on_host > 0 {
        if on_host != count {
            let mut error = spec.invalid(
                "If pod contains any hostProcess containers then all containers must be HostProcess containers",
            );
            error.bad_value = Some("".into());
            errors.push(error);
        }
        if !spec.at("hostNetwork").is_true() {
            let mut error = spec
                .at("hostNetwork")
                .invalid("hostNetwork must be true if pod contains any hostProcess containers");
            error.bad_value = Some(false.into());
            errors.push(error);
        }
    }
}

const LINUX: RuleTable =
    &[("securityContext.windowsOptions", &[Absent("windows options cannot be set for a linux pod")])];

const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";

const WINDOWS_POD: RuleTable = &[
    (
        "securityContext.appArmorProfile|seLinuxOptions|seccompProfile|fsGroup|fsGroupChangePolicy",
        &[Absent(NOT_ON_WINDOWS)],
    ),
    ("securityContext.sysctls", &[Forbidden(NOT_ON_WINDOWS)]),
    (
        "securityContext.runAsUser|runAsGroup|supplementalGroups|supplementalGroupsPolicy|seLinuxChangePolicy",
        &[Absent(NOT_ON_WINDOWS)],
    ),
    ("hostUsers", &[Absent(NOT_ON_WINDOWS)]),
    ("hostPID|hostIPC", &[Check(not_true_on_windows)]),
    ("shareProcessNamespace", &[Absent(NOT_ON_WINDOWS)]),
];

const WINDOWS_CONTAINER: RuleTable = &[(
    "securityContext.appArmorProfile|seLinuxOptions|seccompProfile|capabilities|readOnlyRootFilesystem|privileged|allowPrivilegeEscalation|procMount|runAsUser|runAsGroup",
    &[Absent(NOT_ON_WINDOWS)],
)];

fn not_true_on_windows(flag: &Cursor<'_>, errors: &mut Errors) {
    if flag.is_true() {
        errors.push(flag.forbidden(NOT_ON_WINDOWS));
    }
}

/// Checks the operating system of a pod, and rejects fields of the other one.
pub(super) fn operating_system(spec: &Cursor<'_>, errors: &mut Errors) {
    let os = spec.at("os");
    let name = os.at("name");
    if !os.is_set() || !name.required(errors) {
        return;
    }
    let (of_pod, of_container) = match name.text() {
        "linux" => (LINUX, LINUX),
        "windows" => (WINDOWS_POD, WINDOWS_CONTAINER),
        _ => {
            let mut error = os.unsupported(&["linux", "windows"]);
            error.bad_value = Some(name.value.clone());
            errors.push(error);
            return;
        }
    };
    table::check(of_pod, spec, errors);
    for list in ALL_CONTAINERS {
        for container in spec.at(list).items() {
            table::check(of_container, &container, errors);
        }
    }
}
