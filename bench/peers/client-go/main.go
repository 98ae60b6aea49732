// The client-go side of the benchmarks: runs one row of one suite and prints one JSON line.
//
//	client-go-peer <suite> <row> <operations>
//
// The harness starts it afresh for every run. A suite is one file with one function that maps row names to runs.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

var suites = map[string]map[string]func(operations int) (result, error){
	"cluster": clusterRows,
	"queue":   queueRows,
	"store":   storeRows,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "client-go-peer:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("want <suite> <row> <operations>, got %d arguments", len(args))
	}
	row, ok := suites[args[0]][args[1]]
	if !ok {
		return fmt.Errorf("no row %s/%s in this peer", args[0], args[1])
	}
	operations, err := strconv.Atoi(args[2])
	if err != nil || operations <= 0 {
		return fmt.Errorf("operations must be a positive number, got %q", args[2])
	}
	measured, err := row(operations)
	if err != nil {
		return fmt.Errorf("%s/%s: %w", args[0], args[1], err)
	}
	measured.PeakRSSBytes = peakRSSBytes()
	return json.NewEncoder(os.Stdout).Encode(measured)
}
