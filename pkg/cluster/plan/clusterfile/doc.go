// Package clusterfile reads the configuration files of bonsai up: what the YAML may say, and what is wrong with it, by
// line and field. What follows from a configuration is package plan's.
package clusterfile
