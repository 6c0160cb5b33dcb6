package network

// ownerAlias is the data directory, cut to what the kernel takes as a link's alias.
func ownerAlias(dataDir string) string {
	const most = 255 // IFALIASZ with its end
	return dataDir[:min(len(dataDir), most)]
}
