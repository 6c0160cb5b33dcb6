package join

import (
	"net/netip"
	"strings"
	"testing"
)

// TestCheckOptions: what cannot work is refused before anything is asked or waited for, and the flag is named.
func TestCheckOptions(t *testing.T) {
	t.Parallel()
	server := "the cluster's address must be HOST:PORT"
	address := "--node-ip: must be an IPv4 address by which other machines reach this one"
	for _, c := range []struct {
		change func(o *Options)
		want   string // what the error begins with
	}{
		{func(*Options) {}, ""},
		{func(o *Options) { o.Server = "bonsai.example:443" }, ""},
		{func(o *Options) { o.Server = "192.0.2.1" }, server},
		{func(o *Options) { o.Server = "192.0.2.1:6443x" }, server},
		{func(o *Options) { o.Server = "192.0.2.1:65536" }, server},
		{func(o *Options) { o.Server = "192.0.2.1:0" }, server},
		{func(o *Options) { o.NodeIP = netip.MustParseAddr("192.0.2.2") }, ""},
		{func(o *Options) { o.NodeIP = netip.MustParseAddr("127.0.0.1") }, address},
		{func(o *Options) { o.NodeIP = netip.MustParseAddr("0.0.0.0") }, address},
		{func(o *Options) { o.NodeIP = netip.MustParseAddr("224.0.0.1") }, address},
		{func(o *Options) { o.NodeIP = netip.MustParseAddr("2001:db8::2") }, address},
		{func(o *Options) { o.NodeIP = netip.MustParseAddr("::ffff:192.0.2.2") }, address},
		{func(o *Options) { o.Labels = map[string]string{"disktype": "ssd", "x": ""} }, ""},
		{func(o *Options) { o.Labels = map[string]string{"a b": "c"} }, "--labels: "},
		{func(o *Options) { o.Labels = map[string]string{"x": "y z"} }, "--labels: "},
	} {
		o := Options{Server: "192.0.2.1:6443", Token: joiner.String(), UnsafeSkipCAVerification: true}
		c.change(&o)
		if _, err := o.Check(); c.want == "" && err != nil ||
			c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%+v: %v, not %q", o, err, c.want)
		}
	}
}
