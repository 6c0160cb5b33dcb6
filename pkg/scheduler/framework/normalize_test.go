package framework

import (
	"slices"
	"testing"
)

func TestDefaultNormalize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want, reverse []int64 }{
		{[]int64{0, 5, 10}, []int64{0, 50, 100}, []int64{100, 50, 0}},
		{[]int64{300, 100}, []int64{100, 33}, []int64{0, 67}},
		{[]int64{0, 0}, []int64{0, 0}, []int64{100, 100}},
		{nil, nil, nil},
	} {
		for _, reverse := range []bool{false, true} {
			got, want := slices.Clone(c.in), c.want
			if reverse {
				want = c.reverse
			}
			if DefaultNormalize(reverse, got); !slices.Equal(got, want) {
				t.Errorf("%v, reverse %v: %v, want %v", c.in, reverse, got, want)
			}
		}
	}
}
