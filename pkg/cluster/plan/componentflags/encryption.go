package componentflags

// OwnEncryption returns the file by which a user has the API servers encrypt, of the flags of all components. given
// reports whether there is such a flag.
func OwnEncryption(flags map[string]map[string]string) (file string, given bool) {
	file, given = flags["kube-apiserver"]["encryption-provider-config"]
	return file, given
}

// EncryptsSecrets reports whether the API servers encrypt Secrets by the cluster's own file, if it is wanted: a file of
// the user takes its place.
func EncryptsSecrets(wanted bool, flags map[string]map[string]string) bool {
	_, given := OwnEncryption(flags)
	return wanted && !given
}
