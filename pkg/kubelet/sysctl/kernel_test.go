package sysctl

import (
	"errors"
	"strings"
	"testing"
)

// TestCheckKernel: protectKernelDefaults refuses each setting that is another than the documented one, and says so in
// upstream's words.
func TestCheckKernel(t *testing.T) {
	t.Parallel()
	expected := map[string]int{"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10,
		"kernel/panic_on_oops":     1,
		"kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}
	check := func(odd string) error {
		return CheckKernel(func(name string) (int, error) {
			if name == odd {
				return 7, nil
			}
			want, ok := expected[name]
			if !ok {
				return 0, errors.New("no such setting")
			}
			return want, nil
		})
	}
	if err := check(""); err != nil {
		t.Error(err)
	}
	for name := range expected {
		if err := check(name); !errors.Is(err, errKernel) ||
			!strings.Contains(err.Error(), "invalid kernel flag: "+name+", expected value: ") ||
			!strings.Contains(err.Error(), "actual value: 7") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
