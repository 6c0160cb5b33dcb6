// Package runtimeconfig reads --runtime-config: which of the server's own APIs are served.
package runtimeconfig

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
)

// Config says which APIs are not served. The zero value serves all.
type Config struct {
	// all are the switches of whole classes of versions, in the order in which they count.
	all       []class
	versions  map[schema.GroupVersion]bool
	resources map[schema.GroupVersionResource]bool
	// declined are versions that this server does not have and that are switched off.
	declined map[schema.GroupVersion]bool
}

// class is a switch of all versions that match.
type class struct {
	versions *regexp.Regexp
	on       bool
}

// Off reports whether a resource is not served in a version. A resource counts more than its version, which counts more
// than the classes that it belongs to.
func (c *Config) Off(gvr schema.GroupVersionResource) bool {
	if on, given := c.resources[gvr]; given {
		return !on
	}
	return !c.on(gvr.GroupVersion())
}

func (c *Config) on(gv schema.GroupVersion) bool {
	if on, given := c.versions[gv]; given {
		return on
	}
	on := true
	for _, k := range c.all {
		if k.versions.MatchString(gv.Version) {
			on = k.on
		}
	}
	return on
}

// FairnessOff is the key of the flag that switches off the objects of priority and fairness; "" if none does.
func (c *Config) FairnessOff(given map[string]string) string {
	gv := flowcontrolv1.SchemeGroupVersion
	if on, ok := c.versions[gv]; ok && !on {
		return gv.String() + "=" + given[gv.String()]
	}
	for _, key := range []string{"api/all", "api/ga"} {
		if value, ok := given[key]; ok && !c.on(gv) {
			return key + "=" + value
		}
	}
	return ""
}

// lacking is a version that Kubernetes has beyond those of our rows.
type lacking struct {
	schema.GroupVersion
	// gated reports whether Kubernetes serves it with a feature gate alone, which is off by default.
	gated bool
}

// notBuilt are these versions, all of them off by default.
func notBuilt() []lacking {
	version := func(group, version string) lacking {
		return lacking{schema.GroupVersion{Group: group, Version: version}, false}
	}
	gated := func(group, version string) lacking {
		return lacking{schema.GroupVersion{Group: group, Version: version}, true}
	}
	return []lacking{
		version("admissionregistration.k8s.io", "v1alpha1"), version("admissionregistration.k8s.io", "v1beta1"),
		version("certificates.k8s.io", "v1beta1"), version("coordination.k8s.io", "v1alpha2"),
		version("coordination.k8s.io", "v1beta1"), version("internal.apiserver.k8s.io", "v1alpha1"),
		gated("lifecycle.k8s.io", "v1alpha1"), version("resource.k8s.io", "v1alpha3"),
		version("resource.k8s.io", "v1beta1"), version("resource.k8s.io", "v1beta2"),
		gated("scheduling.k8s.io", "v1alpha3"), gated("scheduling.k8s.io", "v1beta1"),
		version("storagemigration.k8s.io", "v1beta1"),
	}
}

// Parse reads the values of the flag for a server with these rows. An error names every key that is wrong.
func Parse(given map[string]string, rows []resources.Row) (*Config, error) {
	c := &Config{versions: map[schema.GroupVersion]bool{}, resources: map[schema.GroupVersionResource]bool{},
		declined: map[schema.GroupVersion]bool{}}
	if value := given["api/all"]; value == "false" && len(given) == 1 {
		return nil, errors.New("invalid runtime-config with only api/all=false")
	}
	known := newServed(rows)
	var errs []error
	for _, k := range []struct{ key, versions string }{
		{"api/all", ".*"}, {"api/ga", `^v[0-9]+$`}, {"api/beta", `^v[0-9]+beta[0-9]+$`},
		{"api/alpha", `^v[0-9]+alpha[0-9]+$`},
	} {
		value, ok := given[k.key]
		if !ok {
			continue
		}
		on, err := boolean(value)
		if err != nil {
			errs = append(errs, fmt.Errorf("invalid value %s=%s", k.key, value))
			continue
		}
		c.all = append(c.all, class{regexp.MustCompile(k.versions), on})
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		switch key {
		case "api/all", "api/ga", "api/beta", "api/alpha", "api/legacy":
			continue
		}
		errs = append(errs, c.add(key, given[key], known))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// Lacking returns the versions that Kubernetes would serve by these switches and this server does not have. A class is
// a wish for what there is, which differs from release to release, so it starts without them.
func (c *Config) Lacking() []schema.GroupVersion {
	var out []schema.GroupVersion
	for _, other := range notBuilt() {
		on := false // as all of them are by default
		for _, k := range c.all {
			if k.versions.MatchString(other.Version) {
				on = k.on
			}
		}
		if on && !other.gated && !c.declined[other.GroupVersion] {
			out = append(out, other.GroupVersion)
		}
	}
	return out
}

// boolean is the value of a key; a key alone switches on.
func boolean(value string) (bool, error) {
	if value == "" {
		return true, nil
	}
	return strconv.ParseBool(value)
}

// served is what rows serve.
type served struct {
	groups    map[string]bool
	versions  map[schema.GroupVersion]bool
	resources map[schema.GroupVersionResource]bool
}

func newServed(rows []resources.Row) *served {
	s := &served{map[string]bool{}, map[schema.GroupVersion]bool{}, map[schema.GroupVersionResource]bool{}}
	for i := range rows {
		for _, v := range rows[i].ServedVersions() {
			gv := schema.GroupVersion{Group: rows[i].GVK.Group, Version: v.Name}
			s.groups[gv.Group], s.versions[gv] = true, true
			s.resources[gv.WithResource(rows[i].Resource)] = true
		}
	}
	return s
}

// add reads one key: v1, GROUP/VERSION or GROUP/VERSION/RESOURCE.
func (c *Config) add(key, value string, known *served) error {
	var gv schema.GroupVersion
	resource := ""
	switch parts := strings.Split(key, "/"); {
	case key == "v1" || key == "api/v1":
		gv.Version = "v1"
	case len(parts) == 2 && parts[0] != "":
		gv.Group, gv.Version = parts[0], parts[1]
	case len(parts) == 3:
		gv.Group, gv.Version, resource = parts[0], parts[1], parts[2]
		if gv.Group == "api" {
			gv.Group = ""
		}
	default:
		return fmt.Errorf("runtime-config invalid key %s", key)
	}
	on, err := boolean(value)
	if err != nil {
		return fmt.Errorf("invalid value of %s: %s, err: %w", key, value, err)
	}
	if !known.versions[gv] {
		c.declined[gv] = !on && resource == ""
		return absent(gv, on, known)
	}
	if resource == "" {
		c.versions[gv] = on
		return nil
	}
	gvr := gv.WithResource(resource)
	if !known.resources[gvr] {
		return fmt.Errorf("--runtime-config: %s has no resource %q", gv, resource)
	}
	c.resources[gvr] = on
	return nil
}

// absent is why a version that no row serves cannot be switched; nil if it is to be off, as it is.
func absent(gv schema.GroupVersion, on bool, known *served) error {
	group := known.groups[gv.Group]
	for _, other := range notBuilt() {
		if other.GroupVersion == gv {
			if !on {
				return nil
			}
			return fmt.Errorf("--runtime-config: %s is not supported: remove it to start without that", gv)
		}
		group = group || other.Group == gv.Group
	}
	if !group {
		return fmt.Errorf("unknown api groups %s", gv)
	}
	return fmt.Errorf("group version %s that has not been registered", gv)
}
