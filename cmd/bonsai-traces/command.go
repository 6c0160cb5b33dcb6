package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/guard"
)

const component = "bonsai-traces"

// The sizes of --max-bytes: with less, a single trace fills the store; with more, a list would take too long.
const (
	leastBytes   = 1 << 20
	defaultBytes = 64 << 20
	mostBytes    = 4 << 30
)

// options are the flags.
type options struct {
	logging  daemon.Logging
	metrics  daemon.MetricFlags
	guard    guard.Flags
	listener daemon.Listener
	serving  daemon.Serving

	socket, dataDir   string
	forwardTo         string
	nodeSockets       map[string]string
	servingSockets    []string
	maxBytes          int64
	maxSpansPerObject int
}

func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   component,
		Short: "Keep the newest traces of a cluster",
		Long: "Takes spans by OTLP over gRPC on a socket, keeps the newest of them within a bound of bytes and over restarts, and\n" +
			"answers for them as the API group traces.bonsai.io behind the aggregator: by object, by kind and by time.\n\n" +
			"With --forward-kubeconfig it keeps nothing and sends the spans on to the API of traces of a cluster: for machines\n" +
			"of a cluster whose traces are kept on another one.",
		Args: daemon.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.logging.Validate(nil, nil); err != nil {
				return err
			}
			log, flush := o.logging.Open(cmd, component)
			defer flush()
			if err := o.validate(); err != nil {
				return err
			}
			if err := o.logging.Libraries(log); err != nil {
				return err
			}
			if o.forwardTo != "" {
				return forwardSpans(cmd.Context(), o, log)
			}
			return run(cmd.Context(), o, daemon.NewPages(component, cmd.Flags()), log)
		},
	}
	o.addFlags(cmd.Flags())
	daemon.AddVersion(cmd)
	return cmd
}

// addFlags registers the flags with their defaults.
func (o *options) addFlags(fs *pflag.FlagSet) {
	o.logging.AddFlags(fs)
	o.metrics.AddFlags(fs)
	o.guard.AddFlags(fs)
	o.listener.AddFlags(fs, component, 10270)
	o.serving.AddFlags(fs)
	fs.StringVar(&o.socket, "otlp-socket", "",
		"Path of the socket on which spans are taken by OTLP over gRPC. Its directory is made, and closed to other users.")
	fs.StringToStringVar(&o.nodeSockets, "node-socket", nil,
		"NODE=PATH of further such sockets, each for the programs of one node: what comes in by it is taken for that node's. Given several times, or separated by commas.")
	fs.StringSliceVar(&o.servingSockets, "serving-socket", nil,
		"Paths of Unix sockets on which is served, over HTTPS too, what --secure-port serves.")
	fs.StringVar(&o.forwardTo, "forward-kubeconfig", "",
		"Path of a kubeconfig. If set, the spans are not kept: they are sent on to the API of traces of the cluster to which it leads, as its user. Nothing is served but the socket of --otlp-socket.")
	fs.StringVar(&o.dataDir, "data-dir", "",
		"Directory in which the traces are kept over restarts, in files that together have at most --max-bytes.")
	fs.Int64Var(&o.maxBytes, "max-bytes", defaultBytes,
		"How many bytes of memory the kept traces may take. The traces that were active longest ago go first. The process itself needs up to half as much again.")
	fs.IntVar(&o.maxSpansPerObject, "max-spans-per-object", 1000,
		"How many spans are kept of one object. Beyond it, those in the middle of its life are dropped and counted.")
}

// validate returns every problem at once.
func (o *options) validate() error {
	return errors.Join(
		daemon.Require(o.socket != "", "--otlp-socket is required"),
		daemon.Require(o.dataDir != "" || o.forwardTo != "", "--data-dir is required"),
		daemon.Require(len(o.nodeSockets) == 0 || o.forwardTo == "", "--node-socket is not for --forward-kubeconfig"),
		daemon.Require(o.maxBytes >= leastBytes && o.maxBytes <= mostBytes, "--max-bytes %d must be from %d to %d",
			o.maxBytes, leastBytes, int64(mostBytes)),
		daemon.Require(o.maxSpansPerObject >= 2 && o.maxSpansPerObject <= 100_000,
			"--max-spans-per-object %d must be from 2 to 100000", o.maxSpansPerObject),
		o.listener.Validate(), o.serving.Validate(), o.metrics.Validate())
}
