package history

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

const (
	namespace = "history"
	names     = 10
	// writeEvery and listEvery bound what one client asks for, requestTime how long it waits for an answer. All three
	// are longer with -slower.
	writeEvery  = 20 * time.Millisecond
	listEvery   = 150 * time.Millisecond
	requestTime = 5 * time.Second
)

// slowed is a time that is meant for servers as quick as this machine.
func slowed(d time.Duration) time.Duration { return d * time.Duration(*slower) }

// api is the ConfigMaps of one namespace. It speaks HTTP itself: a client that asks again by itself would hide lost
// answers.
type api struct {
	client *http.Client
	url    string
	clock  *atomic.Int64
	// tooOld is how often a watcher was told that its version is too old to go on (410).
	tooOld atomic.Int64
}

type meta struct {
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

type configMap struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   meta              `json:"metadata"`
	Data       map[string]string `json:"data"`
	// Code is that of a Status in place of an object.
	Code int `json:"code,omitempty"`
}

func (c configMap) object() (object, error) {
	v, err := strconv.ParseUint(c.Metadata.ResourceVersion, 10, 64)
	return object{c.Metadata.Name, c.Metadata.UID, c.Data["mark"], v}, err
}

// newClient returns a client of servers whose certificates it does not check, with a bearer token and up to the given
// number of idle connections.
func newClient(t *testing.T, token string, connections int) *http.Client {
	client := &http.Client{Transport: bearer{token, &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: connections}}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// bearer adds a token to each request.
type bearer struct {
	token string
	*http.Transport
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.Transport.RoundTrip(req)
}

// call sends one request and reads its answer to the end.
func call(ctx context.Context, client *http.Client, method, url, contentType string, body any) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, slowed(requestTime))
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	if body == nil {
		data = nil
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// do carries out w, based on the state before, and says what came of it.
func (a *api) do(ctx context.Context, w write, before object) (write, object) {
	method, url, contentType := http.MethodPost, a.url, "application/json"
	var body any = configMap{"v1", "ConfigMap", meta{Name: w.name}, map[string]string{"mark": w.mark}, 0}
	if w.verb != create {
		url += "/" + w.name
	}
	switch w.verb {
	case update:
		method, w.base = http.MethodPut, before.version
		body = configMap{"v1", "ConfigMap", meta{Name: w.name, ResourceVersion: strconv.FormatUint(before.version, 10)},
			map[string]string{"mark": w.mark}, 0}
	case patch:
		method, contentType = http.MethodPatch, "application/merge-patch+json"
		body = map[string]any{"data": map[string]string{"mark": w.mark}}
	case remove:
		method, w.uid = http.MethodDelete, before.uid
		body = map[string]any{"apiVersion": "v1", "kind": "DeleteOptions",
			"preconditions": map[string]string{"uid": before.uid}}
	}
	w.outcome, w.begun = unknown, a.clock.Add(1)
	code, answer, err := call(ctx, a.client, method, url, contentType, body)
	w.ended = a.clock.Add(1)
	var after object
	switch {
	case err != nil || code >= 500 || code == http.StatusRequestTimeout:
	case code >= 400:
		w.outcome = refused
	case w.verb == remove:
		w.outcome = done
	default:
		var c configMap
		if json.Unmarshal(answer, &c) != nil {
			break
		}
		if after, err = c.object(); err == nil {
			w.outcome, w.version, w.uid = done, after.version, after.uid
		}
	}
	return w, after
}

// write changes objects at random until working ends.
func (a *api) write(ctx, working context.Context, id int) (writes []write) {
	random := rand.New(rand.NewPCG(uint64(id), 0))
	state := map[string]object{} // as this writer knows it; others change it meanwhile
	tick := time.NewTicker(slowed(writeEvery))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-working.Done():
			return writes
		}
		name := fmt.Sprintf("cm-%d", random.IntN(names))
		before, known := state[name]
		if !known {
			var exists bool
			var err error
			if before, exists, err = a.get(ctx, name); err != nil {
				continue
			}
			known = exists
		}
		w := write{verb: create, name: name, mark: fmt.Sprintf("%d-%d", id, n)}
		if known {
			w.verb = []verb{update, update, patch, patch, remove}[random.IntN(5)]
		}
		if w.verb == remove {
			w.mark = ""
		}
		w, after := a.do(ctx, w, before)
		writes = append(writes, w)
		delete(state, name)
		if w.outcome == done && w.verb != remove {
			state[name] = after
		}
	}
}

// get returns the state of an object and whether it exists.
func (a *api) get(ctx context.Context, name string) (object, bool, error) {
	code, answer, err := call(ctx, a.client, http.MethodGet, a.url+"/"+name, "", nil)
	if err != nil || code == http.StatusNotFound {
		return object{}, false, err
	}
	var c configMap
	if err := json.Unmarshal(answer, &c); code != http.StatusOK || err != nil {
		return object{}, false, fmt.Errorf("answer %d: %w", code, err)
	}
	o, err := c.object()
	return o, true, err
}

// ours leaves out the ConfigMap that a controller manager makes in every namespace.
const ours = "fieldSelector=metadata.name!=kube-root-ca.crt"

// list asks for a consistent list.
func (a *api) list(ctx context.Context) (list, error) {
	l := list{items: map[string]object{}, begun: a.clock.Add(1)}
	code, answer, err := call(ctx, a.client, http.MethodGet, a.url+"?"+ours, "", nil)
	l.ended = a.clock.Add(1)
	if err != nil || code != http.StatusOK {
		return l, fmt.Errorf("answer %d: %w", code, err)
	}
	var body struct {
		Metadata meta        `json:"metadata"`
		Items    []configMap `json:"items"`
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		return l, err
	}
	for _, c := range body.Items {
		o, err := c.object()
		if err != nil {
			return l, err
		}
		l.items[o.name] = o
	}
	l.version, err = strconv.ParseUint(body.Metadata.ResourceVersion, 10, 64)
	return l, err
}

// lists lists again and again until working ends.
func (a *api) lists(ctx, working context.Context) (lists []list) {
	tick := time.NewTicker(slowed(listEvery))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-working.Done():
			return lists
		}
		if l, err := a.list(ctx); err == nil {
			lists = append(lists, l)
		}
	}
}

// follow watches until it was told of version end, which is 0 as long as it is not known, or until ctx ends. The server
// closes each watch after the given seconds, so that resuming is the rule. Before it resumes after a version, it calls
// pause.
func (a *api) follow(ctx context.Context, end *atomic.Uint64, name string, seconds int,
	pause func(version uint64)) watcher {
	w := watcher{name: name}
	anew := true
	tick := time.NewTicker(slowed(writeEvery))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return w
		}
		if anew {
			l, err := a.list(ctx)
			if err != nil {
				continue
			}
			w.segments = append(w.segments, segment{from: l, last: l.version})
		} else {
			pause(w.segments[len(w.segments)-1].last)
		}
		s := &w.segments[len(w.segments)-1]
		if anew = a.watch(ctx, s, seconds); anew {
			a.tooOld.Add(1)
		}
		if v := end.Load(); v > 0 && s.last >= v {
			return w
		}
	}
}

// watch continues a segment until the connection ends, and reports whether its version is too old to go on.
func (a *api) watch(ctx context.Context, s *segment, seconds int) (tooOld bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+slowed(requestTime))
	defer cancel()
	url := fmt.Sprintf("%s?%s&watch=true&allowWatchBookmarks=true&resourceVersion=%d&timeoutSeconds=%d", a.url,
		ours, s.last, seconds)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := a.client.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return res.StatusCode == http.StatusGone
	}
	for d := json.NewDecoder(res.Body); ; {
		var e struct {
			Type   string    `json:"type"`
			Object configMap `json:"object"`
		}
		if d.Decode(&e) != nil {
			return false
		}
		if e.Type == "ERROR" {
			return e.Object.Code == http.StatusGone
		}
		o, err := e.Object.object()
		if err != nil {
			return false
		}
		if e.Type != "BOOKMARK" {
			s.events = append(s.events, event{eventType(e.Type), o, a.clock.Add(1)})
		}
		s.last = o.version
	}
}
