package daemon

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestCheckCloudProvider(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"": "", "external": "",
		"aws":      `cloud provider "aws" was specified, but built-in cloud providers are disabled`,
		"External": "--cloud-provider"} {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		fs.String("cloud-provider", value, "")
		if err := CheckCloudProvider(fs); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", value, err)
		}
	}
}
