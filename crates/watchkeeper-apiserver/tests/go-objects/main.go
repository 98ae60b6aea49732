// Prints a random object of each built-in kind in the encoding of Go: group, version, plural, then the object in protobuf
// (base64) and in JSON. The decoding tests read objects.tsv, which is generated with
//
//	go run . ../../src/kinds/kinds.tsv > objects.tsv
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	filler := filler()
	kinds := bufio.NewScanner(file)
	for kinds.Scan() {
		if strings.HasPrefix(kinds.Text(), "#") {
			continue
		}
		cells := strings.Split(kinds.Text(), "\t")
		kind := schema.GroupVersionKind{Group: cells[0], Version: cells[1], Kind: cells[4]}
		// Kinds of the extension and aggregation servers are not in this scheme.
		if object, err := scheme.Scheme.New(kind); err == nil {
			filler.Fill(object)
			print(cells[:3], kind, object)
		}
	}
}

func print(path []string, kind schema.GroupVersionKind, object runtime.Object) {
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	object.GetObjectKind().SetGroupVersionKind(kind)
	var message bytes.Buffer
	if err := serializer.Encode(object, &message); err != nil {
		panic(err)
	}
	// A server writes an object after decoding it, so the object is decoded first.
	read, _, err := serializer.Decode(message.Bytes(), nil, nil)
	if err != nil {
		panic(err)
	}
	read.GetObjectKind().SetGroupVersionKind(kind)
	text, err := json.Marshal(read)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\t%s\t%s\n", strings.Join(path, "\t"), base64.StdEncoding.EncodeToString(message.Bytes()), text)
}

// Values that survive a round trip: times to the second or microsecond, quantities in canonical form.
func filler() *randfill.Filler {
	return randfill.New().NilChance(.45).NumElements(1, 2).MaxDepth(12).RandSource(rand.NewSource(37)).Funcs(
		func(value *metav1.Time, from randfill.Continue) { *value = metav1.Unix(int64(from.Uint32()), 0) },
		func(value *metav1.MicroTime, from randfill.Continue) {
			value.Time = time.Unix(int64(from.Uint32()), int64(from.Uint32()%1_000_000)*1000).UTC()
		},
		func(value *resource.Quantity, from randfill.Continue) {
			*value = *resource.NewQuantity(int64(from.Uint32()%5000), resource.DecimalSI)
		},
		func(value *intstr.IntOrString, from randfill.Continue) {
			*value = intstr.FromInt32(int32(from.Uint32() % 100))
			if from.Bool() {
				*value = intstr.FromString("50%")
			}
		},
		func(value *runtime.RawExtension, from randfill.Continue) { value.Raw = []byte(`{"a":[1,"b"]}`) },
		func(value *metav1.FieldsV1, from randfill.Continue) { value.Raw = []byte(`{"f:a":{}}`) },
		func(value *string, from randfill.Continue) { *value = fmt.Sprintf("s%d", from.Uint32()%1000) },
		func(value *int32, from randfill.Continue) { *value = int32(from.Uint32()) },
		func(value *int64, from randfill.Continue) { *value = int64(from.Uint64()) },
	)
}
