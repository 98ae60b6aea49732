package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

func serving(t *testing.T, pods int) (*world, string) {
	t.Helper()
	w, err := newWorld(7, pods, true, true)
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer((&server{world: w}).handler())
	t.Cleanup(listening.CloseClientConnections)
	return w, listening.URL
}

func get(t *testing.T, url string) []byte {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", response.Status, body, err)
	}
	return body
}

func TestThePodsHaveTheShapeThatTheSuiteClaims(t *testing.T) {
	w, err := newWorld(1, 5000, true, true)
	if err != nil {
		t.Fatal(err)
	}
	shape, err := shapeOf(w.live)
	if err != nil {
		t.Fatal(err)
	}
	within := func(name string, value, least, most int) {
		if value < least || value > most {
			t.Errorf("%s is %d, want %d to %d", name, value, least, most)
		}
	}
	within("mean size", shape["json"].Mean, 8_500, 10_000)
	within("mean size of managedFields", shape["json of managedFields"].Mean, 3_400, 4_200)
	within("smallest pod", shape["json"].Min, 3_000, 6_500)
	within("largest pod", shape["json"].Max, 15_000, 40_000)
	within("most containers", shape["containers"].Max, 5, 6)
	within("fewest labels", shape["labels"].Min, 2, 2)
	within("most labels", shape["labels"].Max, 12, 16)
}

func TestASeedMakesTheSamePodsEachTimeAndAnotherSeedMakesOthers(t *testing.T) {
	of := func(seed uint64) []byte {
		w, err := newWorld(seed, 50, true, false)
		if err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		for _, one := range w.live {
			all.Write(one.json)
		}
		return all.Bytes()
	}
	if !bytes.Equal(of(3), of(3)) {
		t.Error("the same seed made other pods")
	}
	if bytes.Equal(of(3), of(4)) {
		t.Error("another seed made the same pods")
	}
}

// The envelopes are written by hand; the encoders of the libraries are the reference.
func TestObjectsAreTheBytesOfTheLibrarysEncoders(t *testing.T) {
	w, _ := serving(t, 3)
	for _, kind := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), kind)
		encoder := scheme.Codecs.EncoderForVersion(info.Serializer, schema.GroupVersion{Version: "v1"})
		var pod corev1.Pod
		if err := json.Unmarshal(append([]byte{'{'}, w.live[1].json...), &pod); err != nil {
			t.Fatal(err)
		}
		var want, got bytes.Buffer
		if err := encoder.Encode(&pod, &want); err != nil {
			t.Fatal(err)
		}
		view{isProto: kind == runtime.ContentTypeProtobuf}.writeObject(&got, w.live[1])
		if !bytes.Equal(want.Bytes(), got.Bytes()) {
			t.Errorf("%s:\n got %q\nwant %q", kind, got.Bytes(), want.Bytes())
		}
	}
}

func TestClientsReadListsAndWatchesInEachEncoding(t *testing.T) {
	for _, kind := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		w, url := serving(t, 30)
		client, err := kubernetes.NewForConfig(&rest.Config{Host: url, ContentConfig: rest.ContentConfig{ContentType: kind}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		listed := map[string]corev1.Pod{}
		options := metav1.ListOptions{Limit: 7}
		for {
			page, err := client.CoreV1().Pods("").List(ctx, options)
			if err != nil {
				t.Fatal(kind, err)
			}
			for _, pod := range page.Items {
				listed[pod.Namespace+"/"+pod.Name] = pod
			}
			if options.Continue = page.Continue; options.Continue == "" {
				break
			}
		}
		if len(listed) != 30 {
			t.Fatalf("%s: %d pods", kind, len(listed))
		}

		isSent := true
		events, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{
			SendInitialEvents: &isSent, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		if err != nil {
			t.Fatal(kind, err)
		}
		for range 30 {
			added := (<-events.ResultChan()).Object.(*corev1.Pod)
			pod := listed[added.Namespace+"/"+added.Name]
			if !equality.Semantic.DeepEqual(&pod.Status, &added.Status) || len(added.ManagedFields) < 2 {
				t.Fatalf("%s: %s differs in list and watch", kind, added.Name)
			}
		}
		bookmark := <-events.ResultChan()
		if bookmark.Type != watch.Bookmark || bookmark.Object.(*corev1.Pod).Annotations[metav1.InitialEventsAnnotationKey] != "true" {
			t.Fatalf("%s: %v", kind, bookmark)
		}
		get(t, url+"/trigger?events=20&added=5&deleted=2")
		counts := map[watch.EventType]int{}
		for range 27 {
			counts[(<-events.ResultChan()).Type]++
		}
		if want := fmt.Sprint(map[watch.EventType]int{watch.Modified: 20, watch.Added: 5, watch.Deleted: 2}); fmt.Sprint(counts) != want {
			t.Errorf("%s: %v, want %v", kind, counts, want)
		}
		if len(w.live) != 33 {
			t.Errorf("%s: %d pods are left", kind, len(w.live))
		}
		get(t, url+"/expire")
		if last := <-events.ResultChan(); last.Type != watch.Error || last.Object.(*metav1.Status).Code != 410 {
			t.Errorf("%s: %v", kind, last)
		}
		namespace, name, _ := strings.Cut(w.live[0].key, "/")
		if pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil || pod.UID == "" {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestMetadataAloneIsServed(t *testing.T) {
	for _, kind := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		w, url := serving(t, 5)
		client, err := metadata.NewForConfig(&rest.Config{Host: url, ContentConfig: rest.ContentConfig{AcceptContentTypes: kind}})
		if err != nil {
			t.Fatal(err)
		}
		list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).List(context.Background(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 5 {
			t.Fatalf("%s: %v", kind, err)
		}
		if got := list.Items[2].Namespace + "/" + list.Items[2].Name; got != w.live[2].key || len(list.Items[2].ManagedFields) < 2 {
			t.Errorf("%s: %s", kind, got)
		}
	}
}
