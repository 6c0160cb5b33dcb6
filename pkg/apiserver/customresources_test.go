package apiserver_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bonsai/api/apiextensions/referencetest"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
	"bonsai/pkg/apiserver/storage/watchcache"
	"bonsai/pkg/apiserver/webhook/webhooktest"
)

var reference = referencetest.AddFlags()

// customStep is one request of a scenario. In its path and body, $HOOK and $CA are where the conversion webhook of the
// tests is.
type customStep struct {
	// Do is the method and the path.
	Do string `json:"do"`
	// Body is sent as JSON, Raw as it is.
	Body any    `json:"body,omitempty"`
	Raw  string `json:"raw,omitempty"`
	// Type is the media type of the body, Accept that of the answer: one of media's keys, or the type itself.
	Type   string `json:"type,omitempty"`
	Accept string `json:"accept,omitempty"`
	// Until has the request asked again until the answer contains it: what a definition says comes into force a little
	// later.
	Until string `json:"until,omitempty"`
	// When is a path and, after a space, what a GET of it must contain before the request is made: a definition's
	// objects are served a moment before its condition says so.
	When string `json:"when,omitempty"`
}

// media are the short names of media types.
func media(name string) string {
	long := map[string]string{
		"": "application/json", "merge": "application/merge-patch+json", "patch": "application/json-patch+json",
		"apply":     "application/apply-patch+yaml",
		"strategic": "application/strategic-merge-patch+json", "yaml": "application/yaml",
		"protobuf": "application/vnd.kubernetes.protobuf",
		"cbor":     "application/cbor", "table": "application/json;as=Table;v=v1;g=meta.k8s.io",
		"metadata":     "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		"metadatalist": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	}
	return cmp.Or(long[name], name)
}

// stepAnswer is what a server says to a step, without what differs from run to run.
type stepAnswer struct {
	Code     int      `json:"code"`
	Warnings []string `json:"warnings,omitempty"`
	Body     any      `json:"body,omitempty"`
}

// TestCustomResources asks what a real kube-apiserver v1.37.2 was asked, and expects its answers: every file in
// testdata/customresources is a scenario, and what was answered to it is in the file of the same name in answers. With
// -reference it asks the real server instead, and writes those files.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/customresources/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			var steps []customStep
			referencetest.Read(t, file, &steps)
			answers := filepath.Join("testdata/customresources/answers", name+".yaml")
			hook := webhooktest.NewServer(t, http.HandlerFunc(convert))
			if real := reference.Server(); real != nil {
				referencetest.Write(t, answers, play(t, asker{real.Client(), real.URL()}, hook, steps))
				return
			}
			t.Parallel()
			var want []stepAnswer
			referencetest.Read(t, answers, &want)
			got := play(t, asker{plain("admin"), start(t, func(c *assemble.Config) {
				withCache(t, c)
				withBehaviours(t, c)
			})}, hook, steps)
			if len(want) != len(got) {
				t.Fatalf("%d steps, %d answers", len(got), len(want))
			}
			for i := range got {
				if status, ok := want[i].Body.(map[string]any); ok { // recorded before orderCauses was what it is
					orderCauses(status)
				}
				if g, w := plainJSON(t, got[i]), plainJSON(t, want[i]); !reflect.DeepEqual(g, w) {
					t.Errorf("step %d: %s %s\n%s", i, steps[i].Do, referencetest.YAML(t, steps[i].Body),
						referencetest.Difference(referencetest.YAML(t, w), referencetest.YAML(t, g)))
				}
			}
		})
	}
}

// withCache has the server read from a cache, as the real one does: what becomes of stored objects depends on it.
func withCache(t *testing.T, c *assemble.Config) {
	t.Helper()
	facts := &storage.FactsTable{}
	cache, err := watchcache.New(context.WithoutCancel(t.Context()), forgetful{memory.New(facts), facts},
		watchcache.Config{Facts: facts, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	if c.Catalog, err = catalog.New(t.Context(), catalog.Config{Facts: facts, Forget: cache.Forget}); err != nil {
		t.Fatal(err)
	}
	c.Storage = cache
}

// forgetful reads items again, as etcd does: memory hands out those that it was given, with the facts that were read of
// them then.
type forgetful struct {
	*memory.Storage
	facts *storage.FactsTable
}

func (f forgetful) fresh(i *storage.Item) (*storage.Item, error) {
	facts, err := f.facts.Of(i.Key, storage.Draft{Value: i.Value()})
	return storage.NewItem(i.Key, i.Value(), i.Revision, facts), err
}

// Get implements storage.Interface.
func (f forgetful) Get(ctx context.Context, key string, notOlderThan int64) (*storage.Item, error) {
	item, err := f.Storage.Get(ctx, key, notOlderThan)
	if err != nil {
		return nil, err
	}
	return f.fresh(item)
}

// List implements storage.Interface.
func (f forgetful) List(ctx context.Context, prefix string, opts storage.ListOptions) (*storage.List, error) {
	l, err := f.Storage.List(ctx, prefix, opts)
	if err != nil {
		return nil, err
	}
	l.Items = slices.Clone(l.Items)
	for n := range l.Items {
		if l.Items[n], err = f.fresh(l.Items[n]); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// play takes a server through a scenario.
func play(t *testing.T, a asker, hook *webhooktest.Server, steps []customStep) []stepAnswer {
	t.Helper()
	fill := strings.NewReplacer("$HOOK", hook.URL, "$CA", base64.StdEncoding.EncodeToString(hook.CABundle))
	var out []stepAnswer
	for i, s := range steps {
		method, path, ok := strings.Cut(s.Do, " ")
		if !ok {
			t.Fatalf("step %d does nothing: %q", i, s.Do)
		}
		body := s.Raw
		if s.Body != nil {
			b, err := json.Marshal(s.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = fill.Replace(string(b))
		}
		header := http.Header{"Content-Type": {media(s.Type)}, "Accept": {media(s.Accept)}}
		deadline := time.Now().Add(20 * time.Second)
		for at, state, ok := strings.Cut(s.When, " "); ok; {
			_, _, text := a.callWith(t, http.MethodGet, at, "", http.Header{})
			if strings.Contains(text, state) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("step %d: waited in vain for %q at %s, last was %s", i, state, at, text)
			}
		}
		for {
			code, got, text := a.callWith(t, method, path, body, header)
			if s.Until != "" && !strings.Contains(fmt.Sprint(code, " ", text), s.Until) {
				if time.Now().After(deadline) {
					t.Fatalf("step %d: %s: waited in vain for %q, last was %d %s", i, s.Do, s.Until, code, text)
				}
				continue
			}
			text = strings.ReplaceAll(text, base64.StdEncoding.EncodeToString(hook.CABundle), "$CA")
			out = append(out, steady(code, got["Warning"], text, hook.URL))
			break
		}
	}
	return out
}

var (
	anyUID  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	anyTime = regexp.MustCompile(`20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	anyAge  = regexp.MustCompile(`^\d+s$`)
	// anyObject is how errors show an object that they do not accept, anyVersion how they name a version.
	anyObject = regexp.MustCompile(
		`Invalid value: (?:"\{.*\}"|\{"(?:ID|description|type|format|title|default|properties)":.*\}): `)
	anyVersion = regexp.MustCompile(`in record \(\d+\)`)
	// anyCurrent is how an error names the newest version that there is.
	anyCurrent = regexp.MustCompile(`, current: \d+`)
)

// steady is an answer without what differs from run to run: times, versions, identities, and the order of what is
// wrong.
func steady(code int, warnings []string, body, hook string) stepAnswer {
	out := stepAnswer{Code: code, Warnings: warnings}
	var doc any
	if json.Unmarshal([]byte(body), &doc) != nil {
		doc = body
	}
	doc = starred(doc, hook)
	if m, ok := doc.(map[string]any); ok && m["kind"] == "Status" {
		orderCauses(m)
	}
	out.Body = withoutTimes(doc)
	return out
}

// orderCauses sorts the causes of a Status, keeps one of each, and leaves out of its message what they say: the order
// is random, and Kubernetes repeats a fault as often as its rules find it.
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

func withoutTimes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if conditions, ok := v["conditions"].([]any); ok { // several controllers add to them
			slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		for k := range v {
			// our hashes and tokens are others
			if k == "storageVersionHash" || k == "time" || k == "continue" && v[k] != "" {
				v[k] = "*"
				continue
			}
			v[k] = withoutTimes(v[k])
		}
	case []any:
		for i := range v {
			v[i] = withoutTimes(v[i])
		}
	case string:
		for _, from := range []*regexp.Regexp{anyUID, anyTime, anyAge} {
			v = from.ReplaceAllString(v, "*")
		}
		v = anyCurrent.ReplaceAllString(v, ", current: *")
		return anyVersion.ReplaceAllString(anyObject.ReplaceAllString(v, `Invalid value: "{…}": `), "in record (*)")
	}
	return v
}
