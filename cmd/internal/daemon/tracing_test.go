package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
)

// TestTracing: the flag names the file, else the environment does; without a file no spans are made, and a file that is
// missing or wrong is an error.
func TestTracing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(file, []byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"TracingConfiguration",`+
		`"endpoint":"unix:///nowhere/x.sock","samplingRatePerMillion":1000000}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flag, env string
		on        bool
		err       string
	}{
		{"", "", false, ""},
		{file, "", true, ""},
		{"", file, true, ""},
		{file, "/nowhere", true, ""},
		{"/nowhere", file, false, `unable to read tracing configuration from "/nowhere"`},
		{"", "/nowhere", false, `unable to read tracing configuration from "/nowhere"`},
	} {
		t.Setenv(fileEnv, c.env)
		var tracing Tracing
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		tracing.AddFlags(fs)
		if err := fs.Parse([]string{"--tracing-config-file=" + c.flag}); err != nil {
			t.Fatal(err)
		}
		if err := tracing.Read(); c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		} else if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		tracer, end, err := tracing.Open(t.Context(), "kube-scheduler", "", prometheus.NewRegistry(),
			slog.New(slog.DiscardHandler))
		if err != nil || (tracer != nil) != c.on {
			t.Errorf("%+v: %v, %v", c, tracer, err)
			continue
		}
		end()
	}
}
