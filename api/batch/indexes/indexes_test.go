package indexes

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "0": "", "1,3-5,7": "", "0,1": "", "0-1": "",
		"1-": `cannot convert string to integer for index: ""`, "3-1": "non-increasing order, previous: 3, current: 1",
		"10": `too large index: "10"`, "1,1": "non-increasing order, previous: 1, current: 1",
		"1-2-3": `the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated by '-'`,
	} {
		_, err := Parse(text, 10)
		if got := message(err); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestPlain compares sets with plain sorted numbers.
func TestPlain(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	draw := func() (out []int) {
		for i := range 20 {
			if r.IntN(2) == 0 {
				out = append(out, i)
			}
		}
		return out
	}
	for range 500 {
		a, b := draw(), draw()
		sa, sb := Of(a), Of(b)
		var both []int
		for i := range 20 {
			if sa.Has(i) != slices.Contains(a, i) {
				t.Fatalf("%v.Has(%d) = %t of %v", sa, i, sa.Has(i), a)
			}
			if slices.Contains(a, i) && slices.Contains(b, i) {
				both = append(both, i)
			}
		}
		if sa.Len() != len(a) {
			t.Fatalf("%v has %d, want %d", sa, sa.Len(), len(a))
		}
		if got, want := sa.Union(sb).String(), Of(slices.Concat(a, b)).String(); got != want {
			t.Fatalf("%v ∪ %v = %s, want %s", a, b, got, want)
		}
		if got, want := sa.Intersect(sb).String(), Of(both).String(); got != want {
			t.Fatalf("%v ∩ %v = %s, want %s", a, b, got, want)
		}
		again, err := Parse(sa.String(), 20)
		if err != nil || !slices.Equal(again, sa) {
			t.Fatalf("%s is read as %v: %v", sa, again, err)
		}
		if got := Read(sa.String(), 10); !slices.Equal(got, sa.Intersect(Set{{0, 9}})) {
			t.Fatalf("%s below 10 is read as %v", sa, got)
		}
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	if got := Of([]int{7, 4, 5, 3, 1, 9, 10}).String(); got != "1,3-5,7,9,10" {
		t.Error(got)
	}
}
