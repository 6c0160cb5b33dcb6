package admission

import (
	"slices"
	"strings"
	"testing"
)

func TestSelect(t *testing.T) {
	t.Parallel()
	have := []Plugin{{Name: "Priority"}, {Name: "NodeRestriction"}, {Name: "NamespaceLifecycle"},
		{Name: "ServiceAccount"}}
	for _, c := range []struct {
		enable, disable, want []string
		wantErr               bool
	}{
		{nil, nil, []string{"NamespaceLifecycle", "ServiceAccount", "Priority"}, false},
		{[]string{"NodeRestriction"}, []string{"ServiceAccount"},
			[]string{"NamespaceLifecycle", "NodeRestriction", "Priority"}, false},
		{nil, []string{"PodSecurity", "ClusterTrustBundleAttest"},
			[]string{"NamespaceLifecycle", "ServiceAccount", "Priority"}, false},
		{[]string{"ClusterTrustBundleAttest"}, nil, nil, true}, // on by default in Kubernetes, and not built
		{[]string{"AlwaysPullImages"}, nil, nil, true},
		{[]string{"Nonsense"}, nil, nil, true},
		{nil, []string{"Nonsense"}, nil, true},
		{[]string{"Priority"}, []string{"Priority"}, nil, true},
	} {
		got, err := Select(have, c.enable, c.disable)
		if (err != nil) != c.wantErr || !slices.Equal(NewChain(got...).Names(), c.want) {
			t.Errorf("%v %v: got %v, %v", c.enable, c.disable, NewChain(got...).Names(), err)
		}
	}
	for _, n := range defaultOn() {
		if !slices.Contains(order(), n) {
			t.Errorf("%s has no place in the order", n)
		}
	}
}

// TestSelectOwn: a plug-in that Kubernetes does not have runs where its Place says, and is switched like any other.
func TestSelectOwn(t *testing.T) {
	t.Parallel()
	early := Plugin{Name: "Costs", Place: &Place{After: "NamespaceLifecycle", OnByDefault: true}}
	second := Plugin{Name: "Teams", Place: &Place{After: "NamespaceLifecycle", OnByDefault: true}}
	late := Plugin{Name: "Backups", Place: &Place{After: "Costs"}}
	notBuilt := Plugin{Name: "Zones", Place: &Place{After: "NamespaceExists", OnByDefault: true}}
	have := []Plugin{{Name: "Priority"}, early, {Name: "NamespaceLifecycle"}, second, late, notBuilt,
		{Name: "ServiceAccount"}}
	for _, c := range []struct{ enable, disable, want string }{
		{"", "", "NamespaceLifecycle Costs Teams Zones ServiceAccount Priority"},
		{"Backups", "", "NamespaceLifecycle Costs Backups Teams Zones ServiceAccount Priority"},
		{"", "Costs Zones", "NamespaceLifecycle Teams ServiceAccount Priority"},
		{"", "NamespaceLifecycle", "Costs Teams Zones ServiceAccount Priority"},
	} {
		got, err := Select(have, strings.Fields(c.enable), strings.Fields(c.disable))
		if err != nil || strings.Join(NewChain(got...).Names(), " ") != c.want {
			t.Errorf("enable %q, disable %q: %v, %v, want %s", c.enable, c.disable, NewChain(got...).Names(), err,
				c.want)
		}
	}
}

// TestSelectRefuses lists of plug-ins of which one could be left out, or run twice, without anybody noticing.
func TestSelectRefuses(t *testing.T) {
	t.Parallel()
	for want, have := range map[string][]Plugin{
		`admission plug-in "Costs" is not one of Kubernetes': it needs a Place`: {{Name: "Costs"}},
		`admission plug-in "Costs" stands after "Nonsense", which is unknown`: {
			{Name: "Costs", Place: &Place{After: "Nonsense"}}},
		`admission plug-in "Costs" stands after "Costs", which is unknown`: {
			{Name: "Costs", Place: &Place{After: "Costs"}}},
		`admission plug-in "Costs" stands after "", which is unknown`: {{Name: "Costs", Place: &Place{}}},
		`admission plug-in "Priority" is Kubernetes' and has its place already`: {
			{Name: "Priority", Place: &Place{After: "LimitRanger"}}},
		`admission plug-in "Priority" is there twice`: {{Name: "Priority"},
			{Name: "Priority"}},
		`admission plug-in "Costs" is there twice`: {
			{Name: "Costs", Place: &Place{After: "LimitRanger"}}, {Name: "Costs", Place: &Place{After: "Priority"}},
		},
		`an admission plug-in has no name`: {{}},
	} {
		if got, err := Select(have, nil, nil); err == nil || err.Error() != want {
			t.Errorf("got %v, %v, want %s", NewChain(got...).Names(), err, want)
		}
	}
}

// TestSelectNames: names that a flag cannot have are reported as upstream reports them.
func TestSelectNames(t *testing.T) {
	t.Parallel()
	have := []Plugin{{Name: "Priority"}, {Name: "NodeRestriction"}}
	for _, c := range []struct{ enable, disable, want string }{
		{"Nope", "", `enable-admission-plugins plugin "Nope" is unknown`},
		{"", "Nope Nix", "disable-admission-plugins plugin \"Nope\" is unknown\n" +
			`disable-admission-plugins plugin "Nix" is unknown`},
		{"NodeRestriction", "NodeRestriction Priority",
			"[NodeRestriction] in enable-admission-plugins and disable-admission-plugins overlapped"},
		{"EventRateLimit", "",
			`admission plug-in "EventRateLimit" is not built: nothing would check or change what it does in Kubernetes`},
	} {
		_, err := Select(have, strings.Fields(c.enable), strings.Fields(c.disable))
		if err == nil || err.Error() != c.want {
			t.Errorf("enable %q, disable %q: %v, want %s", c.enable, c.disable, err, c.want)
		}
	}
}
