//! Compression of single objects with a dictionary that is trained on objects of the same collection.
//!
//! | file | contents |
//! |---|---|
//! | `trainer.rs` | `Trainer`: a bounded set of samples, and the training of a dictionary |
//! | `codec.rs` | `Codec`: one generation of the dictionary; compression and decompression |
//! | `renewal.rs` | `Renewal`: when a dictionary has to be renewed |
//!
//! # Choice of level and size
//!
//! Pods of 5.4 KB of JSON, by level and dictionary, with 400 samples. "Varied" pods have random hashes, IP addresses,
//! times, images and environment variables. Decompression takes 0.7 to 2.1 µs in all rows.
//!
//! | level | dictionary | captured, ratio | varied, ratio | compress, µs | contexts and dictionary, KiB |
//! |---|---|---|---|---|---|
//! | -5 | 32 KiB | 12.5 | 5.1 | 1.8-3.2 | 186 |
//! | -1 | 32 KiB | 13.7 | 5.7 | 2.7-5.3 | 186 |
//! | 1 | 16 KiB | 20.5 | 8.8 | 2.5-5.2 | 186 |
//! | 1 | 32 KiB | 20.5 | 9.0 | 2.9-5.4 | 218 |
//! | 1 | 64 KiB | 21.1 | 8.8 | 2.5-5.5 | 282 |
//! | 1 | 112 KiB | 20.5 | 8.5 | 2.8-5.6 | 378 |
//! | 3 | 32 KiB | 21.0 | 9.1 | 2.8-6.5 | 633 |
//!
//! The first 32 KiB of the samples, untrained, reach 19.3 and 8.6, and take half as long again to compress and to
//! decompress. Without a dictionary the ratio is 2.4. A dictionary of 112 KiB from 200 samples had a ratio of 6.9: it
//! has to be several times smaller than the samples.

pub(crate) mod codec;
pub(crate) mod renewal;
pub(crate) mod trainer;

/// Returns an object with the fields of a pod, varied by `seed`.
#[cfg(test)]
fn object(seed: u64) -> String {
    let mut rng = fastrand::Rng::with_seed(seed);
    let app = ["shop", "payments", "search", "mail"][rng.usize(..4)];
    let (hash, uid) = (rng.u32(..), rng.u64(..));
    format!(
        r#"{{"metadata":{{"name":"{app}-{hash:08x}","namespace":"team-{team}","uid":"{uid:016x}","resourceVersion":"{version}","labels":{{"app":"{app}","pod-template-hash":"{hash:08x}","app.kubernetes.io/managed-by":"Helm"}}}},"spec":{{"nodeName":"node-{node}","serviceAccountName":"{app}","restartPolicy":"Always","dnsPolicy":"ClusterFirst","containers":[{{"name":"{app}","image":"registry.example.com/{app}:{tag}","terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}}]}},"status":{{"phase":"Running","podIP":"10.0.{ip_high}.{ip_low}","qosClass":"Burstable","conditions":[{{"type":"Ready","status":"True"}},{{"type":"PodScheduled","status":"True"}}]}}}}"#,
        team = rng.u8(..8),
        version = rng.u32(..),
        node = rng.u8(..40),
        tag = rng.u8(..20),
        ip_high = rng.u8(..),
        ip_low = rng.u8(..),
    )
}
