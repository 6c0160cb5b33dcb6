package config

import configv1 "k8s.io/kube-scheduler/config/v1"

// IdleField is a field of the configuration file that has no effect.
//
// Such fields are accepted, or a file that was written for another scheduler could not be used; the log names them, so
// that nobody believes in an effect.
type IdleField struct {
	// Name is its path in the file, without the marks of lists; Why says what the scheduler does instead.
	Name, Why string
	// Set reports whether the file sets it to something else than its default.
	Set bool
}

// Idle returns the names of the fields without effect that the file sets to something else than their default.
func Idle(c *configv1.KubeSchedulerConfiguration) (names []string) {
	for _, f := range IdleFields(c) {
		if f.Set {
			names = append(names, f.Name)
		}
	}
	return names
}

// IdleFields returns all fields that have no effect. c has its defaults.
func IdleFields(c *configv1.KubeSchedulerConfiguration) []IdleField {
	const (
		allNodes = "all nodes are scored"
		protobuf = "requests are protobuf"
	)
	profiles := false
	for i := range c.Profiles {
		profiles = profiles || other(c.Profiles[i].PercentageOfNodesToScore, 0)
	}
	client := &c.ClientConnection
	return []IdleField{
		{"clientConnection.acceptContentTypes", protobuf, client.AcceptContentTypes != ""},
		{"clientConnection.contentType", protobuf,
			client.ContentType != "" && client.ContentType != "application/vnd.kubernetes.protobuf"},
		{"delayCacheUntilActive", "objects are watched from the start, so that a new leader schedules at once",
			c.DelayCacheUntilActive},
		{"parallelism", "one goroutine decides, and keeps its results from pod to pod",
			other(c.Parallelism, defaultParallelism)},
		{"percentageOfNodesToScore", allNodes, other(c.PercentageOfNodesToScore, 0)},
		{"profiles.percentageOfNodesToScore", allNodes, profiles},
	}
}

// other reports whether a field is set, and not to its default.
func other(p *int32, usual int32) bool { return p != nil && *p != usual }
