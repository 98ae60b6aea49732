package main

import (
	"encoding/json"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// quantiles of a distribution, and its mean.
type quantiles struct {
	Mean, Min, P10, P50, P90, Max int
}

func quantilesOf(values []int) quantiles {
	slices.Sort(values)
	sum := 0
	for _, value := range values {
		sum += value
	}
	at := func(percent int) int { return values[percent*(len(values)-1)/100] }
	return quantiles{sum / len(values), at(0), at(10), at(50), at(90), at(100)}
}

// shapeOf is the distribution of the parts of pods.
func shapeOf(live []*rendered) (map[string]quantiles, error) {
	parts := map[string][]int{}
	add := func(name string, value int) { parts[name] = append(parts[name], value) }
	for _, one := range live {
		var pod corev1.Pod
		if err := json.Unmarshal(append([]byte{'{'}, one.json...), &pod); err != nil {
			return nil, err
		}
		managed := 0
		for _, entry := range pod.ManagedFields {
			text, err := json.Marshal(entry)
			if err != nil {
				return nil, err
			}
			managed += len(text) + 1
		}
		add("json", len(one.json))
		add("json of managedFields", managed)
		add("containers", len(pod.Spec.Containers))
		add("labels", len(pod.Labels))
		add("annotations", len(pod.Annotations))
		if one.proto != nil {
			add("protobuf", len(one.proto))
		}
	}
	shape := map[string]quantiles{}
	for name, values := range parts {
		shape[name] = quantilesOf(values)
	}
	return shape, nil
}

func printShape(w *world) error {
	shape, err := shapeOf(w.live)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	return encoder.Encode(shape)
}
