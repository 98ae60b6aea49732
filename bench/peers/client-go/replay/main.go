// The replay server of the benchmarks: an API server of pods that are rendered beforehand, so that serving is only writes.
//
//	replay -pods 50000 -encodings json,protobuf
//
// It prints its address when it is ready, and ends when standard input does. The pods are the same ones each time: see
// workload.go for their variety. Nothing changes until a client asks for it:
//
//	/trigger?events=1000          MODIFIED events with a changed status, as fast as they can be written
//	/trigger?events=1000&rate=50  the same, 50 per second
//	/trigger?added=100            new pods; likewise deleted=
//	/expire                       ends all watches with 410 and refuses older versions
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(2)
	}
}

func run() error {
	pods := flag.Int("pods", 10_000, "pods of the first list")
	seed := flag.Uint64("seed", 1, "another seed makes other pods")
	encodings := flag.String("encodings", "json,protobuf", "rendered encodings")
	compresses := flag.Bool("gzip", false, "compress lists for clients that accept it")
	shape := flag.Bool("shape", false, "print the distribution of sizes as JSON, and end")
	flag.Parse()
	withJSON, withProto := strings.Contains(*encodings, "json"), strings.Contains(*encodings, "protobuf")
	if !withJSON && !withProto || *pods < 0 {
		return fmt.Errorf("want a number of pods, and json or protobuf or both, not %d and %q", *pods, *encodings)
	}
	world, err := newWorld(*seed, *pods, withJSON, withProto)
	if err != nil {
		return err
	}
	if *shape {
		return printShape(world)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, (&server{world: world, compresses: *compresses}).handler())
}
