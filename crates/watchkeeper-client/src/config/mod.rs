//! Kubeconfig and in-cluster configuration, with safe defaults.
