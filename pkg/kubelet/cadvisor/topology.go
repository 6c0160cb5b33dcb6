package cadvisor

import "strings"

// Topology counts what /proc/cpuinfo lists: logical cores, physical ones and sockets. Machines that list no sockets
// have one.
func Topology(cpuinfo string) (cores, physical, sockets int) {
	seenSockets, seenCores := map[string]bool{}, map[string]bool{}
	socket := ""
	for line := range strings.Lines(cpuinfo) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(name) {
		case "processor":
			cores++
		case "physical id":
			socket = value
			seenSockets[value] = true
		case "core id":
			seenCores[socket+"/"+value] = true
		}
	}
	if physical = len(seenCores); physical == 0 {
		physical = cores
	}
	return cores, physical, max(len(seenSockets), 1)
}
