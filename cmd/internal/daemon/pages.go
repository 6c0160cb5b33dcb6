package daemon

import (
	goruntime "runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"bonsai/api/kubeversion"
	"bonsai/pkg/zpages"
)

// NewPages returns what /statusz and /flagz of a component that starts now show. The flags are parsed.
func NewPages(component string, flags *pflag.FlagSet) *zpages.Config {
	return &zpages.Config{
		Component: component, Version: strings.TrimPrefix(kubeversion.Release, "v"), Emulation: kubeversion.API,
		GoVersion: goruntime.Version(), Started: time.Now(), Now: time.Now, Flags: zpages.Flags(flags),
	}
}
