package etcd

import (
	"testing"
	"time"
)

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

// A learner that never starts gives way to the next machine, but not one that another machine has just added.
func TestUnstarted(t *testing.T) {
	t.Parallel()
	var u unstarted
	begun := time.Unix(1e6, 0)
	for i, step := range []struct {
		member Member
		after  time.Duration
		want   bool
	}{
		{Member{ID: "1", IsLearner: true}, 0, false},
		{Member{ID: "1", IsLearner: true}, startPatience - 1, false},
		{Member{ID: "2", IsLearner: true}, startPatience, false}, // another one, from now on
		{Member{ID: "2", IsLearner: true}, 2*startPatience - 1, false},
		{Member{ID: "2", Name: "m2", IsLearner: true}, 3 * startPatience, false}, // it has started
		{Member{ID: "3"}, 3 * startPatience, false},                              // it votes
		{Member{ID: "2", IsLearner: true}, 2 * startPatience, true},
	} {
		if got := u.tooLong(step.member, begun.Add(step.after)); got != step.want {
			t.Errorf("step %d: %t, want %t", i, got, step.want)
		}
	}
}
