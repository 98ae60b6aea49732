// Command etcd-snapshot saves a snapshot of a running etcd server and restores one into a new data directory.
//
//	etcd-snapshot save    ENDPOINT FILE
//	etcd-snapshot restore FILE DATA_DIR PEER_URL
//
// A restored server counts revisions from the snapshot on: the revision is neither bumped nor marked as compacted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

const (
	memberName  = "default"
	saveTimeout = time.Minute
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "etcd-snapshot:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	manager := snapshot.NewV3(zap.NewNop())
	switch {
	case len(args) == 3 && args[0] == "save":
		ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
		defer cancel()
		_, err := manager.Save(ctx, clientv3.Config{Endpoints: []string{args[1]}}, args[2])
		return err
	case len(args) == 4 && args[0] == "restore":
		return manager.Restore(snapshot.RestoreConfig{
			SnapshotPath:        args[1],
			Name:                memberName,
			OutputDataDir:       args[2],
			PeerURLs:            []string{args[3]},
			InitialCluster:      memberName + "=" + args[3],
			InitialClusterToken: "watchkeeper-real",
		})
	default:
		return errors.New("usage: save ENDPOINT FILE | restore FILE DATA_DIR PEER_URL")
	}
}
