package why

import "testing"

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Count(1, "pod"): "1 pod", Count(2, "policy"): "2 policies", Count(3, "day"): "3 days", Count(2, "class"): "2 classes",
		And(nil): "none", And([]string{"a"}): "a", And([]string{"a", "b"}): "a and b",
		And([]string{"a", "b", "c", "d", "e"}): "a, b, c and 2 more", Span(-5): "0 seconds",
		Span(90 * 1e9): "1 minute", Span(50 * 3600 * 1e9): "2 days", Quote(" a\nb "): "“a b”",
		string(Object{Kind: "Pod", Namespace: "n", Name: "x"}.Flag()):           " -n n",
		string(Object{Group: "example.com", Kind: "Widget", Name: "x y"}.Arg()): "'widget.example.com/x y'",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
