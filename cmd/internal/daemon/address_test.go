package daemon

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestAddressVar(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "0.0.0.0", "127.0.0.1": "127.0.0.1", "::1": "::1", "localhost": "",
		"1.2.3": "", "1.2.3.4:80": ""} {
		var got string
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		AddressVar(fs, &got, "bind-address", "0.0.0.0", "")
		err := fs.Parse([]string{"--bind-address=" + text})
		switch {
		case want != "" && (err != nil || got != want):
			t.Errorf("%q: %s, %v", text, got, err)
		case want == "" && (err == nil ||
			err.Error() != `invalid argument "`+text+`" for "--bind-address" flag: failed to parse IP: "`+text+`"`):
			t.Errorf("%q: %v", text, err)
		}
	}
}
