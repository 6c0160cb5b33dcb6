package daemon

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

// Logging holds the logging flags: -v (verbosity: 2 shows the steps of package trace too, 4 debug records) and
// --logging-format (text or json).
type Logging struct {
	Verbosity int
	Format    string
}

// AddFlags registers the flags with their defaults, v=0 and text.
func (l *Logging) AddFlags(fs *pflag.FlagSet) {
	fs.IntVarP(&l.Verbosity, "v", "v", 0, "number for the log level verbosity")
	fs.StringVar(&l.Format, "logging-format", "text", `sets the log format, "text" or "json"`)
}

// New returns the logger that the flags ask for, with the component's name on every record.
func (l *Logging) New(w io.Writer, component string) (*slog.Logger, error) {
	// A record of level Info-n is one of verbosity n: so Debug, which is Info-4, is one of verbosity 4.
	opts := &slog.HandlerOptions{Level: slog.LevelInfo - slog.Level(max(0, l.Verbosity))}
	switch l.Format {
	case "text", "":
		return slog.New(slog.NewTextHandler(w, opts)).With("component", component), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)).With("component", component), nil
	}
	return nil, fmt.Errorf(`--logging-format: unsupported format %q, must be "text" or "json"`, l.Format)
}
