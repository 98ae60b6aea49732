// Command follower keeps caches with client-go's shared informers and responds to requests about them, one per line.
//
//	follower NAMESPACE
//
// The kubeconfig is $KUBECONFIG. The caches contain the ConfigMaps and the Widgets of the namespace, with client-go's
// default settings. The line protocol is described in tests/real/README.md.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

var widgets = schema.GroupVersionResource{Group: "real.watchkeeper.dev", Version: "v1", Resource: "widgets"}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "follower:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: follower NAMESPACE")
	}
	namespace := args[0]
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}

	typedFactory := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(namespace))
	dynamicFactory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, 0, namespace, nil)
	followed := map[string]cache.SharedIndexInformer{
		"configmaps": typedFactory.Core().V1().ConfigMaps().Informer(),
		"widgets":    dynamicFactory.ForResource(widgets).Informer(),
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	typedFactory.StartWithContext(ctx)
	dynamicFactory.Start(ctx.Done())

	out := bufio.NewWriter(os.Stdout)
	requests := bufio.NewScanner(os.Stdin)
	for requests.Scan() {
		if err := answer(out, followed, strings.Fields(requests.Text())); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return requests.Err()
}

func answer(out *bufio.Writer, followed map[string]cache.SharedIndexInformer, request []string) error {
	if len(request) < 2 || followed[request[1]] == nil {
		return fmt.Errorf("request %q: want COMMAND configmaps|widgets [KEY]", request)
	}
	informer := followed[request[1]]
	switch {
	case request[0] == "status" && len(request) == 2:
		synced := "not synced"
		if informer.HasSynced() {
			synced = "synced"
		}
		fmt.Fprintf(out, "%s at %s\n", synced, informer.LastSyncResourceVersion())
	case request[0] == "get" && len(request) == 3:
		object, exists, err := informer.GetStore().GetByKey(request[2])
		if err != nil {
			return err
		}
		if exists {
			return writeObject(out, object)
		}
		fmt.Fprintln(out, "absent")
	case request[0] == "dump" && len(request) == 2:
		for _, object := range informer.GetStore().List() {
			if err := writeObject(out, object); err != nil {
				return err
			}
		}
		fmt.Fprintln(out, "end")
	default:
		return fmt.Errorf("request %q: want get, dump or status", request)
	}
	return nil
}

func writeObject(out *bufio.Writer, object any) error {
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		return err
	}
	metadata, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s %s %s\n", key, metadata.GetUID(), metadata.GetResourceVersion())
	return err
}
