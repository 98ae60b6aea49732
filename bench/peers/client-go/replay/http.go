package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// chunkBytes is how much is written at once.
const chunkBytes = 64 << 10

// server answers the requests of clients, by writing what is rendered.
type server struct {
	world *world
	// compresses is whether lists are compressed for clients that accept it.
	compresses bool
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/pods", func(w http.ResponseWriter, r *http.Request) { s.collection(w, r, "") })
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods", func(w http.ResponseWriter, r *http.Request) {
		s.collection(w, r, r.PathValue("namespace"))
	})
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{name}", s.single)
	mux.HandleFunc("GET /trigger", s.trigger)
	mux.HandleFunc("GET /expire", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"resourceVersion":"%d"}`, s.world.expire())
	})
	for path, body := range map[string]string{
		"/version": `{"major":"1","minor":"37","gitVersion":"v1.37.0"}`,
		"/api":     `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":    `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod",` +
			`"namespaced":true,"kind":"Pod","verbs":["get","list","watch"]}]}`,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, body)
		})
	}
	return mux
}

// viewOf is the first encoding that a client accepts and that is rendered.
func (s *server) viewOf(r *http.Request) (view, error) {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		kind, parameters, _ := strings.Cut(strings.TrimSpace(accepted), ";")
		v := view{isProto: kind == "application/vnd.kubernetes.protobuf", isMetadata: strings.Contains(parameters, "as=PartialObjectMetadata")}
		isKnown := v.isProto || kind == "application/json" || kind == "*/*" || kind == ""
		if isKnown && !strings.Contains(parameters, "as=Table") && (v.isProto && s.world.withProto || !v.isProto && s.world.withJSON) {
			return v, nil
		}
	}
	return view{}, fmt.Errorf("no encoding in %q is rendered", r.Header.Get("Accept"))
}

func (s *server) collection(w http.ResponseWriter, r *http.Request, namespace string) {
	v, err := s.viewOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotAcceptable)
		return
	}
	query := r.URL.Query()
	isWanted, err := selection(query.Get("labelSelector"), query.Get("fieldSelector"), namespace)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	isWatch := query.Get("watch") == "true" || query.Get("watch") == "1"
	w.Header().Set("Content-Type", v.contentType(isWatch))
	if isWatch {
		s.watch(w, r, v, isWanted)
		return
	}
	if err := s.page(w, r, v, isWanted); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// selection is a filter of keys. There are no other selectors.
func selection(labels, fields, namespace string) (func(*rendered) bool, error) {
	name, isNamed := strings.CutPrefix(fields, "metadata.name=")
	if labels != "" || fields != "" && !isNamed {
		return nil, fmt.Errorf("selectors are not supported: labels %q, fields %q", labels, fields)
	}
	return func(one *rendered) bool {
		in, named, _ := strings.Cut(one.key, "/")
		return (namespace == "" || in == namespace) && (!isNamed || named == name)
	}, nil
}

func (s *server) page(w http.ResponseWriter, r *http.Request, v view, isWanted func(*rendered) bool) error {
	query := r.URL.Query()
	all, version := s.world.list()
	items := all[:0]
	for _, one := range all {
		if isWanted(one) {
			items = append(items, one)
		}
	}
	first, limit := 0, len(items)
	var err error
	if token := query.Get("continue"); token != "" {
		if first, err = strconv.Atoi(token); err != nil || first < 0 || first > len(items) {
			return fmt.Errorf("invalid continue token %q", token)
		}
	}
	if text := query.Get("limit"); text != "" && text != "0" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			return fmt.Errorf("invalid limit %q", text)
		}
	}
	end := min(first+limit, len(items))
	meta := metav1.ListMeta{ResourceVersion: fmt.Sprint(version)}
	if left := int64(len(items) - end); left > 0 {
		meta.Continue, meta.RemainingItemCount = strconv.Itoa(end), &left
	}
	var out io.Writer = w
	if s.compresses && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		zipped, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
		defer zipped.Close()
		out = zipped
	}
	buffered := bufio.NewWriterSize(out, chunkBytes)
	defer buffered.Flush()
	return v.writeList(buffered, meta, items[first:end])
}

func (s *server) single(w http.ResponseWriter, r *http.Request) {
	v, err := s.viewOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotAcceptable)
		return
	}
	one := s.world.named(r.PathValue("namespace") + "/" + r.PathValue("name"))
	if one == nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pod not found","reason":"NotFound","code":404}`)
		return
	}
	w.Header().Set("Content-Type", v.contentType(false))
	v.writeObject(w, one)
}

// watch writes the initial events, if they are wanted, and then what is released, until the client leaves.
func (s *server) watch(w http.ResponseWriter, r *http.Request, v view, isWanted func(*rendered) bool) {
	query := r.URL.Query()
	ctx := r.Context()
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	// With the lock, so that no waiter is between its check and its wait.
	stop := context.AfterFunc(ctx, func() {
		s.world.mutex.Lock()
		defer s.world.mutex.Unlock()
		s.world.changed.Broadcast()
	})
	defer stop()
	isOver := func() bool { return ctx.Err() != nil }
	flusher, _ := w.(http.Flusher)
	out := bufio.NewWriterSize(w, chunkBytes)
	flush := func() bool {
		err := out.Flush()
		flusher.Flush()
		return err == nil
	}

	from, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	isInitial := query.Get("sendInitialEvents") == "true" || err != nil || from == 0
	if isInitial {
		var items []*rendered
		items, from = s.world.list()
		for _, one := range items {
			if isWanted(one) {
				v.writeEvent(out, "ADDED", one)
			}
		}
		if query.Get("sendInitialEvents") == "true" {
			if v.writeBookmark(out, from) != nil {
				return
			}
		}
	}
	for flush() {
		events, ok := s.world.after(from, isOver)
		if !ok {
			if v.writeExpired(out) == nil {
				flush()
			}
			return
		}
		if len(events) == 0 {
			return
		}
		for _, event := range events {
			if isWanted(event.one) {
				v.writeEvent(out, event.kind, event.one)
			}
		}
		from = events[len(events)-1].one.resourceVersion
	}
}

// trigger releases events: ?events=&added=&deleted=&rate=. It answers when they are rendered and, without a rate, released.
func (s *server) trigger(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	number := func(name string) int {
		value, _ := strconv.Atoi(query.Get(name)) // absent is zero
		return max(value, 0)
	}
	o := order{events: number("events"), added: number("added"), deleted: number("deleted"), rate: number("rate")}
	events, err := s.world.prepare(o)
	if err == nil && len(events) == 0 {
		err = fmt.Errorf("nothing to release: %q", r.URL.RawQuery)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	last := events[len(events)-1].one
	answer := map[string]any{"resourceVersion": fmt.Sprint(last.resourceVersion), "key": last.key, "count": len(events)}
	if o.rate > 0 {
		go s.world.release(events, o.rate)
	} else {
		s.world.release(events, 0)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // a client that is gone has its events
}
