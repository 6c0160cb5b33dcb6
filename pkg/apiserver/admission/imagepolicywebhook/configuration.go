package imagepolicywebhook

import (
	"errors"
	"fmt"
	"time"

	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Configuration is what the configuration file says.
type Configuration struct {
	// KubeConfigFile is a kubeconfig that says where the webhook is, and by what it knows the server.
	KubeConfigFile string
	// AllowTTL and DenyTTL are how long an answer holds; 0: it is not remembered.
	AllowTTL, DenyTTL time.Duration
	// RetryBackoff is the wait before the first repetition; 0: there is none between them.
	RetryBackoff time.Duration
	// DefaultAllow lets images in while the webhook does not answer.
	DefaultAllow bool
}

// What the configuration means that does not say it, and what it may say: as upstream.
const (
	defaultAllowTTL, defaultDenyTTL = 5 * time.Minute, 30 * time.Second
	minTTL, maxTTL                  = time.Second, 30 * time.Minute
	defaultBackoff                  = 500 * time.Millisecond
	minBackoff, maxBackoff          = time.Nanosecond, 5 * time.Minute
)

// unset in the file is none at all: nothing is remembered, nothing is waited for.
const unset = -1

// ReadConfiguration reads a configuration strictly. Its TTLs are seconds, its backoff milliseconds; 0 is the default.
func ReadConfiguration(text []byte) (*Configuration, error) {
	doc, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	var file struct {
		ImagePolicy struct {
			KubeConfigFile string `json:"kubeConfigFile"`
			AllowTTL       int64  `json:"allowTTL"`
			DenyTTL        int64  `json:"denyTTL"`
			RetryBackoff   int64  `json:"retryBackoff"`
			DefaultAllow   bool   `json:"defaultAllow"`
		} `json:"imagePolicy"`
	}
	strict, err := sigsjson.UnmarshalStrict(doc, &file)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	in := &file.ImagePolicy
	c := &Configuration{KubeConfigFile: in.KubeConfigFile, DefaultAllow: in.DefaultAllow}
	if c.KubeConfigFile == "" {
		return nil, errors.New("imagePolicy.kubeConfigFile: Required value")
	}
	for _, d := range []struct {
		name                string
		in                  int64
		unit, def, min, max time.Duration
		out                 *time.Duration
	}{
		{"allowTTL", in.AllowTTL, time.Second, defaultAllowTTL, minTTL, maxTTL, &c.AllowTTL},
		{"denyTTL", in.DenyTTL, time.Second, defaultDenyTTL, minTTL, maxTTL, &c.DenyTTL},
		{"retryBackoff", in.RetryBackoff, time.Millisecond, defaultBackoff, minBackoff, maxBackoff, &c.RetryBackoff},
	} {
		// What would overflow is out of range in any unit.
		got := time.Duration(min(max(d.in, -1e6), 1e9)) * d.unit
		switch {
		case d.in == unset:
		case d.in == 0:
			*d.out = d.def
		case got < d.min || got > d.max:
			return nil, fmt.Errorf("imagePolicy.%s: valid value is between %v and %v, got %v", d.name, d.min, d.max,
				got)
		default:
			*d.out = got
		}
	}
	return c, nil
}
