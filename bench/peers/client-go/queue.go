package main

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // the provider of Prometheus metrics that Kubernetes' own controllers use
)

// Every queue has a name, so client-go reports its metrics to the provider, as in a controller.
var queueRows = map[string]func(operations int) (result, error){
	"lockstep":       queueLockstep,
	"distinct-1p1c":  func(n int) (result, error) { return queueDistinct(n, 1, 1) },
	"distinct-4p4c":  func(n int) (result, error) { return queueDistinct(n, 4, 4) },
	"duplicate":      queueDuplicate,
	"duplicate-hot":  queueDuplicateHot,
	"rate-limited":   queueRateLimited,
	"delay-insert":   queueDelayInsert,
	"memory-queued":  queueMemoryQueued,
	"memory-delayed": queueMemoryDelayed,
	"lateness":       queueLateness,
}

const (
	hotKeys          = 1000
	latenessWindow   = 5 * time.Second
	latenessWorkers  = 2
	farDelayBase     = time.Hour
	farDelaySpread   = time.Hour
	limiterBaseDelay = 0
	limiterMaxDelay  = time.Second
)

func namedQueue(name string) workqueue.TypedInterface[string] {
	return workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: name})
}

func namedDelayingQueue(name string) workqueue.TypedDelayingInterface[string] {
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Name: name})
}

func queueKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace-%03d/pod-name-%08d", i%1000, i)
	}
	return keys
}

// spread is SplitMix64 of the index, so both sides give the same key the same delay.
func spread(index int, window time.Duration) time.Duration {
	z := uint64(index+1) * 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return time.Duration((z ^ (z >> 31)) % uint64(window))
}

func queueLockstep(n int) (result, error) {
	keys := queueKeys(n)
	queue := namedQueue("lockstep")
	meter := startMeter()
	for _, key := range keys {
		queue.Add(key)
		item, _ := queue.Get()
		queue.Done(item)
	}
	return meter.stop(n), nil
}

func queueDistinct(n, producers, consumers int) (result, error) {
	keys := queueKeys(n)
	queue := namedQueue("distinct")
	meter := startMeter()
	handled := produceAndConsume(keys, producers, consumers, queue, queue.Add, queue.Done)
	measured := meter.stop(n)
	return measured, expectHandled(handled, n)
}

func queueRateLimited(n int) (result, error) {
	keys := queueKeys(n)
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](limiterBaseDelay, limiterMaxDelay)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		limiter, workqueue.TypedRateLimitingQueueConfig[string]{Name: "rate-limited"})
	meter := startMeter()
	handled := produceAndConsume(keys, 1, 1, queue, queue.AddRateLimited, func(key string) {
		queue.Forget(key)
		queue.Done(key)
	})
	measured := meter.stop(n)
	return measured, expectHandled(handled, n)
}

// produceAndConsume runs a goroutine per producer, each over its own part of the keys, and a goroutine per
// consumer. Shutting down after the last add lets the consumers empty the queue and then end.
func produceAndConsume(
	keys []string, producers, consumers int,
	queue workqueue.TypedInterface[string], add, finish func(string),
) int {
	var adding, working sync.WaitGroup
	var handled atomic.Int64
	for range consumers {
		working.Go(func() {
			own := 0
			for {
				key, shutdown := queue.Get()
				if shutdown {
					break
				}
				finish(key)
				own++
			}
			handled.Add(int64(own))
		})
	}
	for producer := range producers {
		part := keys[producer*len(keys)/producers : (producer+1)*len(keys)/producers]
		adding.Go(func() {
			for _, key := range part {
				add(key)
			}
		})
	}
	adding.Wait()
	queue.ShutDown()
	working.Wait()
	return int(handled.Load())
}

// queueDuplicate adds all keys while all of them are queued. The strings share their bytes with the queued ones, as
// those of a cache do.
func queueDuplicate(n int) (result, error) {
	keys := queueKeys(n)
	queue := filledQueue(keys)
	meter := startMeter()
	for _, key := range keys {
		queue.Add(key)
	}
	measured := meter.stop(n)
	return measured, expectQueued(queue, n)
}

// queueDuplicateHot adds a few strings equal to the queued ones but allocated apart from them, as an event handler
// would.
func queueDuplicateHot(n int) (result, error) {
	queue := filledQueue(queueKeys(hotKeys))
	again := queueKeys(hotKeys)
	meter := startMeter()
	for i := range n {
		queue.Add(again[i%hotKeys])
	}
	measured := meter.stop(n)
	return measured, expectQueued(queue, hotKeys)
}

func filledQueue(keys []string) workqueue.TypedInterface[string] {
	queue := namedQueue("duplicate")
	for _, key := range keys {
		queue.Add(key)
	}
	return queue
}

func expectQueued(queue workqueue.TypedInterface[string], want int) error {
	if queue.Len() != want {
		return fmt.Errorf("%d keys queued after adding duplicates of %d", queue.Len(), want)
	}
	return nil
}

func queueDelayInsert(n int) (result, error) {
	keys := queueKeys(n)
	queue := namedDelayingQueue("delay-insert")
	meter := startMeter()
	delayAll(queue, keys)
	return meter.stop(n), nil
}

// delayAll returns when every key is in the waiting heap. AddAfter only hands the key to a channel that another
// goroutine empties into the heap, so its return says nothing; but the channel is first in first out, so once a
// last key with next to no delay comes out of the queue, that goroutine has inserted all keys before it.
func delayAll(queue workqueue.TypedDelayingInterface[string], keys []string) {
	for i, key := range keys {
		queue.AddAfter(key, farDelayBase+spread(i, farDelaySpread))
	}
	queue.AddAfter("last", time.Nanosecond)
	last, _ := queue.Get()
	queue.Done(last)
}

// The caller holds the keys before the baseline is taken, so the figures leave their bytes out.
func queueMemoryQueued(n int) (result, error) {
	keys := queueKeys(n)
	before := liveHeapBytes()
	meter := startMeter()
	queue := namedQueue("memory")
	for _, key := range keys {
		queue.Add(key)
	}
	measured := meter.stop(n)
	live := liveHeapBytes() - before
	measured.LiveHeapBytes = &live
	runtime.KeepAlive(keys)
	return measured, expectHandled(queue.Len(), n)
}

func queueMemoryDelayed(n int) (result, error) {
	keys := queueKeys(n)
	before := liveHeapBytes()
	meter := startMeter()
	queue := namedDelayingQueue("memory")
	delayAll(queue, keys)
	measured := meter.stop(n)
	live := liveHeapBytes() - before
	measured.LiveHeapBytes = &live
	runtime.KeepAlive(keys)
	runtime.KeepAlive(queue)
	return measured, nil
}

func queueLateness(n int) (result, error) {
	keys := queueKeys(n)
	due := make([]time.Duration, n)
	queue := namedDelayingQueue("lateness")
	late := make([][]time.Duration, latenessWorkers)
	for worker := range late {
		late[worker] = make([]time.Duration, 0, n)
	}
	var remaining atomic.Int64
	remaining.Store(int64(n))
	failures := make(chan error, latenessWorkers)
	epoch := time.Now()

	meter := startMeter()
	var working sync.WaitGroup
	for worker := range latenessWorkers {
		working.Go(func() {
			for {
				key, shutdown := queue.Get()
				if shutdown {
					return
				}
				now := time.Since(epoch)
				index, err := strconv.Atoi(key[len(key)-8:])
				if err != nil {
					failures <- err
					return
				}
				late[worker] = append(late[worker], now-due[index])
				queue.Done(key)
				if remaining.Add(-1) == 0 {
					queue.ShutDown()
				}
			}
		})
	}
	// The due time is read before the call, so it is at or before the queue's own: a delivery ahead of it is early
	// beyond doubt, and lateness includes the cost of the call.
	for i, key := range keys {
		delay := spread(i, latenessWindow)
		due[i] = time.Since(epoch) + delay
		queue.AddAfter(key, delay)
	}
	working.Wait()
	measured := meter.stop(n)

	select {
	case err := <-failures:
		return result{}, err
	default:
	}
	all := slices.Concat(late...)
	slices.Sort(all)
	if err := expectHandled(len(all), n); err != nil {
		return result{}, err
	}
	if all[0] < 0 {
		return result{}, fmt.Errorf("a key came %v before it was due", -all[0])
	}
	var sum time.Duration
	for _, lateness := range all {
		sum += lateness
	}
	milliseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	measured.Figures = map[string]float64{
		"late_mean_ms": milliseconds(sum) / float64(n),
		"late_p99_ms":  milliseconds(all[(n*99+99)/100-1]),
		"late_max_ms":  milliseconds(all[n-1]),
	}
	return measured, nil
}

func expectHandled(handled, want int) error {
	if handled != want {
		return fmt.Errorf("%d keys handled, want %d", handled, want)
	}
	return nil
}
