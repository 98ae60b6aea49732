# The single door. Each recipe is one plain command, so nothing needs `just` to be installed.

# list the recipes
default:
    @just --list

# everything the README promises, tested
test:
    cargo test --workspace

# formatting, lints, documentation, dependency rules
lint:
    cargo fmt --all -- --check
    cargo clippy --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
    cargo deny check

# a controller at work, on an API server in the same process
demo *flags:
    cargo run -- demo {{flags}}

# one of the labs, for example `just lab informer`
lab name *flags:
    cargo run -p watchkeeper-examples --bin {{name}} -- {{flags}}

# one benchmark suite beside its peer, for example `just bench queue`
bench suite *flags:
    cargo run --release -p watchkeeper-bench -- {{suite}} {{flags}}

# our informer beside client-go's on a real etcd and kube-apiserver, under faults (tests/real/README.md)
real *flags:
    bash tests/real/run {{flags}}

# mutation testing of the pure cores, or of one crate's: `just mutants --package watchkeeper-workqueue`
mutants *flags="--workspace":
    cargo mutants {{flags}}

# the whole gate, as it runs on every change
ci:
    bash .ci/run
