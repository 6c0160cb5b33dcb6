package componentflags

// OwnEtcd returns the flag by which a user has the API servers keep objects in another etcd than the cluster's, of the
// flags of all components. given reports whether there is such a flag.
func OwnEtcd(flags map[string]map[string]string) (flag string, given bool) {
	for _, flag := range []string{"etcd-servers", "etcd-servers-overrides"} {
		if flags["kube-apiserver"][flag] != "" {
			return flag, true
		}
	}
	return "", false
}
