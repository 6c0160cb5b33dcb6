package apiserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// Schemas made to be costly are taken where Kubernetes takes them, or refused with a reason; neither leaves much
// behind, and of the refused ones nothing is stored. The real server (1.36.3) answers the same except "too deep" and
// "too many rules", which it takes, and grows from 300 to 1,100 MB over them.
func TestSchemaBombs(t *testing.T) { // not parallel: it counts what is in use
	h := customHouse(t)
	of := func(n int, format, separator string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(parts, separator)
	}
	within := func(depth int) string {
		return strings.Repeat(`{"type":"object","properties":{"p":`, depth) + `{"type":"string"}` +
			strings.Repeat(`}}`, depth)
	}
	rule := func(expression string) string {
		return fmt.Sprintf(`{"type":"object","properties":{"x":{"type":"integer"},"l":{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"string"}}}}},"x-kubernetes-validations":[{"rule":%q}]}`, expression)
	}
	for i, test := range []struct {
		name, schema string
		want         int
		says         string
	}{
		{"10,000 properties", `{"type":"object","properties":{` + of(10_000, `"p%d":{"type":"string"}`, ",") + `}}`,
			http.StatusCreated, ""},
		{"a megabyte of text", `{"type":"object","description":"` + strings.Repeat("x", 1_000_000) + `"}`,
			http.StatusCreated, ""},
		{"a megabyte of properties",
			`{"type":"object","properties":{` + of(9_000, `"p`+strings.Repeat("x", 80)+`%d":{"type":"string"}`, ",") +
				`}}`, http.StatusCreated, ""},
		{"5,000 alternatives", `{"type":"object","properties":{"x":{"type":"string"}},"allOf":[` +
			of(5_000, `{"properties":{"x":{"minLength":%d}}}`, ",") + `]}`, http.StatusCreated, ""},
		{"20,000 values", `{"type":"object","properties":{"x":{"type":"string","enum":[` + of(20_000, `"e%d"`, ",") +
			`]}}}`, http.StatusCreated, ""},
		{"100 levels", within(100), http.StatusCreated, ""},
		{"too deep", within(1_000), http.StatusBadRequest, "exceeded max depth of 300"},
		{"too large", `{"type":"object","description":"` + strings.Repeat("x", 4_000_000) + `"}`,
			http.StatusRequestEntityTooLarge, "limit is 3145728"},
		{"a pattern of a million states",
			`{"type":"object","properties":{"x":{"type":"string","pattern":"(a{1,1000}){1,1000}"}}}`,
			http.StatusUnprocessableEntity, "must be a valid regular expression"},
		{"too many rules", `{"type":"object","x-kubernetes-validations":[` +
			of(5_000, `{"rule":"true","message":"m%d"}`, ",") + `]}`, http.StatusUnprocessableEntity,
			"must not have more than 1000 expressions"},
		{"a costly rule", rule("self.l.all(a, a.all(b, b.all(c, self.l.all(d, d.all(e, e.all(f, f.contains(c)))))))"),
			http.StatusUnprocessableEntity, "estimated rule cost exceeds budget by factor of more than 100x"},
		{"a rule in 3,000 parentheses", rule(strings.Repeat("(", 3_000) + "true" + strings.Repeat(")", 3_000)),
			http.StatusUnprocessableEntity, "Invalid value"},
		{"a rule of 20,000 terms", rule(of(20_000, "self.x == %d", " || ")), http.StatusUnprocessableEntity,
			"Invalid value"},
	} {
		group := fmt.Sprintf("b%d.io", i)
		body := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ws.%s"},"spec":{"group":%q,"scope":"Namespaced","names":{"plural":"ws","kind":"W"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%s}}]}}`,
			group, group, test.schema)
		t.Run(test.name, func(t *testing.T) {
			before := inUse()
			code, _, answer := h.admin.call(t, http.MethodPost, definitionsPath, body, "application/json")
			if code != test.want || !strings.Contains(answer, test.says) {
				t.Fatalf("%d %.300s, want %d %s", code, answer, test.want, test.says)
			}
			stored := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[code == http.StatusCreated]
			h.ask(h.admin, http.MethodGet, definitionsPath+"/ws."+group, "", stored)
			if stored == http.StatusOK {
				h.until(h.admin, http.MethodGet, "/apis/"+group+"/v1/namespaces/a/ws", "", http.StatusOK)
				h.ask(h.admin, http.MethodPost, "/apis/"+group+"/v1/namespaces/default/ws",
					`{"apiVersion":"`+group+`/v1","kind":"W","metadata":{"name":"w"}}`, http.StatusCreated)
			}
			// what follows an answer, as the documents of OpenAPI, may still be at work
			until(t, func() (bool, string) {
				left := (inUse() - before) >> 20
				return left <= 30, fmt.Sprintf("it leaves %d MiB in use", left)
			})
		})
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(h.ask(h.admin, http.MethodGet, definitionsPath, "", http.StatusOK)),
		&list); err != nil || len(list.Items) != 6 {
		t.Errorf("%d definitions are stored (%v), want the 6 that were taken", len(list.Items), err)
	}
}

// inUse is the heap after what nobody uses has been collected, in bytes.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
