package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	"bonsai/api/kubeversion"
	"bonsai/pkg/trace"
	"bonsai/pkg/trace/export"
)

// Tracing is where a component sends its spans.
type Tracing struct {
	file   string
	config *tracingapi.TracingConfiguration
}

// AddFlags registers --tracing-config-file. Upstream has it for kube-apiserver alone; the file is the same everywhere.
func (t *Tracing) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&t.file, "tracing-config-file", "",
		"File with the tracing configuration (TracingConfiguration of apiserver.config.k8s.io/v1): where spans are sent to by OpenTelemetry's protocol, and how many of a million traces are recorded.")
}

// Use takes the configuration from elsewhere than a file.
func (t *Tracing) Use(c *tracingapi.TracingConfiguration) { t.config = c }

// fileEnv names the file where the flag does not. bonsai gives it to the components whose namesakes in Kubernetes have
// no such flag, so that those can take their place.
const fileEnv = "BONSAI_TRACING_CONFIG_FILE"

// Read reads the file, if there is one. The component calls it once, with the other checks of its flags.
func (t *Tracing) Read() (err error) {
	if t.file == "" {
		t.file = os.Getenv(fileEnv)
	}
	if t.file != "" {
		t.config, err = export.Read(t.file)
	}
	return err
}

// Open returns the component's Tracer, nil if no spans are wanted, and what sends the last spans: the component calls
// it when nothing runs any more. instance is the node, "" the host.
func (t *Tracing) Open(ctx context.Context, component, instance string, metrics prometheus.Registerer,
	log *slog.Logger) (*trace.Tracer, func(), error) {
	if instance == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, nil, errors.Join(errors.New("name the instance of the spans"), err)
		}
		instance = host
	}
	tracer, end, err := export.Open(ctx, export.Config{Tracing: t.config, Component: component,
		Version: kubeversion.Git, Instance: instance, Metrics: metrics, Log: log})
	if err != nil {
		return nil, nil, fmt.Errorf("--tracing-config-file: %w", err)
	}
	return tracer, end, nil
}
