package config

// Idle returns the fields of a KubeSchedulerConfiguration that are checked and have no effect, each with what the
// scheduler does instead. Keys are paths in the file, without the indexes of lists.
func Idle() map[string]string {
	const (
		allNodes = "all nodes are scored"
		protobuf = "requests are protobuf"
	)
	return map[string]string{
		"parallelism":                         "one goroutine decides, and keeps its results from pod to pod",
		"percentageOfNodesToScore":            allNodes,
		"profiles.percentageOfNodesToScore":   allNodes,
		"clientConnection.acceptContentTypes": protobuf,
		"clientConnection.contentType":        protobuf,
		"delayCacheUntilActive":               "objects are watched from the start, so that a new leader schedules at once",
		"leaderElection.resourceLock":         "the lock is a Lease",
	}
}
