// Package election is the flags of leader election, which kube-controller-manager and kube-scheduler share, and how
// they enter one.
package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"

	"bonsai/pkg/leader"
)

// Flags holds the flags, under upstream's names.
type Flags struct {
	Enabled         bool
	Namespace, Name string
	// Lease, Renew and Retry are as in leader.Config.
	Lease, Renew, Retry time.Duration
	// Lock is the kind of object that is the lock. Validate refuses all but "leases": two processes with locks of
	// different kinds would both lead.
	Lock string
}

// AddFlags registers the flags with upstream's defaults; name is the Lease's.
func (f *Flags) AddFlags(fs *pflag.FlagSet, name string) {
	fs.BoolVar(&f.Enabled, "leader-elect", true, "Become leader by a Lease before beginning to work.")
	fs.StringVar(&f.Namespace, "leader-elect-resource-namespace", "kube-system", "Namespace of the Lease.")
	fs.StringVar(&f.Name, "leader-elect-resource-name", name, "Name of the Lease.")
	fs.StringVar(&f.Lock, "leader-elect-resource-lock", "leases", "The kind of the lock: 'leases' is the only one.")
	fs.DurationVar(&f.Lease, "leader-elect-lease-duration", 15*time.Second,
		"How long others wait after the leader's last renewal before they take over.")
	fs.DurationVar(&f.Renew, "leader-elect-renew-deadline", 10*time.Second,
		"How long the leader tries to renew before it gives up.")
	fs.DurationVar(&f.Retry, "leader-elect-retry-period", 2*time.Second, "Time between tries to acquire or renew.")
}

// Validate returns every problem at once.
func (f *Flags) Validate() error {
	if !f.Enabled {
		return nil
	}
	var errs []error
	if f.Lock != "leases" {
		errs = append(errs, fmt.Errorf("--leader-elect-resource-lock must be \"leases\", not %q", f.Lock))
	}
	if f.Lease <= f.Renew || f.Renew <= f.Retry || f.Retry <= 0 {
		errs = append(errs, fmt.Errorf(
			"--leader-elect-lease-duration (%s) must be greater than --leader-elect-renew-deadline (%s), and that greater than --leader-elect-retry-period (%s)", f.Lease, f.Renew, f.Retry))
	}
	return errors.Join(errs...)
}

// Run calls work once this process holds the Lease, or at once if no election is wanted, and returns when work did.
// Losing the Lease is an error. m counts what comes of the election.
func (f *Flags) Run(ctx context.Context, leases leader.Leases, m *Metrics, log *slog.Logger,
	work func(context.Context) error) error {
	if !f.Enabled {
		return work(ctx)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this candidate for leadership: %w", err)
	}
	return leader.Run(ctx, leader.Config{
		Leases: leases, Namespace: f.Namespace, Name: f.Name, Identity: host + "_" + string(uuid.NewUUID()),
		Lease: f.Lease, Renew: f.Renew, Retry: f.Retry, Observer: m, Log: log,
	}, work)
}
