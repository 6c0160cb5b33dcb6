package inflight

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/apiserver/request"
)

// TestCallerOf: all service accounts of a namespace are one caller, and nothing else is.
func TestCallerOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"bob": "bob", "system:serviceaccount:ns:a": "system:serviceaccount:ns",
		"system:serviceaccount:ns:b":           "system:serviceaccount:ns",
		"system:serviceaccount:other:a":        "system:serviceaccount:other",
		"system:serviceaccount:no/namespace:a": "system:serviceaccount:no/namespace:a",
		"system:node:n":                        "system:node:n",
	} {
		if got := CallerOf(&request.User{Name: name}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestShares(t *testing.T) {
	t.Parallel()
	s := NewShares(100, 40, 0)
	var all []*Holding
	for _, c := range []struct {
		lane Lane
		user string
		n    int64
		want bool
	}{
		{Others, "a", 30, true}, {Others, "a", 11, false}, {Others, "a", 10, true}, // one caller's part
		{Others, "b", 1000, true},                         // counts as the whole part
		{Others, "c", 21, false}, {Others, "c", 20, true}, // the total
		{System, "node", 40, true}, {Exempt, "root", 1000, true},
	} {
		h := s.Hold(c.lane, c.user, nil)
		if got := h.Take(c.n); got != c.want {
			t.Errorf("take %d for %s: %v, want %v", c.n, c.user, got, c.want)
		}
		all = append(all, h)
	}
	all[3].Give()
	d := s.Hold(Others, "d", nil)
	if !d.Take(30) || !d.Take(10) || d.Take(0) != true {
		t.Error("what was given back cannot be taken")
	}
	for _, h := range append(all, d, d) {
		h.Give()
	}
	for _, in := range []*held{&s.others, &s.system} {
		if len(in.by) != 0 || in.all != 0 {
			t.Errorf("left over: %d, %v", in.all, in.by)
		}
	}
}

// TestManyCallers: callers who fill the total together keep nobody out who holds less than they do; the slowest of the
// one who holds most ends.
func TestManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShares(8, 4, 0)
		var ended []string
		hold := func(caller string, i int) bool {
			return s.Hold(Others, caller, func() { ended = append(ended, fmt.Sprint(caller, i)) }).Take(1)
		}
		for i := range 4 {
			time.Sleep(time.Millisecond)
			if !hold("a", i) || !hold("b", i) {
				t.Fatal("the total is less than it should be")
			}
		}
		if hold("a", 9) {
			t.Error("a caller has more than its part")
		}
		for i := range 2 {
			if !hold("c", i) {
				t.Error("a caller who holds less was kept out")
			}
		}
		if len(ended) != 2 || ended[0][1] != '0' || ended[1][1] != '0' || ended[0] == ended[1] {
			t.Errorf("these ended: %q, want the oldest of a and of b", ended)
		}
		for hold("c", 2) {
		}
		if in := &s.others; in.all != 8 || in.by["c"].n > 3 || in.by["a"].n < 2 || in.by["b"].n < 2 {
			t.Errorf("a, b and c hold %d, %d and %d", in.by["a"].n, in.by["b"].n, in.by["c"].n)
		}
	})
}

// TestSlowestFirst: with patience, what has grown least in its time gives way, to the same caller and to those who hold
// as much.
func TestSlowestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShares(100, 40, time.Second)
		hold := func(caller string, n int64) *Holding {
			h := s.Hold(Others, caller, func() {})
			if !h.Take(n) {
				return nil
			}
			return h
		}
		slow, quick := hold("a", 10), hold("a", 30)
		if hold("a", 1) != nil {
			t.Error("a young holding ended for the same caller")
		}
		time.Sleep(time.Second)
		if hold("a", 10) == nil || !slow.Ended() || quick.Ended() {
			t.Error("the slowest holding did not give way")
		}
		if slow.Take(1) {
			t.Error("a holding that has ended grows")
		}
		slow.Give()
		if hold("b", 30) == nil || hold("c", 30) == nil {
			t.Fatal("no room for others")
		}
		time.Sleep(2 * time.Second)
		if hold("d", 30) == nil {
			t.Error("callers who hold as much kept another one out")
		}
	})
}
