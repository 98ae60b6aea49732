"""The Python client against the server named by a kubeconfig: list, write, watch, resume, and the dynamic client.

Prints a line for each observation; exits non-zero with the reason if a result does not match the API.
"""

import sys

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException


def main(kubeconfig: str, namespace: str) -> None:
    api_client = config.new_client_from_config(kubeconfig)
    core = client.CoreV1Api(api_client)

    before = core.list_namespaced_config_map(namespace, limit=1)
    print("listed", len(before.items))
    start = before.metadata.resource_version

    core.create_namespaced_config_map(namespace, {"metadata": {"name": "from-python"}, "data": {"step": "created"}})
    patch = [{"op": "replace", "path": "/data/step", "value": "patched"}]
    core.patch_namespaced_config_map("from-python", namespace, patch)
    core.delete_namespaced_config_map("from-python", namespace)

    seen = []
    stream = watch.Watch()
    events = stream.stream(core.list_namespaced_config_map, namespace, resource_version=start, timeout_seconds=10)
    for event in events:
        if event["object"].metadata.name != "from-python":
            continue
        seen.append((event["type"], event["object"].metadata.resource_version))
        print(event["type"].lower(), event["object"].data["step"])
        if event["type"] == "DELETED":
            stream.stop()

    # A watch that resumes in the middle delivers the remaining events.
    rest = []
    stream = watch.Watch()
    events = stream.stream(core.list_namespaced_config_map, namespace, resource_version=seen[0][1], timeout_seconds=10)
    for event in events:
        if event["object"].metadata.name == "from-python":
            rest.append((event["type"], event["object"].metadata.resource_version))
            if event["type"] == "DELETED":
                stream.stop()
    if rest != seen[1:]:
        sys.exit(f"resumed after {seen[0]} the watch told {rest}, not {seen[1:]}")
    print("resumed", len(rest))

    try:
        core.read_namespaced_config_map("from-python", namespace)
        sys.exit("a deleted object was read")
    except ApiException as error:
        print("gone", error.status, error.reason)

    dynamic_client = dynamic.DynamicClient(api_client)
    deployments = dynamic_client.resources.get(api_version="apps/v1", kind="Deployment")
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "from-python"},
        "spec": {
            "selector": {"matchLabels": {"app": "from-python"}},
            "template": {
                "metadata": {"labels": {"app": "from-python"}},
                "spec": {"containers": [{"name": "main", "image": "pause"}]},
            },
        },
    }
    created = deployments.create(body=body, namespace=namespace)
    print("deployment", created.spec.replicas, created.spec.strategy.type)
    applied = deployments.server_side_apply(
        body={"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "from-python"}, "spec": {"replicas": 3}},
        namespace=namespace,
        field_manager="session",
        force_conflicts=True,
    )
    print("applied", applied.spec.replicas)
    deployments.delete(name="from-python", namespace=namespace)


if __name__ == "__main__":
    main(*sys.argv[1:])
