package daemon

import (
	"fmt"

	"github.com/spf13/pflag"
)

// ExternalCloud is the one value of --cloud-provider beside the empty one: providers run as cloud controller managers.
const ExternalCloud = "external"

// CheckCloudProvider refuses a --cloud-provider of fs that Kubernetes had built in once.
func CheckCloudProvider(fs *pflag.FlagSet) error {
	p, err := fs.GetString("cloud-provider")
	if err != nil || p == "" || p == ExternalCloud {
		return err
	}
	return fmt.Errorf("--cloud-provider: cloud provider %q was specified, but built-in cloud providers are disabled. "+
		"Please set --cloud-provider=external and migrate to an external cloud provider", p)
}
