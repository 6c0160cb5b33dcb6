package plan

import (
	"net/url"
	"regexp"
)

// secretFlag matches the names of flags whose values are secrets, or may be, as headers of requests.
var secretFlag = regexp.MustCompile(`(?i)token|password|secret|header`)

// WithoutSecrets returns the configuration without the passwords in URLs and the values of flags that are secrets. Logs
// and messages that users may give away show this one.
func WithoutSecrets(c Config) Config {
	const left = "(left out)"
	flags := map[string]map[string]string{}
	for component, own := range c.ComponentFlags {
		flags[component] = map[string]string{}
		for name, value := range own {
			if secretFlag.MatchString(name) {
				value = left
			}
			flags[component][name] = value
		}
	}
	c.ComponentFlags = flags
	mirrors := make([]Mirror, 0, len(c.Mirrors))
	for _, m := range c.Mirrors {
		if u, err := url.Parse(m.URL); err != nil {
			m.URL = left
		} else if u.User != nil {
			u.User = url.User(left)
			m.URL = u.String()
		}
		mirrors = append(mirrors, m)
	}
	c.Mirrors = mirrors
	return c
}
