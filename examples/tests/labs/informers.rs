//! The labs about informers and queues.

use crate::support::{Listening, run};

#[tokio::test]
async fn the_informer_reports_the_whole_life_of_a_pod() {
    let program = env!("CARGO_BIN_EXE_informer");
    let ended = run(program, &[]).await;
    let lines = ended.lines();
    assert!(
        lines.contains(&"initial: shop/web-0") && lines.contains(&"on node-1: 3 pods, from the index"),
        "{lines:?}"
    );

    let cluster = Listening::start().await;
    cluster.add_pod("mine", "Running").await;
    let ended = cluster.run(program, &[]).await;
    let lines = ended.lines();
    assert_eq!(lines[..2], ["initial: default/mine", "on worker-7: 1 pods, from the index"]);
    assert!(lines.contains(&"the cache contains the new pod: true"), "{lines:?}");
    let story: Vec<&&str> = lines.iter().filter(|line| line.contains("default/informer-lab")).collect();
    assert_eq!(*story[0], "added: default/informer-lab");
    assert_eq!(*story[story.len() - 1], "deleted: default/informer-lab");
    assert_eq!(cluster.pod_names().await, ["mine"]);
}

#[tokio::test]
async fn narrow_types_keep_a_part_of_each_pod() {
    let program = env!("CARGO_BIN_EXE_narrow_types");
    let cluster = Listening::start().await;
    cluster.add_pod("mine", "Running").await;
    for (ended, pod, nodes) in [
        (run(program, &[]).await, "shop/web-0 is Running on node-1 with nginx", 2),
        (cluster.run(program, &[]).await, "default/mine is Running on worker-7 with ", 0),
    ] {
        let lines = ended.lines();
        assert!(lines.iter().any(|line| line.starts_with(pod)), "{lines:?}");
        assert_eq!(
            lines.iter().filter(|line| line.ends_with("from metadata only")).count(),
            nodes,
            "{lines:?}"
        );
        let sizes: Vec<usize> = lines
            .iter()
            .filter_map(|line| line.strip_prefix("bytes of JSON: "))
            .flat_map(|sizes| sizes.split(|c: char| !c.is_ascii_digit()).filter_map(|size| size.parse().ok()))
            .collect();
        assert!(matches!(sizes[..], [whole, view] if view * 2 < whole), "{sizes:?}");
    }
    assert_eq!(cluster.pod_names().await, ["mine"]);
}

#[tokio::test]
async fn the_queue_merges_changes_of_a_pod_and_delivers_its_deletion() {
    let program = env!("CARGO_BIN_EXE_informer_workqueue");
    let cluster = Listening::start().await;
    cluster.add_pod("mine", "Running").await;
    for (ended, initial) in [
        (run(program, &[]).await, "pod shop/web-0 has 1 labels (initial list)"),
        (cluster.run(program, &[]).await, "pod default/mine has 0 labels (initial list)"),
    ] {
        let lines = ended.lines();
        assert!(lines.contains(&initial), "{lines:?}");
        let summary = lines.iter().find(|line| line.starts_with("four writes, ")).unwrap();
        let reconciles: u32 = summary.split_whitespace().nth(2).unwrap().parse().unwrap();
        assert!((1..=4).contains(&reconciles), "{summary}");
        let end = lines[lines.len() - 2];
        assert!(end.starts_with("pod default/workqueue-lab no longer exists"), "{end}");
    }
    assert_eq!(cluster.pod_names().await, ["mine"]);
}

#[tokio::test]
async fn the_pod_printer_retries_five_times_and_then_gives_up() {
    let program = env!("CARGO_BIN_EXE_pod_printer");
    let cluster = Listening::start().await;
    cluster.add_pod("mine", "Running").await;
    for (ended, printed) in
        [(run(program, &[]).await, "pod shop/web-1"), (cluster.run(program, &[]).await, "pod default/mine")]
    {
        let lines = ended.lines();
        assert!(lines.contains(&printed), "{lines:?}");
        let about: Vec<&&str> = lines.iter().filter(|line| line.contains("the ink is dry")).collect();
        let retries: Vec<String> = (1..=5).map(|retry| format!("; retry {retry} of 5")).collect();
        assert_eq!(about.len(), 6, "{about:?}");
        for (line, retry) in about.iter().zip(&retries) {
            assert!(line.ends_with(retry), "{about:?}");
        }
        assert!(about[5].ends_with("; given up after 5 retries"), "{about:?}");
    }
    assert_eq!(cluster.pod_names().await, ["mine"]);
}
