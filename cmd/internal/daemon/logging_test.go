package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/featuregates"
)

// output is what a log has written, which may go on.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	full  bool // the disk takes space bytes more
	space int
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.full && o.space < len(p) {
		n, _ := o.text.Write(p[:o.space])
		o.space = 0
		return n, syscall.ENOSPC
	}
	o.space -= len(p)
	return o.text.Write(p)
}

// fill leaves so many bytes on the disk; below 0 it is not full any more.
func (o *output) fill(space int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.full, o.space = space >= 0, max(0, space)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Reset()
}

// logged opens a log by flags and returns it with its streams. All alpha options are allowed.
func logged(t testing.TB, flags ...string) (log *slog.Logger, stdout, stderr *output, flush func()) {
	t.Helper()
	var l Logging
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	l.AddFlags(fs)
	gates, err := featuregates.With(map[string]bool{"LoggingAlphaOptions": true})
	if err = errors.Join(err, fs.Parse(flags)); err == nil {
		err = l.Validate(gates, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr = &output{}, &output{}
	cmd := &cobra.Command{}
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	log, flush = l.Open(cmd, "c")
	return log, stdout, stderr, flush
}

// TestVerbosity: a record of level Info-n shows from verbosity n on, whatever the verbosity records of level Info do.
func TestVerbosity(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]struct{ info, step, debug bool }{
		"0": {info: true}, "1": {info: true}, "2": {info: true, step: true}, "3": {info: true, step: true},
		"4": {true, true, true}, "10": {true, true, true}, "2147483647": {true, true, true},
	} {
		for _, format := range []string{"text", "json"} {
			log, _, out, _ := logged(t, "--v="+v, "--logging-format="+format)
			for level, want := range map[slog.Level]bool{slog.LevelInfo: want.info, slog.LevelInfo - 2: want.step,
				slog.LevelDebug: want.debug, slog.LevelError: true} {
				out.Reset()
				log.Log(t.Context(), level, "m")
				if got := log.Enabled(t.Context(), level); got != want || (out.String() != "") != want {
					t.Errorf("-v=%s: level %v shows: %t, %q", v, level, got, out)
				}
			}
		}
	}
}

// TestVModule: a pattern names files whose records show from another verbosity on; the first that matches counts.
// Records of libraries, which come through logr, have their files too.
func TestVModule(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"":                              "1",
		"logging_test=4":                "1 2 4",
		"logging_test=2":                "1 2",
		"log*=2,logging_test=4":         "1 2",
		"other=9":                       "1",
		"other=9,l?gging_tes[t]=4,":     "1 2 4",
		"logging=9":                     "1", // all of the name, not its beginning
		"daemon=9,logging_test.go=9":    "1", // neither a directory nor the file's ending
		"logging_test[=9":               "1", // malformed
		"logging_test=0,logging_test=9": "1",
	} {
		log, _, out, _ := logged(t, "--vmodule="+flag)
		log = log.WithGroup("g").With("a", 1)
		log.Info("1")
		log.Log(t.Context(), slog.LevelInfo-2, "2")
		log.Debug("4")
		if got := strings.Join(messages(out), " "); got != want {
			t.Errorf("--vmodule=%s: %s, not %s", flag, got, want)
		}
		out.Reset()
		library := logr.FromSlogHandler(log.Handler())
		library.Info("1")
		library.V(2).Info("2")
		library.V(4).Info("4")
		if got := strings.Join(messages(out), " "); got != want {
			t.Errorf("--vmodule=%s, logr: %s, not %s", flag, got, want)
		}
	}
	// --vmodule shows more, never less.
	log, _, out, _ := logged(t, "--v=4", "--vmodule=logging_test=0")
	log.Debug("4")
	if out.String() == "" {
		t.Error("--vmodule hides what -v shows")
	}
}

func messages(out *output) (found []string) {
	for _, m := range regexp.MustCompile(`(?m)^[^\]]*\] "([^"]*)"`).FindAllStringSubmatch(out.String(), -1) {
		found = append(found, m[1])
	}
	return found
}

// TestBodies: what client-go logs of requests does not contain their bodies, which have Secrets and tokens.
func TestBodies(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		log, _, out, _ := logged(t, "-v10", "--logging-format="+format)
		client := logr.FromSlogHandler(log.Handler())
		client.V(8).Info("Response Body", "body", "a token")
		client.V(9).Info("Request Body", "body", `{"token":"a token"}`)
		if strings.Contains(out.String(), "a token") || !strings.Contains(out.String(), "(7 bytes)") {
			t.Error(out)
		}
	}
}

// TestSplitStreams: with split streams info goes to stdout, buffered if it is asked for, and what is worse to stderr;
// in JSON, errors alone, as upstream has it.
func TestSplitStreams(t *testing.T) {
	t.Parallel()
	say := func(log *slog.Logger) {
		log.Info("i")
		log.Warn("w")
		log.Error("e")
		log.Debug("d")
	}
	for name, c := range map[string]struct{ flags, stdout, stderr string }{
		"text":       {"", "", "iwed"},
		"text split": {"--log-text-split-stream", "id", "we"},
		"json":       {"--logging-format=json", "", "iwed"},
		"json split": {"--logging-format=json --log-json-split-stream", "iwd", "e"},
		"the other":  {"--log-json-split-stream --log-json-info-buffer-size=1Ki", "", "iwed"},
		"no split":   {"--log-text-info-buffer-size=1Ki", "", "iwed"},
	} {
		log, stdout, stderr, _ := logged(t, append(strings.Fields(c.flags), "-v4")...)
		say(log)
		letters := func(b *output) (out string) {
			for _, m := range regexp.MustCompile(`(?:\] |"msg":)"(\w)"`).FindAllStringSubmatch(b.String(), -1) {
				out += m[1]
			}
			return out
		}
		if letters(stdout) != c.stdout || letters(stderr) != c.stderr {
			t.Errorf("%s: stdout %q, stderr %q", name, stdout, stderr)
		}
	}
}

// TestBuffer: a buffer keeps lines until it is full, until the time to flush, or until the end.
func TestBuffer(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		synctest.Test(t, func(t *testing.T) {
			log, stdout, stderr, flush := logged(t, "--logging-format="+format, "--log-"+format+"-split-stream",
				"--log-"+format+"-info-buffer-size=1Ki", "--log-flush-frequency=10s")
			log.Info("one")
			log.Error("two")
			if stdout.String() != "" || !strings.Contains(stderr.String(), "two") {
				t.Errorf("%s, at once: %q, %q", format, stdout, stderr)
			}
			time.Sleep(11 * time.Second)
			synctest.Wait()
			if !strings.Contains(stdout.String(), "one") {
				t.Errorf("%s, after the time to flush: %q", format, stdout)
			}
			log.Info("three")
			flush()
			if !strings.Contains(stdout.String(), "three") {
				t.Errorf("%s, at the end: %q", format, stdout)
			}
		})
	}
}

// TestFullDisk: a log goes on by itself when a full disk has space again, whatever its format, streams and buffers. No
// half line runs into another, and a line says how many are lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", "--log-text-split-stream",
		"--log-text-split-stream --log-text-info-buffer-size=1Ki", "--logging-format=json",
		"--logging-format=json --log-json-split-stream",
		"--logging-format=json --log-json-split-stream --log-json-info-buffer-size=1Ki"} {
		for _, space := range []int{0, 30} {
			log, stdout, stderr, flush := logged(t, strings.Fields(flags)...)
			all := func(do func(o *output)) { do(stdout); do(stderr) }
			all(func(o *output) { o.fill(space) })
			for range 20 {
				log.Info("lost", "padding", strings.Repeat("x", 100))
				log.Error("lost too")
			}
			all(func(o *output) { o.fill(-1) })
			for range 20 { // beyond what a buffer had before
				log.Info("back", "padding", strings.Repeat("x", 100))
				log.Error("back too")
			}
			flush()
			both := stdout.String() + stderr.String()
			whole := regexp.MustCompile(`(?m)^(?:[IWE]\d{4} .*"|\{"ts":.*\})$`)
			if n := strings.Count(both, "back"); n != 40 || !strings.Contains(both, "log lines are lost") {
				t.Errorf("%q, space %d: %d lines of 40 afterwards:\n%s", flags, space, n, both)
			}
			for line := range strings.Lines(both) {
				if strings.Contains(line, "back") && !whole.MatchString(strings.TrimSuffix(line, "\n")) ||
					strings.Count(line, "logging_test.go") > 1 {
					t.Errorf("%q, space %d: no line of its own: %q", flags, space, line)
				}
			}
		}
	}
}

// TestLines: lines have the shape of those that Kubernetes' own component writes (testdata/logging).
func TestLines(t *testing.T) {
	t.Parallel()
	log, _, out, _ := logged(t)
	say := func(log *slog.Logger) {
		log.Info("of info", "size", 3, "took", time.Second, "text", "a b", "list", []string{"x"})
		log.Warn("of a warning")
		log.Error("of an error", "err", errors.New("bad"))
	}
	say(log)
	header := regexp.MustCompile(`^([IWE])\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [\w./-]+\.(?:go|s):\d+\] `)
	var severities string
	for line := range strings.Lines(out.String()) {
		m := header.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%q is no line of klog", line)
		}
		severities += m[1]
	}
	if !strings.Contains(out.String(),
		`] "of info" component="c" size=3 took="1s" text="a b" list=["x"]`+"\n") || severities != "IWE" {
		t.Errorf("%s: %s", severities, out)
	}
	for line := range strings.Lines(recorded(t, "lines.txt")) {
		if !header.MatchString(line) {
			t.Errorf("Kubernetes' own writes a line that is not expected: %q", line)
		}
	}
	theirs := map[bool][]string{} // the keys of lines of info and of errors
	for line := range strings.Lines(recorded(t, "lines.json")) {
		keys := keysOf(t, line, "err", "errCauses")
		theirs[slices.Contains(keys, "v")] = keys
	}
	log, _, out, _ = logged(t, "--logging-format=json")
	say(log)
	for line := range strings.Lines(out.String()) {
		keys := keysOf(t, line, "component", "size", "took", "text", "list", "err")
		if want := theirs[!strings.Contains(line, "of an error")]; !slices.Equal(keys, want) {
			t.Errorf("%s has the keys %q, not %q", line, keys, want)
		}
	}
	want := regexp.MustCompile(`^{"ts":\d{13}(?:\.\d+)?,"caller":"daemon/logging_test.go:\d+","msg":"of info",` +
		`"component":"c","v":0,"size":3,"took":"1s","text":"a b","list":\["x"\]}\n`)
	if !want.MatchString(out.String()) {
		t.Error(out)
	}
}

func recorded(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/logging/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// keysOf are the sorted keys of a JSON object except some.
func keysOf(t *testing.T, line string, except ...string) []string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(line), &object); err != nil {
		t.Fatal(line, err)
	}
	for _, key := range except {
		delete(object, key)
	}
	return slices.Sorted(maps.Keys(object))
}

// TestLoggingFlags: flags and their combinations are refused in the words in which Kubernetes' own component refuses
// them (testdata/logging/refused.txt).
func TestLoggingFlags(t *testing.T) {
	t.Parallel()
	for entry := range strings.SplitSeq(strings.TrimSpace(recorded(t, "refused.txt")), "\n\n") {
		flags, want, _ := strings.Cut(entry, "\n")
		if got := refusal(t, flags); got != want {
			t.Errorf("%s:\n got %s\nwant %s", flags, got, want)
		}
	}
	for _, size := range []string{"1Ei", "1025Mi"} {
		flags := "--feature-gates=LoggingAlphaOptions=true --log-text-info-buffer-size=" + size
		want := `options.text.infoBufferSize: Invalid value: "` + size + `": must not be more than 1Gi`
		if got := refusal(t, flags); got != want {
			t.Error(got)
		}
	}
}

// refusal is why flags are refused, or "accepted".
func refusal(t *testing.T, flags string) string {
	t.Helper()
	var l Logging
	var gates featuregates.Flag
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	l.AddFlags(fs)
	gates.AddFlag(fs)
	err := fs.Parse(strings.Fields(flags))
	if err == nil {
		err = gates.Validate()
	}
	if err == nil {
		err = l.Validate(gates.Gates(), nil)
	}
	if err == nil {
		return "accepted"
	}
	return err.Error()
}

// TestLoggingOver: a given flag wins over the file's field, and a field over the default.
func TestLoggingOver(t *testing.T) {
	t.Parallel()
	var flags, file Logging
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddFlags(fs)
	if err := fs.Parse([]string{"--v=1", "--log-json-split-stream"}); err != nil {
		t.Fatal(err)
	}
	file.Config.Verbosity, file.Config.Format = 3, "json"
	file.Config.Options.JSON.InfoBufferSize.Quantity = resource.MustParse("512")
	got := flags.Over(file.Config, fs.Changed).Config
	if got.Verbosity != 1 || got.Format != "json" || !got.Options.JSON.SplitStream ||
		got.Options.JSON.InfoBufferSize.Value() != 512 || got.FlushFrequency.Duration.Duration != 5*time.Second {
		t.Errorf("%+v", got)
	}
	if file.Config.Options.JSON.SplitStream {
		t.Error("the file's section changed")
	}
	bad := Logging{got}
	if err := bad.Validate(nil, field.NewPath("logging")); err == nil ||
		!strings.Contains(err.Error(), "logging.options.json.splitStream: Forbidden") {
		t.Error(err)
	}
}

// BenchmarkLog measures a record that shows, one that does not, and one that does not while another file's would.
func BenchmarkLog(b *testing.B) {
	for _, format := range []string{"text", "json"} {
		log, _, out, _ := logged(b, "--logging-format="+format)
		b.Run(format, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				log.LogAttrs(b.Context(), slog.LevelInfo, "step",
					slog.String("trace", "f3a1c2d40b5e4c6f8a7b9c0d1e2f3a4b"), slog.String("object", "ns/p"),
					slog.Duration("duration", time.Second), slog.Time("start", time.Time{}))
				out.Reset()
			}
		})
	}
	for name, flags := range map[string][]string{"off": nil, "off/vmodule": {"--vmodule=other=9"}} {
		log, _, _, _ := logged(b, flags...)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				log.Debug("x", "a", 1)
			}
		})
	}
}
