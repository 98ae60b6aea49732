package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// firstVersion is the resourceVersion of the collection before anything changed.
const firstVersion = 1_000_000

// origin tells how to render further versions of a pod.
type origin struct {
	workload *workload
	number   int
	changes  int
	position int // in live
}

// event is a change, as watches deliver it.
type event struct {
	kind string
	one  *rendered
}

// world is the collection of pods and its history. Everything is rendered before it is released.
type world struct {
	seed                uint64
	withJSON, withProto bool

	mutex   sync.Mutex
	changed *sync.Cond
	// live are the pods in the order of their keys, as a server lists them.
	live    []*rendered
	origins map[string]*origin
	log     []event
	version uint64 // of the last change that is rendered
	served  uint64 // of the last change that is released
	oldest  uint64 // watches from before it are expired
	// workloads are made in the order of their numbers, and pods in the order of their workloads.
	workloads int
	rest      []origin
	random    *rand.Rand
}

func newWorld(seed uint64, pods int, withJSON, withProto bool) (*world, error) {
	w := &world{
		seed: seed, withJSON: withJSON, withProto: withProto, origins: make(map[string]*origin, pods),
		version: firstVersion, served: firstVersion, random: newRand(seed, 1<<40),
	}
	w.changed = sync.NewCond(&w.mutex)
	for number := range pods {
		one, err := w.next(uint64(100_000 + number))
		if err != nil {
			return nil, err
		}
		w.live = append(w.live, one)
	}
	w.sort()
	return w, nil
}

// next makes one more pod.
func (w *world) next(version uint64) (*rendered, error) {
	for {
		if len(w.rest) == 0 {
			owner, err := newWorkload(w.seed, w.workloads)
			if err != nil {
				return nil, err
			}
			w.workloads++
			for number := range owner.replicas {
				w.rest = append(w.rest, origin{workload: owner, number: number})
			}
		}
		from := w.rest[0]
		w.rest = w.rest[1:]
		one, err := w.render(&from, version)
		if err != nil {
			return nil, err
		}
		// Random names may collide, as they do on a server, which then makes another.
		if w.origins[one.key] == nil {
			w.origins[one.key] = &from
			return one, nil
		}
	}
}

func (w *world) render(from *origin, version uint64) (*rendered, error) {
	pod, err := from.workload.pod(from.number, from.changes, version)
	if err != nil {
		return nil, err
	}
	return render(pod, version, w.withJSON, w.withProto)
}

func (w *world) sort() {
	slices.SortFunc(w.live, func(one, other *rendered) int { return strings.Compare(one.key, other.key) })
	for position, one := range w.live {
		w.origins[one.key].position = position
	}
}

// order is what a client wants to happen.
type order struct {
	events, added, deleted int
	// rate is in events per second; zero is as fast as they can be written.
	rate int
}

// prepare renders the events of an order and applies them to the collection.
func (w *world) prepare(o order) ([]event, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if o.deleted > len(w.live) || (o.events > 0 && len(w.live) == 0) {
		return nil, fmt.Errorf("there are only %d pods", len(w.live))
	}
	events := make([]event, 0, o.events+o.added+o.deleted)
	for range o.events {
		position := w.random.IntN(len(w.live))
		from := w.origins[w.live[position].key]
		from.changes++
		w.version++
		one, err := w.render(from, w.version)
		if err != nil {
			return nil, err
		}
		w.live[position] = one
		events = append(events, event{"MODIFIED", one})
	}
	for range o.added {
		w.version++
		one, err := w.next(w.version)
		if err != nil {
			return nil, err
		}
		w.live = append(w.live, one)
		events = append(events, event{"ADDED", one})
	}
	for range o.deleted {
		w.version++
		position := w.random.IntN(len(w.live))
		last := w.live[position]
		w.live = slices.Delete(w.live, position, position+1)
		one, err := w.render(w.origins[last.key], w.version)
		if err != nil {
			return nil, err
		}
		delete(w.origins, last.key)
		events = append(events, event{"DELETED", one})
	}
	if o.added+o.deleted > 0 {
		w.sort()
	}
	return events, nil
}

// release hands events to the watches, in steps of ten milliseconds if there is a rate.
func (w *world) release(events []event, rate int) {
	start, released := time.Now(), 0
	for released < len(events) {
		due := len(events)
		if rate > 0 {
			due = min(due, int(time.Since(start).Seconds()*float64(rate))+1)
		}
		w.mutex.Lock()
		w.log = append(w.log, events[released:due]...)
		w.served = w.log[len(w.log)-1].one.resourceVersion
		w.mutex.Unlock()
		w.changed.Broadcast()
		if released = due; released < len(events) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// expire forgets the history: watches end, and watches from before are refused.
func (w *world) expire() uint64 {
	w.mutex.Lock()
	w.version++
	w.served, w.oldest, w.log = w.version, w.version, nil
	w.mutex.Unlock()
	w.changed.Broadcast()
	return w.oldest
}

// list is a copy of the collection, and its version.
func (w *world) list() ([]*rendered, uint64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.live), w.version
}

// named is the pod of a key.
func (w *world) named(key string) *rendered {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if from := w.origins[key]; from != nil {
		return w.live[from.position]
	}
	return nil
}

// after waits for events beyond a version, and returns them. ok is false if the version is expired.
func (w *world) after(version uint64, isOver func() bool) (events []event, ok bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for {
		if version < w.oldest {
			return nil, false
		}
		from, _ := slices.BinarySearchFunc(w.log, version+1, func(one event, wanted uint64) int {
			return int(int64(one.one.resourceVersion) - int64(wanted))
		})
		if from < len(w.log) {
			return slices.Clone(w.log[from:]), true
		}
		if isOver() {
			return nil, true
		}
		w.changed.Wait()
	}
}
