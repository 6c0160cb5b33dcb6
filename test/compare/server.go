package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// request is one that both servers are asked. In Body, $VERSION is the resourceVersion that the object at Object has on
// the server asked.
type request struct {
	Method, Path, Type, Accept, Body string
	Object                           string
	// Only is the path of the part of the answer's document that is compared; empty: all of it.
	Only []string
}

func (r request) String() string {
	return fmt.Sprintf("%s %s (%s → %s)\n  %s", r.Method, r.Path, r.Type, cmp.Or(r.Accept, "*"), r.Body)
}

// answer is what a server said. Body is the decoded document, or the text if it is none.
type answer struct {
	Code     int
	Warnings []string
	Body     any
}

// server is one of the two.
type server struct {
	url, token string
	client     *http.Client
}

func newServer(url, token string) server {
	return server{url: url, token: token, client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		// a throw-away server on loopback, with a certificate of its own making
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}}
}

func (s server) ask(ctx context.Context, r request) (answer, error) {
	if strings.Contains(r.Body, "$VERSION") {
		a, err := s.ask(ctx, request{Method: http.MethodGet, Path: r.Object})
		if err != nil {
			return answer{}, err
		}
		version, _ := field(a.Body, "metadata", "resourceVersion").(string)
		r.Body = strings.ReplaceAll(r.Body, "$VERSION", version)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, s.url+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	for key, value := range map[string]string{"Content-Type": r.Type, "Accept": r.Accept} {
		if value != "" {
			req.Header.Set(key, value)
		}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	out := answer{Code: resp.StatusCode, Warnings: resp.Header["Warning"], Body: string(raw)}
	var doc any
	if d := json.NewDecoder(bytes.NewReader(raw)); d.Decode(&doc) == nil {
		out.Body = doc
	}
	return out, nil
}

// field is what is at a path of maps; nil if nothing is.
func field(v any, path ...string) any {
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

var (
	anyUID     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyTime    = regexp.MustCompile(`20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	anyAge     = regexp.MustCompile(`^(\d+m)?\d+s$|^\d+m$`)
	anyAddress = regexp.MustCompile(`\b10\.96\.\d+\.\d+\b`)
	// anyShown is an object in an error about it, with versions and times in it.
	anyShown = regexp.MustCompile(`Invalid value: "?\{.*?\}"?: `)
	// anyPorts are the node ports in the table of a Service.
	anyPorts = regexp.MustCompile(`\b\d+:3\d{4}/`)
	anyCount = regexp.MustCompile(`in record \(\d+\)`)
	// anyVersion is the version of an object in a refused precondition, and in one that is none.
	anyVersion = regexp.MustCompile(`(in object meta: |parsing ")\d+`)
)

// steady is what is compared of an answer.
func steady(a answer) answer {
	a.Body = star(a.Body)
	if m, ok := a.Body.(map[string]any); ok && m["kind"] == "Status" {
		orderCauses(m)
	}
	return a
}

// orderCauses sorts the causes of a Status, keeps one of each, and takes what they say out of its message: faults in a
// map come in any order, and Kubernetes repeats a fault as often as its rules find it.
func orderCauses(status map[string]any) {
	details, _ := status["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	if len(causes) == 0 {
		return
	}
	slices.SortFunc(causes, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	details["causes"] = slices.CompactFunc(causes, func(a, b any) bool { return reflect.DeepEqual(a, b) })
	if head, _, ok := strings.Cut(fmt.Sprint(status["message"]), " is invalid: "); ok {
		status["message"] = head + " is invalid: …"
	}
}

// orderErrors sorts what the message of a configuration that cannot be applied says, which is told in any order, too.
func orderErrors(message string) string {
	head, list, ok := strings.Cut(message, ": errors:\n")
	if !ok {
		return message
	}
	lines := strings.Split(list, "\n")
	slices.Sort(lines)
	return head + ": errors:\n" + strings.Join(lines, "\n")
}

// star replaces what differs from run to run.
func star(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			switch key {
			case "resourceVersion", "storageVersionHash", "continue", "uid", "creationTimestamp", "nodePort",
				"healthCheckNodePort":
				if v[key] != "" && v[key] != nil {
					v[key] = "*"
				}
			default:
				v[key] = star(v[key])
			}
			// ordered by times, of which one server may have a second more
			if entries, ok := v[key].([]any); ok && key == "managedFields" {
				slices.SortFunc(entries, func(a, b any) int { return strings.Compare(text(a), text(b)) })
			}
		}
	case []any:
		for i := range v {
			v[i] = star(v[i])
		}
	case string:
		for _, from := range []*regexp.Regexp{anyUID, anyTime, anyAge, anyAddress, anyPorts} {
			v = from.ReplaceAllString(v, "*")
		}
		v = orderErrors(v)
		v = anyVersion.ReplaceAllString(v, "$1*")
		return anyCount.ReplaceAllString(anyShown.ReplaceAllString(v, "Invalid value: {…}: "), "in record (*)")
	}
	return v
}

// difference lists where two documents are not the same, each place in a line.
func difference(path string, real, our any, out *[]string) {
	switch r := real.(type) {
	case map[string]any:
		if o, ok := our.(map[string]any); ok {
			keys := map[string]bool{}
			for _, m := range []map[string]any{r, o} {
				for key := range m {
					keys[key] = true
				}
			}
			for key := range keys {
				difference(path+"."+key, r[key], o[key], out)
			}
			return
		}
	case []any:
		if o, ok := our.([]any); ok && len(o) == len(r) {
			for i := range r {
				difference(fmt.Sprintf("%s[%d]", path, i), r[i], o[i], out)
			}
			return
		} else if ok {
			if real, our = without(r, o), without(o, r); reflect.DeepEqual(real, our) {
				real, our = "in this order: "+fmt.Sprint(r), "in this order: "+fmt.Sprint(o)
			}
		}
	}
	a, _ := json.Marshal(real) // both were read from JSON
	b, _ := json.Marshal(our)
	if !bytes.Equal(a, b) {
		*out = append(*out, fmt.Sprintf("  %s\n    real %.900s\n    our  %.900s", path, a, b))
	}
}

// without are the items of a list that another has not.
func without(list, other []any) any {
	return slices.DeleteFunc(slices.Clone(list), func(v any) bool {
		return slices.ContainsFunc(other, func(o any) bool { return reflect.DeepEqual(v, o) })
	})
}
