package kubectl

import (
	"errors"
	"flag"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"bonsai/pkg/kubectl/profile"
)

// diagnosis is what kubectl says of its own run: the log of requests (-v) and a profile (--profile).
type diagnosis struct {
	profile profile.Profile
	flush   time.Duration
	begun   bool
}

func (d *diagnosis) addFlags(to *pflag.FlagSet) {
	set := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(set)
	set.DurationVar(&d.flush, "log-flush-frequency", 5*time.Second, "Maximum number of seconds between log flushes")
	set.Lookup("vmodule").Usage =
		"comma-separated list of pattern=N settings for file-filtered logging (only works for the default text log format)"
	for _, name := range []string{"v", "vmodule", "log-flush-frequency"} {
		to.AddGoFlag(set.Lookup(name))
	}
	d.profile.AddFlags(to)
}

// begin starts them, after the flags were parsed.
func (d *diagnosis) begin() error {
	if d.flush <= 0 {
		return errors.New("--log-flush-frequency must be greater than 0")
	}
	if err := d.profile.Start(); err != nil {
		return err
	}
	klog.StartFlushDaemon(d.flush)
	d.begun = true
	return nil
}

// end writes what is left to write, whatever became of the command.
func (d *diagnosis) end() error {
	if d.begun {
		klog.StopFlushDaemon()
	}
	return d.profile.Stop()
}
