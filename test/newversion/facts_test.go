package main

import (
	"slices"
	"testing"
)

// TestCompare: only what the next release has otherwise than ours and than the release that ours follows is new.
func TestCompare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ours, current, next facts
		want                []change
		known               int
	}{
		"the same":     {facts{"a": "1"}, facts{"a": "1"}, facts{"a": "1"}, nil, 0},
		"new":          {facts{}, facts{}, facts{"a": "1"}, []change{{kind: added, name: "a", to: "1"}}, 0},
		"an older gap": {facts{}, facts{"a": "1"}, facts{"a": "1"}, nil, 1},
		"an older gap that changed": {facts{}, facts{"a": "1"}, facts{"a": "2"},
			[]change{{kind: added, name: "a", to: "2"}}, 0},
		"other": {facts{"a": "1"}, facts{"a": "1"}, facts{"a": "2"},
			[]change{{kind: altered, name: "a", from: "1", to: "2"}}, 0},
		"already so here": {facts{"a": "2"}, facts{"a": "1"}, facts{"a": "2"}, nil, 0},
		"other than both": {facts{"a": "1"}, facts{"a": "2"}, facts{"a": "2"}, nil, 1},
		"gone": {facts{"a": "1"}, facts{"a": "1"}, facts{},
			[]change{{kind: gone, name: "a", from: "1"}}, 0},
		"ours alone":       {facts{"a": "1"}, facts{}, facts{}, nil, 1},
		"empty, but there": {facts{}, facts{}, facts{"a": ""}, []change{{kind: added, name: "a"}}, 0},
		"in order": {facts{"c": "", "d": "1"}, facts{"c": "", "d": "1"}, facts{"b": "", "a": "", "d": "2"}, []change{
			{kind: added, name: "a"}, {kind: added, name: "b"}, {kind: altered, name: "d", from: "1", to: "2"},
			{kind: gone, name: "c"}}, 0},
	} {
		got, known := compare(c.ours, c.current, c.next)
		if !slices.Equal(got, c.want) || known != c.known {
			t.Errorf("%s: %v, %d known; want %v, %d", name, got, known, c.want, c.known)
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	got := fold([]change{{kind: added, name: "g.v1"}, {kind: added, name: "g.v1.T"}, {kind: added, name: "g.v1.T.f"},
		{kind: added, name: "g.v1beta1.T.f"}, {kind: altered, name: "g.v1.T"}, {kind: gone, name: "h.T"},
		{kind: gone, name: "h.T.f"}}, ".")
	want := []change{{kind: added, name: "g.v1", below: 2}, {kind: added, name: "g.v1beta1.T.f"},
		{kind: altered, name: "g.v1.T"}, {kind: gone, name: "h.T", below: 1}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
