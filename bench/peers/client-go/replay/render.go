package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rendered is one version of a pod in the encodings that are served. Lists and events contain the same bytes.
type rendered struct {
	key             string
	node            string
	resourceVersion uint64
	// json has the members from metadata on, without the opening brace and with the closing one.
	json []byte
	// jsonMetadata is the length of the metadata in it.
	jsonMetadata int
	proto        []byte
	// protoMetadata is the length of the metadata, which is the first field.
	protoMetadata int
}

func render(pod *corev1.Pod, resourceVersion uint64, withJSON, withProto bool) (*rendered, error) {
	one := &rendered{key: pod.Namespace + "/" + pod.Name, node: pod.Spec.NodeName, resourceVersion: resourceVersion}
	if withJSON {
		metadata, err := json.Marshal(&pod.ObjectMeta)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(pod)
		if err != nil {
			return nil, err
		}
		one.json = text[1:]
		one.jsonMetadata = len(`"metadata":`) + len(metadata)
		if !bytes.HasSuffix(text[1:1+one.jsonMetadata], metadata) {
			return nil, fmt.Errorf("the metadata of %s is not its first member", one.key)
		}
	}
	if withProto {
		message, err := pod.Marshal()
		if err != nil {
			return nil, err
		}
		length, size := binary.Uvarint(message[1:])
		one.proto, one.protoMetadata = message, 1+size+int(length)
	}
	return one, nil
}

// view is an encoding of an object, whole or its metadata only.
type view struct {
	isProto, isMetadata bool
}

func (v view) contentType(isWatch bool) string {
	kind := "application/json"
	if v.isProto {
		kind = "application/vnd.kubernetes.protobuf"
	}
	if v.isProto && isWatch {
		kind += ";stream=watch"
	}
	return kind
}

func (v view) typeMeta(isList bool) metav1.TypeMeta {
	meta := metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	if v.isMetadata {
		meta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
	}
	if isList {
		meta.Kind += "List"
	}
	return meta
}

func (v view) jsonTypes(isList bool) string {
	meta := v.typeMeta(isList)
	return fmt.Sprintf(`"kind":%q,"apiVersion":%q,`, meta.Kind, meta.APIVersion)
}

func (v view) protoPart(one *rendered) []byte {
	if v.isMetadata {
		return one.proto[:one.protoMetadata]
	}
	return one.proto
}

// writeJSON writes an object after its opening brace.
func (v view) writeJSON(out io.Writer, one *rendered) {
	if v.isMetadata {
		out.Write(one.json[:one.jsonMetadata])
		io.WriteString(out, "}")
		return
	}
	out.Write(one.json)
}

// appendField appends the tag and the length of a field of bytes.
func appendField(out []byte, number byte, length int) []byte {
	return binary.AppendUvarint(append(out, number<<3|2), uint64(length))
}

// unknownHead is the envelope of an object up to its bytes, and unknownTail what follows them.
func (v view) unknownHead(isList bool, length int) []byte {
	types := v.typeMeta(isList)
	meta := append(appendField(nil, 1, len(types.APIVersion)), types.APIVersion...)
	meta = append(appendField(meta, 2, len(types.Kind)), types.Kind...)
	out := append([]byte{'k', '8', 's', 0}, appendField(nil, 1, len(meta))...)
	return appendField(append(out, meta...), 2, length)
}

// unknownTail is an empty content encoding and an empty content type, as the Go encoder writes them.
var unknownTail = []byte{0x1a, 0, 0x22, 0}

// writeEvent writes an event of a watch.
func (v view) writeEvent(out io.Writer, kind string, one *rendered) {
	if !v.isProto {
		io.WriteString(out, `{"type":"`+kind+`","object":{`+v.jsonTypes(false))
		v.writeJSON(out, one)
		io.WriteString(out, "}\n")
		return
	}
	v.writeProtoEvent(out, kind, v.protoPart(one))
}

func (v view) writeProtoEvent(out io.Writer, kind string, object []byte) {
	head := v.unknownHead(false, len(object))
	whole := len(head) + len(object) + len(unknownTail)
	raw := appendField(nil, 1, whole)
	event := append(appendField(nil, 1, len(kind)), kind...)
	event = append(appendField(event, 2, len(raw)+whole), raw...)
	event = append(event, head...)
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(event)+len(object)+len(unknownTail)))
	out.Write(append(frame, event...))
	out.Write(object)
	out.Write(unknownTail)
}

// writeBookmark writes the end of the initial events.
func (v view) writeBookmark(out io.Writer, resourceVersion uint64) error {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: fmt.Sprint(resourceVersion), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	one, err := render(&pod, resourceVersion, !v.isProto, v.isProto)
	if err == nil {
		v.writeEvent(out, "BOOKMARK", one)
	}
	return err
}

// expired is the status of a watch from a version that is no longer in the history.
func expired() metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: 410,
		Reason: metav1.StatusReasonExpired, Message: "too old resource version",
	}
}

func (v view) writeExpired(out io.Writer) error {
	status := expired()
	if !v.isProto {
		text, err := json.Marshal(&status)
		if err == nil {
			fmt.Fprintf(out, `{"type":"ERROR","object":%s}`+"\n", text)
		}
		return err
	}
	message, err := status.Marshal()
	if err == nil {
		statusView{}.write(out, message)
	}
	return err
}

// statusView is the envelope of a status, whose type is neither the pod's nor that of its metadata.
type statusView struct{}

func (statusView) write(out io.Writer, message []byte) {
	meta := append(appendField(nil, 1, 2), "v1"...)
	meta = append(appendField(meta, 2, 6), "Status"...)
	object := append([]byte{'k', '8', 's', 0}, appendField(nil, 1, len(meta))...)
	object = appendField(append(object, meta...), 2, len(message))
	object = append(append(object, message...), unknownTail...)
	raw := append(appendField(nil, 1, len(object)), object...)
	event := append(appendField(nil, 1, 5), "ERROR"...)
	event = append(appendField(event, 2, len(raw)), raw...)
	out.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...))
}

// writeList writes a page of a list.
func (v view) writeList(out io.Writer, meta metav1.ListMeta, items []*rendered) error {
	if !v.isProto {
		text, err := json.Marshal(&meta)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, `{%s"metadata":%s,"items":[`, v.jsonTypes(true), text)
		for i, one := range items {
			separator := ",{"
			if i == 0 {
				separator = "{"
			}
			if v.isMetadata {
				separator += v.jsonTypes(false)
			}
			io.WriteString(out, separator)
			v.writeJSON(out, one)
		}
		io.WriteString(out, "]}\n")
		return nil
	}
	message, err := meta.Marshal()
	if err != nil {
		return err
	}
	head := append(appendField(nil, 1, len(message)), message...)
	length := len(head)
	for _, one := range items {
		part := v.protoPart(one)
		length += len(appendField(nil, 2, len(part))) + len(part)
	}
	out.Write(v.unknownHead(true, length))
	out.Write(head)
	field := make([]byte, 0, 8)
	for _, one := range items {
		part := v.protoPart(one)
		out.Write(appendField(field, 2, len(part)))
		out.Write(part)
	}
	out.Write(unknownTail)
	return nil
}

// writeObject writes a single object.
func (v view) writeObject(out io.Writer, one *rendered) {
	if !v.isProto {
		io.WriteString(out, "{"+v.jsonTypes(false))
		v.writeJSON(out, one)
		io.WriteString(out, "\n")
		return
	}
	part := v.protoPart(one)
	out.Write(v.unknownHead(false, len(part)))
	out.Write(part)
	out.Write(unknownTail)
}
