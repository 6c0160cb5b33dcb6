package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpguts"
	"k8s.io/component-base/cli/flag"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// staticOptions are the flags of static pods that come from a URL.
type staticOptions struct {
	url    string
	header map[string][]string
	check  time.Duration
}

// headerFlag is the flag whose values may be secrets.
const headerFlag = "manifest-url-header"

func (o *staticOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.url, "manifest-url", "", "URL of the manifest of a static pod, or of a list of them (http or https).")
	fs.Var(flag.NewColonSeparatedMultimapStringString(&o.header), headerFlag,
		"Comma-separated list of headers, name:value, that the kubelet sends to the URL of --manifest-url; may be given several times, and a name too.")
	fs.DurationVar(&o.check, "http-check-frequency", 20*time.Second, "How often the URL of static pods is checked.")
}

func (o *staticOptions) merge(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	if fs.Changed("manifest-url") {
		c.StaticPodURL = o.url
	}
	if fs.Changed(headerFlag) {
		c.StaticPodURLHeader = o.header
	}
	if fs.Changed("http-check-frequency") || c.HTTPCheckFrequency.Duration == 0 {
		c.HTTPCheckFrequency.Duration = o.check
	}
}

// staticURL returns the URL of static pods and its headers; nil: there is none. Errors show no secrets: neither values
// of headers nor a URL that could have a password.
func staticURL(c *kubeletconfig.KubeletConfiguration) (*url.URL, http.Header, error) {
	if c.StaticPodURL == "" {
		return nil, nil, nil
	}
	u, err := url.Parse(c.StaticPodURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, nil, errors.New("invalid configuration: staticPodURL (--manifest-url) is no URL of http or https")
	}
	header := http.Header{}
	for name, values := range c.StaticPodURLHeader {
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, nil, fmt.Errorf(
				"invalid configuration: staticPodURLHeader (--manifest-url-header): %q is no name of a header", name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return nil, nil, fmt.Errorf("invalid configuration: staticPodURLHeader (--manifest-url-header): "+
					"the value of %q cannot be sent", name)
			}
			header.Add(name, v)
		}
	}
	return u, header, nil
}

// masked stands for a value that is not shown.
const masked = "<masked>"

// shown returns the configuration without the secrets of the URL of static pods, for /configz and the log.
func shown(c *kubeletconfig.KubeletConfiguration) *kubeletconfig.KubeletConfiguration {
	out := c.DeepCopy()
	for name := range out.StaticPodURLHeader {
		out.StaticPodURLHeader[name] = []string{masked}
	}
	if u, _, err := staticURL(c); err == nil && u != nil {
		out.StaticPodURL = u.Redacted()
	}
	return out
}

// logEffective writes what is in force to the log, when the kubelet starts: the files, the flags and the defaults.
func logEffective(c *kubeletconfig.KubeletConfiguration, log *slog.Logger) {
	text, err := yaml.Marshal(shown(c))
	if err != nil {
		log.Error("cannot show the effective configuration", "err", err)
		return
	}
	log.Info("Effective KubeletConfiguration", "config", string(text))
}

// maskFlags hides the same in what /flagz shows.
func maskFlags(c *kubeletconfig.KubeletConfiguration, flags map[string]string) {
	if flags[headerFlag] != "" {
		flags[headerFlag] = masked
	}
	if flags["manifest-url"] != "" {
		flags["manifest-url"] = shown(c).StaticPodURL
	}
}
