package main

import (
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	t.Parallel()
	tasks := words{"Add", "Change", "Remove"}.lines([]change{{kind: added, name: "a", to: "x", below: 2},
		{kind: altered, name: "b", to: "y"}, {kind: gone, name: "c", from: "z"}}, func(name string) string {
		return map[string]string{"a": " (noted)"}[name]
	})
	var b strings.Builder
	err := render(&b, "Title", "/dir", []section{
		{title: "Some", against: "ours", tasks: tasks, known: 3, remarks: []string{"A remark."}},
		{title: "Much", against: "ours", tasks: []string{"one\ntwo", strings.Repeat("ä", longest), "three", "four"}},
		{title: "None", against: "ours"},
		{title: "Unknown", remarks: []string{"Look there."}},
	}, 3)
	want := "# Title\n\nPaths are below `/dir`.\n" +
		"\n## Some (3)\n\nCompared with ours.\n\n- [ ] Add `a`: `x`, with 2 below it (noted)\n" +
		"- [ ] Change `b`: nothing → `y`\n- [ ] Remove `c`\n\nA remark.\n" +
		"\n3 more differences are not new: the release that we follow has them, too.\n" +
		"\n## Much (4)\n\nCompared with ours.\n\n- [ ] one two\n- [ ] " + strings.Repeat("ä", longest/2) + "…\n" +
		"- [ ] three\n- [ ] … and 1 more lines: run again with MOST=4\n" +
		"\n## None (0)\n\nCompared with ours.\n\nNothing new.\n" +
		"\n## Unknown (not compared)\n\nLook there.\n"
	if got := b.String(); got != want || err != nil {
		t.Errorf("error %v, got:\n%s\nwant:\n%s", err, got, want)
	}
}
