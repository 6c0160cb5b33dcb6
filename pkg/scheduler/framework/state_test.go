package framework

import "testing"

func TestCycleStateClonesAreApart(t *testing.T) {
	t.Parallel()
	s := NewCycleState()
	s.Write("counter", counter{7})
	s.Write("plain", "x")
	for _, name := range []string{"A", "D", "E"} {
		s.SkipFilter(name)
	}
	clone := s.Clone()
	clone.SkipFilter("B")
	s.SkipFilter("C")
	clone.Write("plain", "y")
	if clone.Read("counter") != (counter{8}) || s.Read("plain") != "x" || !clone.SkipsFilter("A") ||
		!clone.SkipsFilter("B") || s.SkipsFilter("B") || s.Read("nothing") != nil {
		t.Errorf("state %+v, clone %+v", s, clone)
	}
}

// counter shows by its number that it was cloned.
type counter struct{ n int }

func (c counter) CloneState() any { return counter{c.n + 1} }
