// client-go's shared informer and typed clients, against the server named by -kubeconfig.
//
// Prints one line for each event, which the test compares: "synced N", "add NAME RV", "update NAME RV",
// "delete NAME". Writes go through the typed client, which sends protobuf; the program waits for the events of its writes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the file the server wrote")
	namespace := flag.String("namespace", "default", "where to work")
	flag.Parse()
	if err := run(*kubeconfig, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// Protobuf for built-in kinds, as in controllers.
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	seen := make(chan string, 1024)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { seen <- line("add", object) },
		UpdateFunc: func(_, object any) { seen <- line("update", object) },
		DeleteFunc: func(object any) { seen <- line("delete", object) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the cache never synced")
	}
	fmt.Printf("synced %d\n", len(informer.GetStore().List()))

	maps := client.CoreV1().ConfigMaps(namespace)
	created, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "from-go"},
		Data:       map[string]string{"step": "created"},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	created.Data["step"] = "updated"
	updated, err := maps.Update(ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	patch := []byte(`{"data":{"step":"patched"}}`)
	patched, err := maps.Patch(ctx, "from-go", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	if updated.ResourceVersion == patched.ResourceVersion {
		return fmt.Errorf("a patch that changed something kept the resourceVersion %s", patched.ResourceVersion)
	}
	if err := maps.Delete(ctx, "from-go", metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if err := lease(ctx, config, namespace); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the delete was never seen")
		case line := <-seen:
			fmt.Println(line)
			if line == "delete from-go" {
				return nil
			}
		}
	}
}

// lease does the requests of leader election: create, then update the object that was read.
func lease(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	holder, seconds := "from-go", int32(15)
	// Rounded to the precision of the encoding.
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	leases := client.CoordinationV1().Leases(namespace)
	_, err = leases.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "leader"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create lease: %w", err)
	}
	read, err := leases.Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get lease: %w", err)
	}
	if read.Spec.RenewTime == nil || !read.Spec.RenewTime.Equal(&now) {
		return fmt.Errorf("the lease's renew time came back as %v, not %v", read.Spec.RenewTime, now)
	}
	later := metav1.NewMicroTime(now.Add(time.Second))
	read.Spec.RenewTime = &later
	if _, err := leases.Update(ctx, read, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update lease: %w", err)
	}
	return nil
}

func line(what string, object any) string {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return fmt.Sprintf("%s of a %T", what, object)
	}
	if what == "delete" {
		return what + " " + configMap.Name
	}
	return fmt.Sprintf("%s %s %s", what, configMap.Name, configMap.Data["step"])
}
