package traceparent

import (
	"strings"
	"testing"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	parent  = "b7ad6b7169203331"
)

// TestParse takes what the standard takes (https://www.w3.org/TR/trace-context/#traceparent-header).
func TestParse(t *testing.T) {
	t.Parallel()
	const good = "00-" + traceID + "-" + parent
	for s, want := range map[string]struct{ ok, sampled bool }{
		good + "-01":                   {true, true},
		good + "-00":                   {true, false},
		good + "-03":                   {true, true},
		good + "-fe":                   {true, false},
		New():                          {true, true},
		"cc" + good[2:] + "-01":        {true, true},
		"cc" + good[2:] + "-01-future": {true, true},
		"":                             {},
		"00-xyz":                       {},
		good:                           {},
		good + "-1":                    {},
		good + "-01-x":                 {},
		"cc" + good[2:] + "-01x":       {},
		"ff" + good[2:] + "-01":        {},
		strings.ToUpper(good) + "-01":  {},
		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01":  {},
		"00-" + traceID + "-" + strings.Repeat("0", 16) + "-01": {},
		"00_" + traceID + "-" + parent + "-01":                  {},
		"00-" + traceID + "_" + parent + "-01":                  {},
		"00-" + traceID + "-" + parent + "_01":                  {},
		"00-" + traceID + "-" + parent + "-0g":                  {},
	} {
		if got, ok := Parse(s); ok != want.ok || ok && got.Sampled != want.sampled {
			t.Errorf("Parse(%q) is %+v, %t", s, got, ok)
		}
	}
	if one, other := New(), New(); one == other {
		t.Error("two contexts are the same")
	}
	for _, s := range []string{good + "-01", good + "-00"} {
		if c, _ := Parse(s); c.String() != s {
			t.Errorf("%q is written as %q", s, c)
		}
	}
}

// TestParseCosts: every request has the header read, whether it is recorded or not.
func TestParseCosts(t *testing.T) {
	const s = "00-" + traceID + "-" + parent + "-01"
	if n := testing.AllocsPerRun(100, func() { Parse(s) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
