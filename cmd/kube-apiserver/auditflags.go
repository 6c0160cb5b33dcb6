package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/audit/sink"
)

// auditDefaults are upstream's.
func auditDefaults() assemble.Audit {
	truncate := sink.TruncateOptions{MaxEventSize: 100 << 10, MaxBatchSize: 10 << 20}
	return assemble.Audit{
		Log: sink.LogOptions{Options: sink.Options{Mode: sink.Blocking,
			Batch: sink.BatchOptions{BufferSize: 10_000, MaxSize: 1}, Truncate: truncate},
			Format: sink.JSON, MaxAge: 366, MaxBackups: 100, MaxSize: 100},
		Webhook: sink.WebhookOptions{
			Options: sink.Options{Mode: sink.Batch,
				Batch: sink.BatchOptions{BufferSize: 10_000, MaxSize: 400, MaxWait: 30 * time.Second,
					Throttle: true, QPS: 10, Burst: 15}, Truncate: truncate}, InitialBackoff: 10 * time.Second},
	}
}

func (o *options) auditFlags(fs *pflag.FlagSet) {
	a := &o.audit
	fs.StringVar(&a.PolicyFile, "audit-policy-file", "",
		"Path to the file that defines the audit policy configuration.")
	fs.StringVar(&a.Log.Path, "audit-log-path", "",
		"If set, all requests coming to the apiserver will be logged to this file. '-' means standard out.")
	fs.StringVar(&a.Log.Format, "audit-log-format", a.Log.Format,
		`Format of saved audits. "legacy" indicates 1-line text format for each event. "json" indicates structured json format.`)
	fs.IntVar(&a.Log.MaxAge, "audit-log-maxage", a.Log.MaxAge,
		"The maximum number of days to retain old audit log files based on the timestamp encoded in their filename. 0: they are not removed by age.")
	fs.IntVar(&a.Log.MaxBackups, "audit-log-maxbackup", a.Log.MaxBackups,
		"The maximum number of old audit log files to retain. 0: all.")
	fs.IntVar(&a.Log.MaxSize, "audit-log-maxsize", a.Log.MaxSize,
		"The maximum size in megabytes of the audit log file before it gets rotated. 0: it is never rotated.")
	fs.BoolVar(&a.Log.Compress, "audit-log-compress", false,
		"If set, the rotated log files will be compressed using gzip.")
	sinkFlags(fs, "log", &a.Log.Options, &o.auditVersions)
	fs.StringVar(&a.Webhook.ConfigFile, "audit-webhook-config-file", "",
		"Path to a kubeconfig formatted file that defines the audit webhook configuration.")
	fs.DurationVar(&a.Webhook.InitialBackoff, "audit-webhook-initial-backoff", a.Webhook.InitialBackoff,
		"The amount of time to wait before retrying the first failed request.")
	sinkFlags(fs, "webhook", &a.Webhook.Options, &o.auditVersions)
}

// sinkFlags are the flags that both sinks have.
func sinkFlags(fs *pflag.FlagSet, sinkName string, o *sink.Options, versions *[]*string) {
	name := func(flag string) string { return "audit-" + sinkName + "-" + flag }
	version := auditv1.SchemeGroupVersion.String()
	*versions = append(*versions, &version)
	fs.StringVar(&version, name("version"), version, "API group and version used for serializing audit events.")
	fs.StringVar(&o.Mode, name("mode"), o.Mode,
		"Strategy for sending audit events: blocking ones are sent before the response, batch ones wait in a queue. Known modes are batch, blocking, blocking-strict.")
	fs.IntVar(&o.Batch.BufferSize, name("batch-buffer-size"), o.Batch.BufferSize,
		"The size of the buffer to store events before batching and writing. Only used in batch mode.")
	fs.IntVar(&o.Batch.MaxSize, name("batch-max-size"), o.Batch.MaxSize,
		"The maximum size of a batch. Only used in batch mode.")
	fs.DurationVar(&o.Batch.MaxWait, name("batch-max-wait"), o.Batch.MaxWait,
		"The amount of time to wait before force writing the batch that hadn't reached the max size. Only used in batch mode.")
	fs.BoolVar(&o.Batch.Throttle, name("batch-throttle-enable"), o.Batch.Throttle,
		"Whether batching throttling is enabled. Only used in batch mode.")
	fs.Float32Var(&o.Batch.QPS, name("batch-throttle-qps"), o.Batch.QPS,
		"Maximum average number of batches per second. Only used in batch mode.")
	fs.IntVar(&o.Batch.Burst, name("batch-throttle-burst"), o.Batch.Burst,
		"Maximum number of requests sent at the same moment if ThrottleQPS was not utilized before. Only used in batch mode.")
	fs.BoolVar(&o.Truncate.Enabled, name("truncate-enabled"), false, "Whether event and batch truncating is enabled.")
	fs.Int64Var(&o.Truncate.MaxEventSize, name("truncate-max-event-size"), o.Truncate.MaxEventSize,
		"Maximum size of the audit event in bytes. From a larger one request and response are removed, and if it is still larger, it is discarded.")
	fs.Int64Var(&o.Truncate.MaxBatchSize, name("truncate-max-batch-size"), o.Truncate.MaxBatchSize,
		"Maximum size of the batch in bytes. A larger one is split.")
}

// validateAudit tells what is wrong with the flags of the audit log.
func (o *options) validateAudit() []error {
	errs := []error{o.audit.Validate()}
	for _, v := range o.auditVersions {
		if want := auditv1.SchemeGroupVersion.String(); *v != want {
			errs = append(errs, fmt.Errorf("invalid group version, allowed versions are [%q]", want))
		}
	}
	return errs
}
