package main

import (
	"regexp"
	"slices"
	"testing"
)

func TestFailingSpecsAreGroupedByWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	features := []feature{{"jobs", regexp.MustCompile(`\] Job `)}, {"quotas", regexp.MustCompile(`Quota`)},
		{"devices", regexp.MustCompile(`Device`)}}
	got := grouped([]string{"[a] Job b", "[a] Job Quota", "[a] Jobs c", "[b] Quota d"}, features)
	want := []group{
		{unexplained, []string{"[a] Jobs c"}},
		{"Missing: jobs", []string{"[a] Job b", "[a] Job Quota"}},
		{"Missing: quotas", []string{"[b] Quota d"}},
	}
	same := func(a, b group) bool { return a.heading == b.heading && slices.Equal(a.names, b.names) }
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("got %v, want %v", got, want)
	}
	if left := built(got, features); !slices.Equal(left, []string{"devices"}) {
		t.Errorf("built: %v", left)
	}
}
