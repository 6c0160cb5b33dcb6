package etcd

import "testing"

// TestInitialCluster: etcd compares the URLs of all members, so also those that have not started are in it; this
// machine's has its name.
func TestInitialCluster(t *testing.T) {
	t.Parallel()
	const own = "https://192.0.2.3:2380"
	got := initialCluster([]Member{
		{ID: "1", Name: "bonsai", PeerURLs: []string{"https://192.0.2.1:2380"}},
		{ID: "2", PeerURLs: []string{"https://192.0.2.2:2380"}},
		{ID: "3", PeerURLs: []string{own}, IsLearner: true},
	}, "m3", own)
	want := "bonsai=https://192.0.2.1:2380,member-2=https://192.0.2.2:2380,m3=" + own
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestIs: a machine that comes back finds its former member by its name or its URL, and nobody else's that has not
// started.
func TestIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		Member
		want bool
	}{
		{Member{Name: "m3", PeerURLs: []string{"https://192.0.2.9:2380"}}, true},
		{Member{PeerURLs: []string{"https://192.0.2.3:2380"}}, true},
		{Member{PeerURLs: []string{"https://192.0.2.2:2380"}}, false},
		{Member{Name: "bonsai", PeerURLs: []string{"https://192.0.2.1:2380"}}, false},
	} {
		if got := c.is("m3", "https://192.0.2.3:2380"); got != c.want {
			t.Errorf("%+v: %t", c.Member, got)
		}
	}
}
