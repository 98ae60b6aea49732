package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// replayServer is the process of the replay server, which ends with this one.
type replayServer struct {
	url     string
	process *exec.Cmd
	input   io.WriteCloser
}

// startReplay starts the server where the harness says it is, on the CPU that the harness says.
func startReplay(pods int, encoding string) (*replayServer, error) {
	program := os.Getenv("REPLAY_PROGRAM")
	if program == "" {
		return nil, errors.New("REPLAY_PROGRAM is not set; the harness sets it")
	}
	arguments := []string{program, "-pods", fmt.Sprint(pods), "-encodings", encoding}
	if cpu := os.Getenv("REPLAY_CPU"); cpu != "" {
		arguments = append([]string{"taskset", "-c", cpu}, arguments...)
	}
	process := exec.Command(arguments[0], arguments[1:]...)
	process.Stderr = os.Stderr
	input, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	address, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the replay server ended before it listened: %w", err)
	}
	return &replayServer{url: "http://" + strings.TrimSpace(address), process: process, input: input}, nil
}

// stop ends the server, and waits so that its CPU time counts as that of this run and not as that of others.
func (s *replayServer) stop() {
	_ = s.input.Close()
	_ = s.process.Wait()
}

func (s *replayServer) order(query string) error {
	response, err := http.Get(s.url + query)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", query, response.Status)
	}
	var answer struct{ ResourceVersion string }
	return json.NewDecoder(response.Body).Decode(&answer)
}
