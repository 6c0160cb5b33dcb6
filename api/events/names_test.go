package events

import "testing"

// TestNames: unlike those of the core group, events of this one have names that kube-apiserver 1.36.3 takes for other
// kinds, too.
func TestNames(t *testing.T) {
	t.Parallel()
	valid := strategy().ValidateName
	for name, want := range map[string]bool{"a": true, "web.17f2a": true, "A": false, "a_b": false, "a:b": false,
		"-a": false} {
		if errs := valid(name, false); (len(errs) == 0) != want {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
