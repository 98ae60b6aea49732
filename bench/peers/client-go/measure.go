package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// result is the line the harness reads; its names are those of the Rust side's `Measurement`.
type result struct {
	Operations    int                `json:"operations"`
	WallNs        int64              `json:"wall_ns"`
	CPUNs         int64              `json:"cpu_ns"`
	PeakRSSBytes  *int64             `json:"peak_rss_bytes"`
	LiveHeapBytes *int64             `json:"live_heap_bytes"`
	Figures       map[string]float64 `json:"figures,omitempty"`
}

// meter spans the timed part of a run. CPU is the whole process, so the garbage collector's and the runtime's
// own threads count, as they do in production.
type meter struct {
	wall time.Time
	cpu  int64
}

// startMeter collects first, so that garbage from preparing the run is not paid for inside it.
func startMeter() meter {
	runtime.GC()
	runtime.GC()
	return meter{cpu: processCPUNs(), wall: time.Now()}
}

func (m meter) stop(operations int) result {
	wall := time.Since(m.wall).Nanoseconds()
	return result{Operations: operations, WallNs: wall, CPUNs: processCPUNs() - m.cpu}
}

func processCPUNs() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // cannot fail for RUSAGE_SELF and a valid pointer
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// liveHeapBytes is what is still reachable: the second collection finishes the sweep of what the first one found.
func liveHeapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// peakRSSBytes is nil where there is no /proc. Not ru_maxrss: that one starts from the parent's size.
func peakRSSBytes() *int64 { return statusBytes("VmHWM:") }

// rssBytes is the resident memory now.
func rssBytes() *int64 { return statusBytes("VmRSS:") }

func statusBytes(name string) *int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, name); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return nil
			}
			bytes := kib * 1024
			return &bytes
		}
	}
	return nil
}
