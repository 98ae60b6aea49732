package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const networkAnnotation = "cni.projectcalico.org/containerID"

// epoch is the first creation time; times are spread over 60 days from it.
var epoch = time.Date(2026, time.January, 5, 6, 0, 0, 0, time.UTC)

func timestamp(r *rand.Rand) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(r.IntN(60*24*3600)) * time.Second))
}

// pod is the pod of a number below w.replicas, after its status changed so many times. It is the same each time.
func (w *workload) pod(number, changes int, resourceVersion uint64) (*corev1.Pod, error) {
	r := newRand(w.seed, uint64(number)+1)
	pod := w.template
	created := timestamp(r)
	node := r.IntN(5000)
	pod.Name = w.name + "-" + suffix(r, 5)
	if w.owner.Kind == "StatefulSet" {
		pod.Name = fmt.Sprintf("%s-%d", w.name, number)
	}
	pod.UID = uid(r)
	pod.ResourceVersion = strconv.FormatUint(resourceVersion, 10)
	pod.CreationTimestamp = created
	pod.OwnerReferences = []metav1.OwnerReference{w.owner}
	pod.Annotations = maps.Clone(w.template.Annotations)
	pod.Annotations[networkAnnotation] = hex(r, 64)
	if w.owner.Kind == "StatefulSet" {
		pod.Labels = maps.Clone(w.template.Labels)
		pod.Labels["apps.kubernetes.io/pod-index"] = fmt.Sprint(number)
		pod.Labels["statefulset.kubernetes.io/pod-name"] = pod.Name
	}
	token := "kube-api-access-" + suffix(r, 5)
	pod.Spec.Volumes = slices.Clone(w.template.Spec.Volumes)
	pod.Spec.Volumes[len(pod.Spec.Volumes)-1].Name = token
	pod.Spec.Containers = withToken(w.template.Spec.Containers, token)
	pod.Spec.InitContainers = withToken(w.template.Spec.InitContainers, token)
	pod.Spec.NodeName = fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", node>>8, node&255, 10+node%200)
	w.fillStatus(r, &pod, node, changes)
	return &pod, w.addManagedFields(r, &pod, token)
}

func withToken(containers []corev1.Container, token string) []corev1.Container {
	containers = slices.Clone(containers)
	for i := range containers {
		mounts := slices.Clone(containers[i].VolumeMounts)
		for j := range mounts {
			if mounts[j].Name == tokenPlaceholder {
				mounts[j].Name = token
			}
		}
		containers[i].VolumeMounts = mounts
	}
	return containers
}

func (w *workload) fillStatus(r *rand.Rand, pod *corev1.Pod, node, changes int) {
	started := metav1.NewTime(pod.CreationTimestamp.Add(time.Duration(1+r.IntN(20)) * time.Second))
	// After a change, the last container has been restarted, or is about to be.
	changed := started
	if changes > 0 {
		changed = metav1.NewTime(epoch.Add(time.Duration(61*24*3600+changes*61+r.IntN(60)) * time.Second))
	}
	isDone := w.owner.Kind == "Job" && r.IntN(2) == 0
	isReady := changes%2 == 0 && !isDone
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &pod.CreationTimestamp, QOSClass: corev1.PodQOSBurstable,
		HostIP: fmt.Sprintf("10.%d.%d.%d", node>>8, node&255, 10+node%200),
		PodIP:  fmt.Sprintf("100.%d.%d.%d", 64+r.IntN(64), r.IntN(256), 1+r.IntN(254)),
	}
	if isDone {
		status.Phase = corev1.PodSucceeded
	}
	if pod.Spec.HostNetwork {
		status.PodIP = status.HostIP
	}
	status.HostIPs, status.PodIPs = []corev1.HostIP{{IP: status.HostIP}}, []corev1.PodIP{{IP: status.PodIP}}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: started}
		if kind == corev1.PodReady || kind == corev1.ContainersReady {
			condition.LastTransitionTime = changed
			if !isReady {
				condition.Status, condition.Reason = corev1.ConditionFalse, "ContainersNotReady"
				condition.Message = "containers with unready status: [" + pod.Spec.Containers[len(pod.Spec.Containers)-1].Name + "]"
			}
		}
		status.Conditions = append(status.Conditions, condition)
	}
	for _, container := range pod.Spec.InitContainers {
		one := w.containerStatus(r, container, started)
		one.State = terminated(r, started, one.ContainerID, "Completed", 0)
		status.InitContainerStatuses = append(status.InitContainerStatuses, one)
	}
	for i, container := range pod.Spec.Containers {
		one := w.containerStatus(r, container, started)
		isLast := i == len(pod.Spec.Containers)-1
		if isLast && changes > 0 {
			one.RestartCount = int32(changes)
			one.LastTerminationState = terminated(r, started, one.ContainerID, "Error", 1+int32(changes%255))
			one.State.Running.StartedAt = changed
		}
		one.Ready = isReady || !isLast
		if isDone {
			one.State, one.Ready = terminated(r, started, one.ContainerID, "Completed", 0), false
		}
		status.ContainerStatuses = append(status.ContainerStatuses, one)
	}
	pod.Status = status
}

func (w *workload) containerStatus(r *rand.Rand, container corev1.Container, started metav1.Time) corev1.ContainerStatus {
	ready := true
	repository := container.Image[:strings.LastIndex(container.Image, ":")]
	return corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, ImageID: repository + "@" + w.images[container.Image],
		ContainerID: "containerd://" + hex(r, 64), Started: &ready, Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
	}
}

func terminated(r *rand.Rand, started metav1.Time, container, reason string, code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: started, ContainerID: container,
		FinishedAt: metav1.NewTime(started.Add(time.Duration(1+r.IntN(3600)) * time.Second)),
	}}
}

// addManagedFields adds the fields of the two managers of every pod, and often those of the network plugin.
func (w *workload) addManagedFields(r *rand.Rand, pod *corev1.Pod, token string) error {
	conditions := map[string]any{".": leaf}
	for _, condition := range pod.Status.Conditions {
		fields := map[string]any{".": leaf, "f:lastProbeTime": leaf, "f:lastTransitionTime": leaf, "f:status": leaf, "f:type": leaf}
		if condition.Reason != "" {
			fields["f:reason"], fields["f:message"] = leaf, leaf
		}
		conditions[fmt.Sprintf(`k:{"type":%q}`, condition.Type)] = fields
	}
	fields := map[string]any{
		"f:conditions": conditions, "f:containerStatuses": leaf, "f:hostIP": leaf, "f:hostIPs": leaf, "f:phase": leaf, "f:podIP": leaf,
		"f:podIPs":    map[string]any{".": leaf, fmt.Sprintf(`k:{"ip":%q}`, pod.Status.PodIP): map[string]any{".": leaf, "f:ip": leaf}},
		"f:startTime": leaf,
	}
	if len(pod.Status.InitContainerStatuses) > 0 {
		fields["f:initContainerStatuses"] = leaf
	}
	status, err := json.Marshal(map[string]any{"f:status": fields})
	if err != nil {
		return err
	}
	// Keys of a set are JSON within JSON, so quotes are escaped.
	spec := strings.NewReplacer(tokenPlaceholder, token, ownerPlaceholder, string(w.owner.UID)).Replace(w.specFields)
	entry := func(manager, subresource, fields string, at metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}, Subresource: subresource,
		}
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{entry("kube-controller-manager", "", spec, pod.CreationTimestamp)}
	if r.IntN(2) == 0 {
		network := `{"f:metadata":{"f:annotations":{"f:` + networkAnnotation + `":{}}}}`
		pod.ManagedFields = append(pod.ManagedFields, entry("calico", "status", network, pod.CreationTimestamp))
	}
	at := pod.Status.Conditions[2].LastTransitionTime
	pod.ManagedFields = append(pod.ManagedFields, entry("kubelet", "status", string(status), at))
	return nil
}
