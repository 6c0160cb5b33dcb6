package assemble

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/audit"
	"bonsai/pkg/apiserver/audit/sink"
)

// Audit says what is noted for the audit log and where it goes, in the words of upstream's flags.
type Audit struct {
	// PolicyFile; "": nothing is noted.
	PolicyFile string
	Log        sink.LogOptions
	Webhook    sink.WebhookOptions
}

// Validate tells what is wrong with the options.
func (o *Audit) Validate() error { return errors.Join(o.Log.Validate(), o.Webhook.Validate()) }

// NewAuditor makes what notes requests; nil if nothing is to be noted, or nowhere.
func NewAuditor(ctx context.Context, o *Audit, stdout io.Writer, metrics prometheus.Registerer,
	log *slog.Logger) (*audit.Auditor, error) {
	if o.PolicyFile == "" {
		if o.Log.Path != "" || o.Webhook.ConfigFile != "" {
			log.Warn("there is an audit log, and no --audit-policy-file that says what goes into it: nothing does")
		}
		return nil, nil
	}
	policy, err := audit.Load(o.PolicyFile)
	if err != nil {
		return nil, err
	}
	cfg := audit.Config{Policy: policy, Scheme: scheme.New(), Metrics: audit.NewMetrics(metrics), Log: log}
	lost := func(sink string, events int, err error) {
		cfg.Metrics.Lost(sink, events)
		log.Error("audit events are lost", "sink", sink, "events", events, "err", err)
	}
	if o.Log.Path != "" {
		s, err := sink.Log(ctx, &o.Log, stdout, lost)
		if err != nil {
			return nil, err
		}
		cfg.Sinks = append(cfg.Sinks, s)
	}
	if o.Webhook.ConfigFile != "" {
		s, err := sink.Webhook(ctx, &o.Webhook, lost)
		if err != nil {
			return nil, err
		}
		cfg.Sinks = append(cfg.Sinks, s)
	}
	if len(cfg.Sinks) == 0 {
		log.Warn("there is an audit policy, and neither --audit-log-path nor --audit-webhook-config-file: nothing is noted")
		return nil, nil
	}
	return audit.New(cfg), nil
}
