package apiversions

import (
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

func TestAPIVersions(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t)
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"api-versions"},
			"apps/v1\nautoscaling/v2\nbatch/v1\ncertificates.k8s.io/v1\ndiscovery.k8s.io/v1\nv1\n", 0},
		{[]string{"api-versions", "x"},
			"error: unexpected arguments: [x]\nSee 'kubectl api-versions -h' for help and examples\n", 1},
	} {
		if got, code := writetest.Run(t, NewCommand, s.URL, "", c.args...); got != c.want || code != c.code {
			t.Errorf("%v: code %d, %q, want %q", c.args, code, got, c.want)
		}
	}
	if got, code := writetest.Run(t, NewCommand, "", "", "api-versions"); code != 1 {
		t.Errorf("without a server: code %d, %q", code, got)
	}
}
