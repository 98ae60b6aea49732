package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// clusterRows are named as the runs of the harness, with the variant of this peer behind.
var clusterRows = map[string]func(pods int) (result, error){
	"informer":               func(pods int) (result, error) { return clusterInformer(pods, protobufEncoding, false) },
	"informer-stripped":      func(pods int) (result, error) { return clusterInformer(pods, protobufEncoding, true) },
	"informer-json":          func(pods int) (result, error) { return clusterInformer(pods, jsonEncoding, false) },
	"informer-json-stripped": func(pods int) (result, error) { return clusterInformer(pods, jsonEncoding, true) },
	"metadata":               clusterMetadata,
	"reads":                  clusterReads,
	"growth":                 clusterGrowth,
	"mixed":                  clusterMixed,
}

const (
	protobufEncoding = "protobuf"
	jsonEncoding     = "json"
	byNode           = "node"
	clusterTimeLimit = 10 * time.Minute
	mostEvents       = 20_000
	settleSamples    = 5
	settleLimit      = 60
	growthSteps      = 10
	mixedRate        = 200
	mixedWorkers     = 4
	readersBeside    = 10
)

// What a handler reads of an event beside its key.
const (
	readKey = iota
	readNew
	readBoth
)

// watched is an informer with a handler that counts.
type watched struct {
	server   *replayServer
	informer cache.SharedIndexInformer
	stop     chan struct{}
	reads    atomic.Int32
	added    atomic.Int64
	updated  atomic.Int64
	deleted  atomic.Int64
	sum      atomic.Int64
}

func clusterConfig(server *replayServer, encoding string) *rest.Config {
	kind := kruntime.ContentTypeProtobuf
	if encoding == jsonEncoding {
		kind = kruntime.ContentTypeJSON
	}
	return &rest.Config{Host: server.url, ContentConfig: rest.ContentConfig{ContentType: kind, AcceptContentTypes: kind}}
}

func podInformer(config *rest.Config) (cache.SharedIndexInformer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer(), nil
}

func stripManagedFields(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	accessor.SetManagedFields(nil)
	return object, nil
}

func newWatched(server *replayServer, informer cache.SharedIndexInformer) (*watched, error) {
	w := &watched{server: server, informer: informer, stop: make(chan struct{})}
	_, err := informer.AddEventHandler(w)
	return w, err
}

func (w *watched) countKey(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		w.sum.Add(int64(len(key)))
	}
}

func (w *watched) read(object any) {
	if pod, ok := object.(*corev1.Pod); ok {
		w.sum.Add(int64(len(pod.Spec.NodeName) + len(pod.Status.ContainerStatuses)))
	}
}

func (w *watched) OnAdd(object any, _ bool) {
	w.countKey(object)
	w.added.Add(1)
}

func (w *watched) OnUpdate(before, after any) {
	w.countKey(after)
	switch w.reads.Load() {
	case readBoth:
		w.read(before)
		w.read(after)
	case readNew:
		w.read(after)
	}
	w.updated.Add(1)
}

func (w *watched) OnDelete(object any) {
	w.countKey(object)
	w.deleted.Add(1)
}

// until waits until a counter has a value. The pauses cost a few microseconds of CPU time each.
func until(counter *atomic.Int64, wanted int) error {
	for start := time.Now(); counter.Load() < int64(wanted); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > clusterTimeLimit {
			return fmt.Errorf("%d events, want %d", counter.Load(), wanted)
		}
	}
	return nil
}

// synced starts the informer and waits until the handler has been called for every pod.
func (w *watched) synced(pods int) error {
	go w.informer.Run(w.stop)
	if err := until(&w.added, pods); err != nil {
		return err
	}
	if !cache.WaitForCacheSync(w.stop, w.informer.HasSynced) {
		return errors.New("the informer has stopped")
	}
	return expect("pods stored", len(w.informer.GetStore().ListKeys()), pods)
}

// phase is the CPU time, in microseconds each, from an order until the handler has been called for everything.
func (w *watched) phase(query string, counter *atomic.Int64, count int) (float64, error) {
	wanted := int(counter.Load()) + count
	cpu := processCPUNs()
	if err := w.server.order(query); err != nil {
		return 0, err
	}
	if err := until(counter, wanted); err != nil {
		return 0, err
	}
	return float64(processCPUNs()-cpu) / 1e3 / float64(count), nil
}

func mib(bytes *int64) float64 {
	if bytes == nil {
		return math.NaN()
	}
	return float64(*bytes) / (1 << 20)
}

// settled is the resident memory in MiB, when it has stopped changing. Free memory is returned to the system each second.
func settled() float64 {
	last, same := 0.0, 0
	for range settleLimit {
		debug.FreeOSMemory() // collects first
		time.Sleep(time.Second)
		now := mib(rssBytes())
		if math.Abs(now-last) <= last/100 {
			same++
		} else {
			same = 0
		}
		if last = now; same >= settleSamples {
			break
		}
	}
	return last
}

func clusterInformer(pods int, encoding string, isStripped bool) (result, error) {
	server, err := startReplay(pods, encoding)
	if err != nil {
		return result{}, err
	}
	defer server.stop()
	informer, err := podInformer(clusterConfig(server, encoding))
	if err != nil {
		return result{}, err
	}
	if isStripped {
		if err := informer.SetTransform(stripManagedFields); err != nil {
			return result{}, err
		}
	}
	return runInformer(server, informer, pods)
}

func clusterMetadata(pods int) (result, error) {
	server, err := startReplay(pods, protobufEncoding)
	if err != nil {
		return result{}, err
	}
	defer server.stop()
	client, err := metadata.NewForConfig(clusterConfig(server, protobufEncoding))
	if err != nil {
		return result{}, err
	}
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	return runInformer(server, factory.ForResource(corev1.SchemeGroupVersion.WithResource("pods")).Informer(), pods)
}

// runInformer measures the first list, the memory, the events and the list after an expired watch.
func runInformer(server *replayServer, informer cache.SharedIndexInformer, pods int) (result, error) {
	w, err := newWatched(server, informer)
	if err != nil {
		return result{}, err
	}
	defer close(w.stop)
	meter := startMeter()
	if err := w.synced(pods); err != nil {
		return result{}, err
	}
	measured := meter.stop(pods)
	figures := map[string]float64{
		"sync_cpu_us": float64(measured.CPUNs) / 1e3 / float64(pods), "sync_peak_mib": mib(peakRSSBytes()), "synced_mib": mib(rssBytes()),
	}
	figures["steady_mib"] = settled()
	events := min(pods, mostEvents)
	for _, one := range []struct {
		name  string
		reads int32
	}{{"event_cpu_us", readKey}, {"event_new_cpu_us", readNew}, {"event_both_cpu_us", readBoth}} {
		w.reads.Store(one.reads)
		figures[one.name], err = w.phase(fmt.Sprintf("/trigger?events=%d", events), &w.updated, events)
		if err != nil {
			return result{}, err
		}
	}
	w.reads.Store(readKey)
	figures["delivered_percent"] = 100
	if figures["relist_cpu_us"], err = w.phase("/expire", &w.updated, pods); err != nil {
		return result{}, err
	}
	figures["end_peak_mib"] = mib(peakRSSBytes())
	measured.Figures = figures
	return measured, expect("pods stored", len(informer.GetStore().ListKeys()), pods)
}

// clusterGrowth adds pods in steps and measures how far memory is from a straight line.
func clusterGrowth(pods int) (result, error) {
	first := pods / growthSteps
	server, err := startReplay(first, protobufEncoding)
	if err != nil {
		return result{}, err
	}
	defer server.stop()
	informer, err := podInformer(clusterConfig(server, protobufEncoding))
	if err != nil {
		return result{}, err
	}
	w, err := newWatched(server, informer)
	if err != nil {
		return result{}, err
	}
	defer close(w.stop)
	meter := startMeter()
	if err := w.synced(first); err != nil {
		return result{}, err
	}
	sizes := []float64{settled()}
	for range growthSteps - 1 {
		if _, err := w.phase(fmt.Sprintf("/trigger?added=%d", first), &w.added, first); err != nil {
			return result{}, err
		}
		sizes = append(sizes, settled())
	}
	measured := meter.stop(first * growthSteps)
	last := sizes[len(sizes)-1]
	slope := (last - sizes[0]) / float64(len(sizes)-1)
	off := 0.0
	for step, size := range sizes {
		line := sizes[0] + slope*float64(step)
		off = max(off, math.Abs(size-line)/line*100)
	}
	measured.Figures = map[string]float64{
		"off_line_percent": off, "steady_mib": last, "kib_per_pod": slope * 1024 / float64(first),
	}
	return measured, expect("pods stored", len(informer.GetStore().ListKeys()), first*growthSteps)
}

func nodeIndex(object any) ([]string, error) {
	return []string{object.(*corev1.Pod).Spec.NodeName}, nil
}

func indexedPods(server *replayServer) (*watched, error) {
	informer, err := podInformer(clusterConfig(server, protobufEncoding))
	if err != nil {
		return nil, err
	}
	if err := informer.AddIndexers(cache.Indexers{byNode: nodeIndex}); err != nil {
		return nil, err
	}
	return newWatched(server, informer)
}

// perRead is the CPU time of a read in nanoseconds.
func perRead(count int, read func(step int) int) (float64, error) {
	runtime.GC()
	found, cpu := 0, processCPUNs()
	for step := range count {
		found += read(step)
	}
	spent := float64(processCPUNs()-cpu) / float64(count)
	if found < count {
		return 0, fmt.Errorf("%d reads of %d found nothing", count-found, count)
	}
	return spent, nil
}

func clusterReads(pods int) (result, error) {
	server, err := startReplay(pods, protobufEncoding)
	if err != nil {
		return result{}, err
	}
	defer server.stop()
	w, err := indexedPods(server)
	if err != nil {
		return result{}, err
	}
	defer close(w.stop)
	if err := w.synced(pods); err != nil {
		return result{}, err
	}
	indexer := w.informer.GetIndexer()
	keys := indexer.ListKeys()
	slices.Sort(keys)
	nodes := indexer.ListIndexFuncValues(byNode)
	slices.Sort(nodes)
	lister := listers.NewPodLister(indexer)
	figures := map[string]float64{}
	sum := 0
	read := func(pod *corev1.Pod) int {
		sum += len(pod.Spec.NodeName) + len(pod.Status.ContainerStatuses)
		return 1
	}
	meter := startMeter()
	figures["get_ns"], err = perRead(200_000, func(step int) int {
		object, exists, _ := indexer.GetByKey(keys[step*stride%len(keys)])
		if !exists {
			return 0
		}
		return read(object.(*corev1.Pod))
	})
	if err != nil {
		return result{}, err
	}
	figures["index_ns"], err = perRead(20_000, func(step int) int {
		found, _ := indexer.ByIndex(byNode, nodes[step*stride%len(nodes)])
		for _, object := range found {
			read(object.(*corev1.Pod))
		}
		return len(found)
	})
	if err != nil {
		return result{}, err
	}
	lists := 10
	perList, err := perRead(lists, func(int) int {
		all, _ := lister.List(labels.Everything())
		for _, pod := range all {
			read(pod)
		}
		return len(all)
	})
	if err != nil {
		return result{}, err
	}
	figures["list_ns_per_pod"] = perList / float64(len(keys))
	if err := beside(indexer, keys, figures); err != nil {
		return result{}, err
	}
	measured := meter.stop(pods)
	measured.Figures = figures
	return measured, nil
}

// beside measures a writer beside ten readers, each of which reads a pod and pauses.
func beside(indexer cache.Indexer, keys []string, figures map[string]float64) error {
	var isOver atomic.Bool
	var readers sync.WaitGroup
	for reader := range readersBeside {
		readers.Go(func() {
			for step := reader; !isOver.Load(); step++ {
				for range 10 {
					_, _, _ = indexer.GetByKey(keys[step*stride%len(keys)])
					step++
				}
				time.Sleep(200 * time.Microsecond)
			}
		})
	}
	nanos := make([]int64, 0, 10_000)
	var failure error
	for step := range cap(nanos) {
		object, _, _ := indexer.GetByKey(keys[step*stride%len(keys)])
		start := time.Now()
		failure = errors.Join(failure, indexer.Update(object))
		nanos = append(nanos, time.Since(start).Nanoseconds())
		time.Sleep(updatePause)
	}
	isOver.Store(true)
	readers.Wait()
	slices.Sort(nanos)
	figures["write_p99_us"] = float64(nanos[len(nanos)*99/100]) / 1000
	figures["write_p50_us"] = float64(nanos[len(nanos)/2]) / 1000
	return failure
}

// clusterMixed reconciles what changes, with four workers and three reads of the cache each.
func clusterMixed(pods int) (result, error) {
	server, err := startReplay(pods, protobufEncoding)
	if err != nil {
		return result{}, err
	}
	defer server.stop()
	w, err := indexedPods(server)
	if err != nil {
		return result{}, err
	}
	defer close(w.stop)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	var isMeasured atomic.Bool
	enqueue := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil && isMeasured.Load() {
			queue.Add(key)
		}
	}
	_, err = w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, after any) { enqueue(after) },
	})
	if err != nil {
		return result{}, err
	}
	if err := w.synced(pods); err != nil {
		return result{}, err
	}
	indexer := w.informer.GetIndexer()
	keys := indexer.ListKeys()
	var reconciled, read atomic.Int64
	reconcile := func(_ context.Context, key string, step int64) error {
		object, exists, err := indexer.GetByKey(key)
		if err != nil || !exists {
			return err
		}
		pod := object.(*corev1.Pod)
		neighbours, err := indexer.ByIndex(byNode, pod.Spec.NodeName)
		if err != nil {
			return err
		}
		for _, neighbour := range neighbours {
			read.Add(int64(len(neighbour.(*corev1.Pod).Status.ContainerStatuses)))
		}
		other, _, err := indexer.GetByKey(keys[int(step)*stride%len(keys)])
		if err == nil {
			read.Add(int64(len(other.(*corev1.Pod).Spec.NodeName)))
		}
		return err
	}
	var workers sync.WaitGroup
	for range mixedWorkers {
		workers.Go(func() {
			for {
				key, isShutDown := queue.Get()
				if isShutDown {
					return
				}
				if err := reconcile(context.Background(), key, reconciled.Load()); err != nil {
					queue.AddRateLimited(key)
				} else {
					queue.Forget(key)
				}
				queue.Done(key)
				reconciled.Add(1)
			}
		})
	}
	figures := map[string]float64{"steady_mib": settled()}
	isMeasured.Store(true)
	// Twenty seconds, or less for a few pods.
	events := min(pods, 20*mixedRate)
	meter := startMeter()
	if err := server.order(fmt.Sprintf("/trigger?events=%d&rate=%d", events, mixedRate)); err != nil {
		return result{}, err
	}
	if err := until(&w.updated, events); err != nil {
		return result{}, err
	}
	queue.ShutDownWithDrain()
	workers.Wait()
	measured := meter.stop(int(reconciled.Load()))
	figures["mixed_cpu_us"] = float64(measured.CPUNs) / 1e3 / float64(measured.Operations)
	figures["mixed_mib"] = mib(rssBytes())
	measured.Figures = figures
	return measured, nil
}
