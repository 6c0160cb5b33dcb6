package write

import (
	"context"
	"errors"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubectl/resource"
)

// ServerManager is the field manager of server-side apply if the user names none.
const ServerManager = "kubectl"

// ServerSide are --server-side and --force-conflicts.
type ServerSide struct {
	// On lets the server merge; Force makes the fields ours that others have with other values.
	On, Force bool
}

// AddFlags adds the flags.
func (s *ServerSide) AddFlags(set *pflag.FlagSet) {
	set.BoolVar(&s.On, "server-side", false, "If true, apply runs in the server instead of the client.")
	set.BoolVar(&s.Force, "force-conflicts", false,
		"If true, server-side apply will force the changes against conflicts.")
}

// Complete makes ServerManager the manager of f, unless set has another one.
func (s *ServerSide) Complete(set *pflag.FlagSet, f *Flags) {
	if s.On && !set.Changed("field-manager") {
		f.Manager = ServerManager
	}
}

// Validate refuses flags that do not go together.
func (s *ServerSide) Validate() error {
	if s.Force && !s.On {
		return errors.New("--force-conflicts only works with --server-side")
	}
	return nil
}

// Apply sends config, an object's configuration in JSON, and keeps the answer in i.
func (s *ServerSide) Apply(ctx context.Context, i *resource.Info, config []byte, opts metav1.PatchOptions,
	subresource ...string) error {
	opts.Force = &s.Force
	return i.Patch(ctx, types.ApplyPatchType, config, opts, subresource...)
}
