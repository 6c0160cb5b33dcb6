// Package zpages answers /statusz and /flagz of a component: since when it runs and as what, and with which flags.
// People get text, programs get a Statusz or Flagz of config.k8s.io. Who may read them is up to the server that they
// are part of.
package zpages

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Config says what the pages of a component show.
type Config struct {
	// Component is its name on the pages.
	Component string
	// Version is that of the binary and Emulation the one that it behaves as, without a "v": 1.36.3 and 1.36.
	Version, Emulation, GoVersion string
	Started                       time.Time
	Now                           func() time.Time
	// Flags are the values of all flags by name, without secrets: see Flags.
	Flags map[string]string
	// Paths are what else the server answers, for people who look for it.
	Paths []string
}

// The paths of the pages.
const (
	StatuszPath = "/statusz"
	FlagzPath   = "/flagz"
)

// statusz is the answer of /statusz to a program.
type statusz struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	StartTime         metav1.Time `json:"startTime"`
	UptimeSeconds     int64       `json:"uptimeSeconds"`
	GoVersion         string      `json:"goVersion"`
	BinaryVersion     string      `json:"binaryVersion"`
	EmulationVersion  string      `json:"emulationVersion,omitempty"`
	Paths             []string    `json:"paths,omitempty"`
}

// flagz is the answer of /flagz to a program.
type flagz struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Flags             map[string]string `json:"flags,omitempty"`
}

// Listing is c for a server that answers paths besides the pages: of these, people get the topmost to look at.
func (c Config) Listing(paths []string) Config {
	c.Paths = []string{StatuszPath, FlagzPath}
	for _, p := range paths {
		if strings.LastIndex(p, "/") == 0 && len(p) > 1 {
			c.Paths = append(c.Paths, p)
		}
	}
	return c
}

// Handlers are the two pages by path.
func Handlers(c Config) map[string]http.Handler {
	c.Paths = slices.Sorted(slices.Values(c.Paths))
	return map[string]http.Handler{
		StatuszPath: &page{component: c.Component, name: "statusz", kind: "Statusz", text: c.statuszText,
			object: c.statusz},
		FlagzPath: &page{component: c.Component, name: "flagz", kind: "Flagz", text: c.flagzText, object: c.flagz},
	}
}

func (c *Config) statusz(t metav1.TypeMeta, m metav1.ObjectMeta) any {
	return &statusz{
		TypeMeta: t, ObjectMeta: m,
		StartTime: metav1.NewTime(c.Started.UTC()), UptimeSeconds: int64(c.uptime().Seconds()),
		GoVersion: c.GoVersion, BinaryVersion: c.Version, EmulationVersion: c.Emulation, Paths: c.Paths,
	}
}

func (c *Config) flagz(t metav1.TypeMeta, m metav1.ObjectMeta) any { return &flagz{t, m, c.Flags} }

func (c *Config) uptime() time.Duration { return c.Now().Sub(c.Started).Truncate(time.Second) }

func (c *Config) statuszText(b *strings.Builder) {
	up := c.uptime()
	fmt.Fprintf(b, "\nStarted: %s\n", c.Started.UTC().Format(time.UnixDate))
	fmt.Fprintf(b, "Up: %d hr %02d min %02d sec\n", int(up.Hours()), int(up.Minutes())%60, int(up.Seconds())%60)
	fmt.Fprintf(b, "Go version: %s\nBinary version: %s\n", c.GoVersion, c.Version)
	if c.Emulation != "" {
		fmt.Fprintf(b, "Emulation version: %s\n", c.Emulation)
	}
	if len(c.Paths) > 0 {
		fmt.Fprintf(b, "Paths: %s\n", strings.Join(c.Paths, " "))
	}
}

func (c *Config) flagzText(b *strings.Builder) {
	for _, name := range slices.Sorted(maps.Keys(c.Flags)) {
		fmt.Fprintf(b, "%s: %s\n", name, c.Flags[name])
	}
}

// page answers with text, or with an object of kind where the client asks for one. Upstream draws the text's delimiter
// at random, to keep programs from reading it; ours is always a colon.
type page struct {
	component, name, kind string
	text                  func(*strings.Builder)
	object                func(metav1.TypeMeta, metav1.ObjectMeta) any
}

// disclaimer stands above the text.
const disclaimer = "Warning: This endpoint is not meant to be machine parseable, " +
	"has no formatting compatibility guarantees and is for debugging purposes only.\n"

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A page that is kept would show what was true once.
	w.Header().Set("Cache-Control", "no-cache, private")
	form, ok := negotiate(r.Header.Get("Accept"), p.kind)
	switch {
	case !ok:
		notAcceptable(w, r)
	case form.media == mediaText:
		var b strings.Builder
		fmt.Fprintf(&b, "\n%s %s\n%s", p.component, p.name, disclaimer)
		p.text(&b)
		write(w, "text/plain; charset=utf-8", http.StatusOK, []byte(b.String()))
	default:
		if form.version != newest {
			const deprecated = `299 - "This version of the %s endpoint is deprecated. Please use a newer version."`
			w.Header().Set("Warning", fmt.Sprintf(deprecated, p.name))
		}
		obj := p.object(metav1.TypeMeta{APIVersion: group + "/" + form.version, Kind: p.kind},
			metav1.ObjectMeta{Name: p.component})
		contentType := fmt.Sprintf("%s;g=%s;v=%s;as=%s", form.media, group, form.version, p.kind)
		encode(w, r, form.media, contentType, http.StatusOK, obj)
	}
}

func notAcceptable(w http.ResponseWriter, r *http.Request) {
	encode(w, r, mediaJSON, mediaJSON, http.StatusNotAcceptable, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: fmt.Sprintf("only the following media types are accepted: %s, %s, %s", mediaJSON, mediaYAML,
			mediaText),
	})
}

// encode writes obj as media, indented for people: those who ask for it, and users of curl and browsers.
func encode(w http.ResponseWriter, r *http.Request, media, contentType string, code int, obj any) {
	b, err := json.Marshal(obj)
	switch {
	case err != nil:
	case media == mediaYAML:
		b, err = yaml.JSONToYAML(b)
	case pretty(r):
		b, err = json.MarshalIndent(obj, "", "  ")
	default:
		b = append(b, '\n')
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, contentType, code, b)
}

func pretty(r *http.Request) bool {
	if asked := r.URL.Query().Get("pretty"); asked != "" {
		return asked == "true" || asked == "1"
	}
	agent := r.UserAgent()
	return slices.ContainsFunc([]string{"curl", "Wget", "Mozilla/5.0"}, func(p string) bool {
		return strings.HasPrefix(agent, p)
	})
}

func write(w http.ResponseWriter, contentType string, code int, b []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(code)
	_, _ = w.Write(b) // a failed write means that the client is gone
}
