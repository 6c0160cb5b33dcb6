package preflight

import (
	"errors"
	"strings"
	"testing"
)

// able is a user who can run clusters.
func able() Account {
	return Account{Name: "anna", UID: 1000, SubUIDs: 65536, SubGIDs: 65536, Least: 65536,
		Programs: []Program{{Name: "newuidmap", Found: true}, {Name: "nsenter", Found: true}},
		Networks: []Program{{Name: "pasta"}, {Name: "slirp4netns", Found: true}},
		Unified:  true, Delegated: []string{"cpu", "memory", "pids"}, Lingers: true}
}

// TestInspectAccount: each thing that a user lacks is named with the command that gives it.
func TestInspectAccount(t *testing.T) {
	t.Parallel()
	debian := Distribution{ID: "debian"}
	for _, test := range []struct {
		name    string
		change  func(*Account)
		sysctls map[string]string
		level   Level
		text    string
		run     string
	}{
		{name: "nothing", change: func(*Account) {}, level: OK, text: "namespaces of anna"},
		{"no newuidmap", func(a *Account) { a.Programs[0].Found = false }, nil, Missing, "needs newuidmap",
			"sudo apt-get install -y uidmap"},
		{"no network", func(a *Account) { a.Networks[1].Found = false }, nil, Missing, "pasta or slirp4netns is needed",
			"sudo apt-get install -y passt slirp4netns"},
		{"no IDs", func(a *Account) { a.SubUIDs = 1000 }, nil, Missing, "/etc/subuid gives anna 1000 IDs",
			"sudo usermod --add-subuids 100000-165535 anna"},
		{"no group IDs", func(a *Account) { a.SubGIDs = 0 }, nil, Missing, "/etc/subgid gives anna 0 IDs",
			"sudo usermod --add-subgids 100000-165535 anna"},
		{"Debian's sysctl", func(a *Account) { a.Namespaces = errors.New("operation not permitted") },
			map[string]string{"kernel.unprivileged_userns_clone": "0"}, Missing, "as kernel.unprivileged_userns_clone is 0",
			"sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		{"Ubuntu's sysctl", func(a *Account) { a.Namespaces = errors.New("permission denied") },
			map[string]string{"kernel.apparmor_restrict_unprivileged_userns": "1"}, Missing,
			"as kernel.apparmor_restrict_unprivileged_userns is 1",
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{"the sysctl, for programs without a profile of their own", func(*Account) {},
			map[string]string{"kernel.apparmor_restrict_unprivileged_userns": "1"}, OK, "namespaces of anna", ""},
		{"an unknown reason", func(a *Account) { a.Namespaces = errors.New("no space left on device") }, nil, Missing,
			"no user namespaces: no space left on device", ""},
		{"no systemd", func(a *Account) { a.Systemd = errors.New("no such file") }, nil, Missing, "not with su",
			"sudo loginctl enable-linger anna"},
		{"cgroup v1", func(a *Account) { a.Unified = false }, nil, Missing, "cgroup v1", ""},
		{"a controller", func(a *Account) { a.Delegated = []string{"memory", "pids"} }, nil, Missing,
			"controllers cpu are not delegated to anna",
			"sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | " +
				"sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload"},
		{"a session that ends", func(a *Account) { a.Lingers = false }, nil, Warning, "when anna logs out",
			"sudo loginctl enable-linger anna"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := able()
			test.change(&a)
			found := InspectAccount(a, test.sysctls, debian)
			if len(found) != 1 || found[0].Level != test.level || !strings.Contains(found[0].Text, test.text) ||
				found[0].Run != test.run {
				t.Errorf("%+v", found)
			}
			if err := AccountErrors(found); (err != nil) != (test.level == Missing) {
				t.Error(err)
			}
		})
	}
}

// TestInspectInside: what only root of the machine gets, or does, is no error in a user's namespaces; commands that
// mend are root's.
func TestInspectInside(t *testing.T) {
	t.Parallel()
	a := able()
	m := Machine{Account: &a, AppArmor: true, Cgroups: Cgroups{Unified: true, Here: []string{"cpu", "memory", "pids"}},
		Sysctls: map[string]string{"kernel.keys.maxkeys": "20", "fs.inotify.max_user_instances": "12"}}
	want := map[string]string{"cgroups": "cpuset is not delegated", "AppArmor": "containers run without",
		"sysctls": "sudo sysctl -w kernel.keys.maxkeys="}
	for _, f := range Inspect(m, Needs{Nodes: 1}) {
		if f.Subject == "cgroups" && f.Level == Missing {
			t.Errorf("%+v", f)
		}
		if text, ok := want[f.Subject]; ok && strings.Contains(f.String(), text) {
			delete(want, f.Subject)
		}
	}
	if len(want) > 0 {
		t.Errorf("nothing of %q", want)
	}
}
