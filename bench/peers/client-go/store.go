package main

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

var storeRows = map[string]func(operations int) (result, error){
	"get":                  func(n int) (result, error) { return storeGet(n, false) },
	"get-look":             func(n int) (result, error) { return storeGet(n, true) },
	"get-shared":           func(n int) (result, error) { return storeGet(n, true) },
	"by-index":             storeByIndex,
	"by-index-shared":      storeByIndex,
	"update":               func(n int) (result, error) { return storeUpdate(n, 0) },
	"move":                 func(n int) (result, error) { return storeUpdate(n, 1) },
	"replace":              storeReplace,
	"scan":                 storeScan,
	"update-while-listing": storeUpdateWhileListing,
	"memory":               storeMemory,
}

const (
	podCount       = 50_000
	nodeCount      = 1000
	namespaceCount = 41
	stride         = 7919
	updatePause    = 50 * time.Microsecond
)

func storeNode(number int) string { return fmt.Sprintf("node-%04d", number%nodeCount) }

func storeKey(number int) string {
	return fmt.Sprintf("namespace-%03d/pod-name-%08d", number%namespaceCount, number)
}

// storePods makes the pods of a generation, each on its own node or that many further.
func storePods(generation, further int) []*corev1.Pod {
	pods := make([]*corev1.Pod, podCount)
	for number := range pods {
		pods[number] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name:            fmt.Sprintf("pod-name-%08d", number),
				Namespace:       fmt.Sprintf("namespace-%03d", number%namespaceCount),
				UID:             types.UID(fmt.Sprintf("uid-%08d", number)),
				ResourceVersion: strconv.Itoa(generation*podCount + number + 1),
			},
			Spec: corev1.PodSpec{NodeName: storeNode(number + further)},
		}
	}
	return pods
}

func emptyStore() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"node": func(object any) ([]string, error) {
			return []string{object.(*corev1.Pod).Spec.NodeName}, nil
		},
	})
}

func filledStore(pods []*corev1.Pod) (cache.Indexer, error) {
	store := emptyStore()
	objects := make([]any, len(pods))
	for i, pod := range pods {
		objects[i] = pod
	}
	return store, store.Replace(objects, "1")
}

// visited is every number below count, in the order of the stride.
func visited(count int) []int {
	numbers := make([]int, count)
	for step := range numbers {
		numbers[step] = step * stride % count
	}
	return numbers
}

func expect(what string, found, wanted int) error {
	if found != wanted {
		return fmt.Errorf("%d %s, want %d", found, what, wanted)
	}
	return nil
}

// storeGet gets pods by their keys, and looks at each or does not.
func storeGet(n int, isLookedAt bool) (result, error) {
	store, err := filledStore(storePods(0, 0))
	if err != nil {
		return result{}, err
	}
	keys := make([]string, podCount)
	for number := range keys {
		keys[number] = storeKey(number)
	}
	order := visited(podCount)
	found := 0
	meter := startMeter()
	for step := range n {
		object, exists, _ := store.GetByKey(keys[order[step%podCount]])
		if exists && (!isLookedAt || object.(*corev1.Pod).ResourceVersion != "") {
			found++
		}
	}
	measured := meter.stop(n)
	return measured, expect("pods found", found, n)
}

func storeByIndex(n int) (result, error) {
	store, err := filledStore(storePods(0, 0))
	if err != nil {
		return result{}, err
	}
	nodes := make([]string, nodeCount)
	for number := range nodes {
		nodes[number] = storeNode(number)
	}
	order := visited(nodeCount)
	found := 0
	meter := startMeter()
	for step := range n {
		pods, err := store.ByIndex("node", nodes[order[step%nodeCount]])
		if err != nil {
			return result{}, err
		}
		found += len(pods)
	}
	measured := meter.stop(n)
	return measured, expect("pods found", found, n*(podCount/nodeCount))
}

func storeUpdate(n, further int) (result, error) {
	generations := [2][]*corev1.Pod{storePods(0, 0), storePods(1, further)}
	store, err := filledStore(generations[0])
	if err != nil {
		return result{}, err
	}
	order := visited(podCount)
	meter := startMeter()
	for step := range n {
		pods := generations[(step/podCount+1)%2]
		if err := store.Update(pods[order[step%podCount]]); err != nil {
			return result{}, err
		}
	}
	measured := meter.stop(n)
	return measured, expect("pods stored", len(store.ListKeys()), podCount)
}

func storeReplace(n int) (result, error) {
	pods := storePods(0, 0)
	objects := make([]any, min(n, len(pods)))
	for i := range objects {
		objects[i] = pods[i]
	}
	store := emptyStore()
	meter := startMeter()
	err := store.Replace(objects, "1")
	measured := meter.stop(len(objects))
	if err != nil {
		return result{}, err
	}
	return measured, expect("pods stored", len(store.ListKeys()), len(objects))
}

func storeScan(n int) (result, error) {
	store, err := filledStore(storePods(0, 0))
	if err != nil {
		return result{}, err
	}
	nodes := make([]string, nodeCount)
	for number := range nodes {
		nodes[number] = storeNode(number)
	}
	order := visited(nodeCount)
	found := 0
	meter := startMeter()
	for step := range n {
		node := nodes[order[step%nodeCount]]
		for _, object := range store.List() {
			if object.(*corev1.Pod).Spec.NodeName == node {
				found++
			}
		}
	}
	measured := meter.stop(n)
	return measured, expect("pods found", found, n*(podCount/nodeCount))
}

func storeUpdateWhileListing(n int) (result, error) {
	generations := [2][]*corev1.Pod{storePods(0, 0), storePods(1, 0)}
	store, err := filledStore(generations[0])
	if err != nil {
		return result{}, err
	}
	order := visited(podCount)
	nanos := make([]int64, 0, n)
	var isOver atomic.Bool
	lists := make(chan int)
	meter := startMeter()
	go func() {
		whole := 0
		for !isOver.Load() {
			if len(store.List()) == podCount {
				whole++
			}
		}
		lists <- whole
	}()
	for step := range n {
		pod := generations[(step/podCount+1)%2][order[step%podCount]]
		start := time.Now()
		err = store.Update(pod)
		nanos = append(nanos, time.Since(start).Nanoseconds())
		if err != nil {
			return result{}, err
		}
		time.Sleep(updatePause)
	}
	isOver.Store(true)
	whole := <-lists
	measured := meter.stop(n)
	slices.Sort(nanos)
	at := func(share int) float64 { return float64(nanos[min(n*share/1000, n-1)]) / 1000 }
	measured.Figures = map[string]float64{
		"write_p99_us": at(990), "write_p50_us": at(500), "write_p999_us": at(999), "lists": float64(whole),
	}
	return measured, nil
}

func storeMemory(n int) (result, error) {
	pods := storePods(0, 0)[:min(n, podCount)]
	before := liveHeapBytes()
	meter := startMeter()
	store, err := filledStore(pods)
	measured := meter.stop(len(pods))
	if err != nil {
		return result{}, err
	}
	held := liveHeapBytes() - before
	measured.LiveHeapBytes = &held
	return measured, expect("pods stored", len(store.ListKeys()), len(pods))
}
