package daemon

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/logs/json"
	_ "k8s.io/component-base/logs/json/register" // makes json a format that the flags take
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// Logging is how a component logs, by the logging flags and the section "logging" of its configuration file. Names,
// defaults, messages and lines are upstream's.
//
// A record of level Info-n is one of verbosity n: Debug, which is Info-4, is of verbosity 4.
type Logging struct{ Config logsapi.LoggingConfiguration }

// AddFlags registers the flags with their defaults.
func (l *Logging) AddFlags(fs *pflag.FlagSet) {
	logsapi.SetRecommendedLoggingConfiguration(&l.Config)
	logsapi.AddFlags(&l.Config, fs)
}

// Over returns the section of a configuration file with its defaults, and the given ones of the flags l over it.
func (l *Logging) Over(file logsapi.LoggingConfiguration, given func(flag string) bool) Logging {
	out := Logging{*file.DeepCopy()}
	c := &out.Config
	logsapi.SetRecommendedLoggingConfiguration(c)
	for name, take := range map[string]func(){
		"v":                         func() { c.Verbosity = l.Config.Verbosity },
		"vmodule":                   func() { c.VModule = l.Config.VModule },
		"logging-format":            func() { c.Format = l.Config.Format },
		"log-flush-frequency":       func() { c.FlushFrequency = l.Config.FlushFrequency },
		"log-json-info-buffer-size": func() { c.Options.JSON.InfoBufferSize = l.Config.Options.JSON.InfoBufferSize },
		"log-json-split-stream":     func() { c.Options.JSON.SplitStream = l.Config.Options.JSON.SplitStream },
		"log-text-info-buffer-size": func() { c.Options.Text.InfoBufferSize = l.Config.Options.Text.InfoBufferSize },
		"log-text-split-stream":     func() { c.Options.Text.SplitStream = l.Config.Options.Text.SplitStream },
	} {
		if given(name) {
			take()
		}
	}
	return out
}

// maxBuffer bounds what a log may keep in memory.
const maxBuffer = 1 << 30

// Validate says what is wrong with the settings, in upstream's words. The feature gates allow alpha and beta options;
// nil is all gates at their defaults. The path is that of the settings in the configuration file, nil for flags.
func (l *Logging) Validate(gates featuregate.FeatureGate, at *field.Path) error {
	errs := logsapi.Validate(&l.Config, gates, at)
	o := &l.Config.Options
	for _, format := range []struct {
		name    string
		options *logsapi.OutputRoutingOptions
	}{{"text", &o.Text.OutputRoutingOptions}, {"json", &o.JSON.OutputRoutingOptions}} {
		if size := &format.options.InfoBufferSize; size.Value() > maxBuffer {
			errs = append(errs, field.Invalid(at.Child("options").Child(format.name, "infoBufferSize"), size.String(),
				"must not be more than 1Gi"))
		}
	}
	return errs.ToAggregate()
}

// Open returns the logger of a component that runs as cmd, with its name on every record. Validate has seen the
// settings. The function that Open returns writes what is buffered; the component calls it last.
func (l *Logging) Open(cmd *cobra.Command, component string) (*slog.Logger, func()) {
	sink, flush := l.sink(cmd.OutOrStdout(), cmd.ErrOrStderr(), component)
	h := newLeveled(logr.ToSlogHandler(sink), &l.Config)
	return slog.New(h).With("component", component), flush
}

// EarlyLog is the log of a component that runs as cmd before its settings are known.
func EarlyLog(cmd *cobra.Command, component string) *slog.Logger {
	log, _ := (&Logging{*logsapi.NewLoggingConfiguration()}).Open(cmd, component) // it buffers nothing
	return log
}

// sink returns what writes lines in the format, whatever their verbosity, and what writes the buffered ones.
func (l *Logging) sink(stdout, stderr io.Writer, component string) (logr.Logger, func()) {
	routing := &l.Config.Options.Text.OutputRoutingOptions
	if l.Config.Format == logsapi.JSONLogFormat {
		routing = &l.Config.Options.JSON.OutputRoutingOptions
	}
	lost := func(lines int) []byte {
		var line bytes.Buffer
		slog.New(logr.ToSlogHandler(l.format(&line, &line))).Warn("log lines are lost, they could not be written",
			"component", component, "lines", lines)
		return line.Bytes()
	}
	rest := newStream(stderr, 0, lost)
	info, flush := rest, func() {}
	if routing.SplitStream {
		info = newStream(stdout, routing.InfoBufferSize.Value(), lost)
		if info.size > 0 {
			flush = flushEvery(l.Config.FlushFrequency.Duration.Duration, info.flush)
		}
	}
	return l.format(info, rest), flush
}

// format returns what writes lines in the format, whatever their verbosity.
func (l *Logging) format(info, rest io.Writer) logr.Logger {
	if l.Config.Format == logsapi.JSONLogFormat {
		sink, _ := json.NewJSONLogger(maxVerbosity, json.AddNopSync(info), json.AddNopSync(rest), nil)
		return sink
	}
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(split{info, rest}),
		textlogger.Verbosity(maxVerbosity)))
}

// flushEvery calls flush every so often, until the function that it returns is called, which does so a last time.
func flushEvery(d time.Duration, flush func()) func() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				flush()
			case <-stop:
				flush()
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// Libraries sends to log what client libraries log, which is through klog, as far as the settings show it. There is one
// klog in a process: a component calls it once, before anything runs that logs.
func (l *Logging) Libraries(log *slog.Logger) error {
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	for name, value := range map[string]string{"v": strconv.Itoa(int(l.Config.Verbosity)),
		"vmodule": logsapi.VModuleConfigurationPflag(&l.Config.VModule).String()} {
		if err := fs.Set(name, value); err != nil {
			return fmt.Errorf("set %s of the client libraries' log: %w", name, err)
		}
	}
	klog.SetSlogLogger(log)
	return nil
}
