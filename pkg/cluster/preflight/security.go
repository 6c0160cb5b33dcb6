package preflight

// confinement is about what confines containers, and what may confine the cluster itself.
func confinement(m Machine, _ Needs) []Finding {
	apparmor := Finding{OK, "AppArmor", "on: containers have the runtime's profile", ""}
	if m.AppArmor && m.Account != nil {
		apparmor = Finding{Note, "AppArmor",
			"on, but only root loads profiles: containers run without, and pods with an AppArmor profile do not start", ""}
	}
	if !m.AppArmor {
		apparmor = Finding{Note, "AppArmor", "off: pods with an AppArmor profile do not start", ""}
	}
	selinux := Finding{OK, "SELinux", "off", ""}
	switch m.SELinux {
	case "enforcing":
		selinux = Finding{Warning, "SELinux", "SELinux is enforcing, which Bonsai sets no labels for: if containers are " +
			"refused files, look for denials", "ausearch -m avc -ts recent"}
	case "permissive":
		selinux.Text = "permissive"
	}
	return []Finding{apparmor, selinux}
}
