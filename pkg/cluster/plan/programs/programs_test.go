package programs

import "testing"

// TestSearchPath: the bundled programs come first or not at all, and a path that is built from another one, as by each
// generation of processes, has nothing twice.
func TestSearchPath(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ inherited, choice, want string }{
		{"/usr/bin:/bin", "", "/b/runtime:/usr/bin:/bin:/usr/sbin:/sbin"},
		{"", "", "/b/runtime:/usr/sbin:/sbin"},
		{"/usr/bin", Bundled, "/b/runtime:/usr/bin:/usr/sbin:/sbin"},
		{"/usr/bin:/sbin:/usr/bin", Machine, "/usr/bin:/sbin:/usr/sbin"},
		{"/b/runtime:/usr/bin:/usr/sbin:/sbin", "", "/b/runtime:/usr/bin:/usr/sbin:/sbin"},
		{"/b/runtime:/usr/bin:/usr/sbin:/sbin", Machine, "/usr/bin:/usr/sbin:/sbin"},
		{".::bin:/usr/bin", Machine, "/usr/bin:/usr/sbin:/sbin"},
	} {
		if got := SearchPath(test.inherited, "/b", test.choice); got != test.want {
			t.Errorf("%q, %q: %q, want %q", test.inherited, test.choice, got, test.want)
		}
	}
}
