package apiserver_test

import (
	"encoding/binary"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// TestParserBombs: bodies that are small to send and huge to decode (CVE-2019-11253 and its kin) are refused on every
// verb that takes a body, before they cost anything.
func TestParserBombs(t *testing.T) { // not parallel: it counts what is allocated
	host := start(t, nil)
	if code, _, body := call(t, "POST", host+maps, `{"metadata":{"name":"a"}}`, "Content-Type",
		"application/json"); code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	aliases := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na: &a \"" + strings.Repeat("x", 20_000) +
		"\"\nb: [" + strings.Repeat("*a,", 10_000) + "*a]\n"
	deep := func(open, end string) string { return strings.Repeat(open, 5000) + `"x"` + strings.Repeat(end, 5000) }
	wide := "data: [" + strings.Repeat("a,", 1_400_000) + "a]"
	commented := "a:\n"
	for i := range 290 {
		commented += strings.Repeat(" ", i+1) + "a:\n"
	}
	commented += strings.Repeat("#\n #\n", 500_000) + "b: c\n"
	many := `[` + strings.Repeat(`{},`, 300_000) + `{}]`
	const json, yaml, protobuf, merge, jsonPatch, strategic = "application/json", "application/yaml",
		"application/vnd.kubernetes.protobuf", "application/merge-patch+json", "application/json-patch+json",
		"application/strategic-merge-patch+json"
	one := maps + "/a"
	pods := "/api/v1/namespaces/ns/pods"
	for _, c := range []struct{ method, path, media, body string }{
		{"POST", maps, yaml, aliases},
		{"POST", maps + "?fieldValidation=Strict", yaml, aliases},
		{"PUT", one, yaml, aliases},
		{"PUT", pods + "/p/status", yaml, aliases},
		{"DELETE", one, yaml, aliases},
		{"DELETE", maps, yaml, aliases},
		{"POST", maps, json, `{"metadata":{"name":"b"},"data":` + deep(`{"a":`, `}`) + `}`},
		{"POST", maps, yaml, `data: ` + deep(`{"a":`, `}`)},
		{"POST", maps, yaml, deep(`[`, `]`)},
		{"POST", maps, yaml, wide},
		{"POST", maps, yaml, commented},
		{"PATCH", one + "?fieldManager=m", "application/apply-patch+yaml", wide},
		{"POST", pods, json, `{"metadata":{"name":"p"},"spec":{"containers":` + many + `}}`},
		{"PUT", pods + "/p", json, `{"metadata":{"name":"p"},"spec":{"containers":` + many + `}}`},
		{"DELETE", one, json, deep(`[`, `]`)},
		{"POST", pods, protobuf, document("Pod", field(2, empty(2)))}, // containers
		{"PUT", pods + "/p", protobuf, document("Pod", field(2, empty(2)))},
		{"PUT", pods + "/p/status", protobuf, document("Pod", field(3, empty(2)))}, // conditions
		{"POST", maps, protobuf, document("ConfigMap", field(1, empty(11)))},       // labels
		{"POST", maps, protobuf, document("ConfigMap", overlapping(100_000))},
		{"DELETE", one, protobuf, document("DeleteOptions", empty(5))}, // dryRun
		{"PATCH", one, merge, deep(`{"a":`, `}`)},
		{"PATCH", one, strategic, deep(`{"a":`, `}`)},
		{"PATCH", one, strategic, `{"data":` + many + `}`},
		{"PATCH", one, strategic,
			`{"metadata":{"ownerReferences":[` + strings.Repeat(`{"uid":"u"},`, 6000) + `{"uid":"u"}]}}`},
		{"PATCH", one, jsonPatch, `[{"op":"add","path":"/data","value":` + deep(`{"a":`, `}`) + `}]`},
		{"PATCH", one, jsonPatch, many},
	} {
		before := allocated()
		code, _, body := call(t, c.method, host+c.path, c.body, "Content-Type", c.media)
		if code != http.StatusRequestEntityTooLarge &&
			(code != http.StatusBadRequest ||
				!strings.Contains(body, "exceeded max depth") && !strings.Contains(body, "map entry is broken")) {
			t.Errorf("%s %s %s %.40s: %d %.300s, want it refused as too large", c.method, c.path, c.media, c.body, code,
				body)
		}
		if cost := (allocated() - before) >> 20; cost > 64 {
			t.Errorf("%s %s %s %.40s: cost %d MiB", c.method, c.path, c.media, c.body, cost)
		}
	}
	// A document that says it is JSON is read as JSON, even to find its kind.
	before := allocated()
	if code, _, body := call(t, "DELETE", host+one, aliases, "Content-Type", json); code != http.StatusBadRequest {
		t.Errorf("%d %.300s", code, body)
	}
	if cost := (allocated() - before) >> 20; cost > 64 {
		t.Errorf("YAML that says it is JSON: cost %d MiB", cost)
	}
	// What is within the bounds, and wrong all over, is answered with some of what is wrong.
	wrong := `{"metadata":{"name":"p"},"spec":{"containers":[` + strings.Repeat(`{},`, 20_000) + `{}]}}`
	if code, _, body := call(t, "POST", host+pods, wrong, "Content-Type",
		json); code != http.StatusUnprocessableEntity || len(body) > 1<<20 ||
		!strings.Contains(body, "must have at most 1000 items") {
		t.Errorf("%d, %d bytes: %.300s", code, len(body), body)
	}
	// Aliases as such are fine.
	if code, _, body := call(t, "POST", host+maps, "metadata: {name: c}\ndata: {a: &a x, b: *a}", "Content-Type",
		yaml); code != http.StatusCreated ||
		!strings.Contains(body, `"b": "x"`) && !strings.Contains(body, `"b":"x"`) && !strings.Contains(body, "b: x") {
		t.Errorf("%d %.300s", code, body)
	}
}

// field encodes one field of a protobuf message.
func field(number byte, value string) string {
	return string(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(value)))) + value
}

// empty encodes a list of many empty items.
func empty(number byte) string { return strings.Repeat(field(number, ""), 300_000) }

// overlapping encodes the data of a ConfigMap: n entries, each of which claims to have most of the following ones in
// its value.
func overlapping(n int) string {
	var b strings.Builder
	for i := range n {
		value := binary.AppendUvarint([]byte{2<<3 | 2}, uint64(max(0, n-i-10)*8))
		b.WriteString(field(2, field(1, "k")+string(value)))
	}
	return b.String()
}

// document is a message in protobuf's envelope.
func document(kind, raw string) string {
	return "k8s\x00" + field(1, field(1, "v1")+field(2, kind)) + field(2, raw)
}

// allocated is how many bytes the process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
