package etcd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestEach: all keys below a prefix are seen once and in order, page by page, and none beside it. An error ends it.
func TestEach(t *testing.T) {
	t.Parallel()
	var stored []string
	for _, name := range strings.Fields("/r/secret /r/secrets /r/secrets0 /r/secretz/a") {
		stored = append(stored, name)
	}
	var want []string
	for i := range 2*pageSize + 3 {
		key := "/r/secrets/" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		want, stored = append(want, key), append(stored, key)
	}
	slices.Sort(stored)
	pages := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct {
			Key      []byte `json:"key"`
			RangeEnd []byte `json:"range_end"`
			Limit    int    `json:"limit"`
		}
		if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || r.URL.Path != "/v3/kv/range" ||
			ask.Limit != pageSize {
			t.Errorf("%s asks for %+v (%v)", r.URL.Path, ask, err)
		}
		pages++
		kvs, more := []map[string]string{}, false
		for _, key := range stored {
			if key < string(ask.Key) || key >= string(ask.RangeEnd) {
				continue
			}
			if more = len(kvs) == ask.Limit; more {
				break
			}
			kvs = append(kvs, map[string]string{"key": base64.StdEncoding.EncodeToString([]byte(key)),
				"value": base64.StdEncoding.EncodeToString([]byte("of " + key))})
		}
		json.NewEncoder(w).Encode(map[string]any{"kvs": kvs, "more": more}) //nolint:errcheck // the reader sees it
	}))
	defer s.Close()
	etcds := []API{{name: "etcd", url: s.URL, client: s.Client()}}
	var got []string
	err := Each(t.Context(), etcds, "/r/secrets/", func(key string, value []byte) error {
		if string(value) != "of "+key {
			t.Errorf("%s has %q", key, value)
		}
		got = append(got, key)
		return nil
	})
	if err != nil || !slices.Equal(got, want) || pages != 3 {
		t.Errorf("%q in %d pages (%v)", got, pages, err)
	}
	enough := errors.New("enough")
	seen := 0
	err = Each(t.Context(), etcds, "/r/secrets/", func(string, []byte) error { seen++; return enough })
	if !errors.Is(err, enough) || seen != 1 {
		t.Errorf("%d, %v", seen, err)
	}
	for _, bad := range []func(context.Context) error{
		func(ctx context.Context) error { return Each(ctx, nil, "/r/", nil) },
		func(ctx context.Context) error { return Each(ctx, etcds, "", nil) },
	} {
		if err := bad(t.Context()); err == nil {
			t.Error("everything was read")
		}
	}
}
