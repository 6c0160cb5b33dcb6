package plan

// ownEncryptionFlag is the flag of kube-apiserver with which a user gives it a file of his own.
const ownEncryptionFlag = "encryption-provider-config"

// OwnEncryption returns the file by which the user has the API servers encrypt (ComponentFlags). given reports whether
// there is such a flag.
func (c Config) OwnEncryption() (file string, given bool) {
	file, given = c.ComponentFlags["kube-apiserver"][ownEncryptionFlag]
	return file, given
}

// EncryptsSecrets reports whether the API servers encrypt Secrets by the cluster's own file, Layout.Encryption. A file
// of the user takes its place.
func (c Config) EncryptsSecrets() bool {
	_, given := c.OwnEncryption()
	return c.EncryptSecrets && !given
}
