package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/referencetest"
)

// TestFields: each field of the configuration file is read somewhere, or is in the table of fields without effect; and
// the log names one of these that a file sets to something else than its default.
func TestFields(t *testing.T) {
	t.Parallel()
	read := readFields(t)
	var told []string
	for _, f := range idleFields(&kubeletconfig.KubeletConfiguration{}) {
		told = append(told, f.name)
	}
	checked := 0
	var walk func(in reflect.Type)
	walk = func(in reflect.Type) {
		for i := range in.NumField() {
			f := in.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			checked++
			switch excused := in == reflect.TypeFor[kubeletconfig.KubeletConfiguration]() &&
				slices.Contains(told, name); {
			case f.Name == "TypeMeta":
			case read[f.Name] && excused:
				t.Errorf("%s is in the table of fields without effect, but it is read", name)
			case !read[f.Name] && !excused:
				t.Errorf("%s is read by nobody, and the table of fields without effect does not have it", name)
			case excused:
				c := &kubeletconfig.KubeletConfiguration{}
				odd(name, reflect.ValueOf(c).Elem().Field(i))
				if got := idle(c); !slices.Equal(got, []string{name}) {
					t.Errorf("%s is set and without effect, and these are named: %q", name, got)
				}
			}
			if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == in.PkgPath() {
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[kubeletconfig.KubeletConfiguration]())
	if checked < 100 {
		t.Errorf("only %d fields were looked at", checked)
	}
	if got := idle(&kubeletconfig.KubeletConfiguration{}); got != nil {
		t.Errorf("an empty file sets %q", got)
	}
}

// oddSwitches are off by default; all other switches are on.
var oddSwitches = map[string]bool{"enableSystemLogQuery": true}

// odd sets a field to what is nobody's default.
func odd(name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer: // the defaults of most are not zero
		v.Set(reflect.New(v.Type().Elem()))
		if v.Type() == reflect.TypeFor[*bool]() {
			v.Elem().SetBool(oddSwitches[name])
		}
	case reflect.Struct:
		odd(name, v.Field(0))
	case reflect.String:
		v.SetString("odd")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]bool{"Odd": true}))
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	}
}

// readFields are the names of fields that the component's sources select, except those that only idleFields looks at.
func readFields(t *testing.T) map[string]bool {
	names := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if fn, ok := n.(*ast.FuncDecl); ok && fn.Name.Name == "idleFields" {
				return false
			}
			if s, ok := n.(*ast.SelectorExpr); ok {
				names[s.Sel.Name] = true
			}
			return true
		})
	}
	return names
}

// TestSpokenTLS: the file's fields reach the server's configuration, and bad ones are named.
func TestSpokenTLS(t *testing.T) {
	t.Parallel()
	c := &kubeletconfig.KubeletConfiguration{TLSMinVersion: "VersionTLS13",
		TLSCipherSuites: []string{"TLS_RSA_WITH_AES_256_GCM_SHA384"}, TLSCurvePreferences: []int32{29}}
	config, err := spokenTLS(c)
	if err != nil || config.MinVersion != 0x0304 || len(config.CipherSuites) != 1 ||
		len(config.CurvePreferences) != 1 || config.CurvePreferences[0] != 29 || config.Certificates != nil {
		t.Errorf("%+v, %v", config, err)
	}
}

// TestFileLogging: the file's settings of the log hold where no flag is given, and are checked with those that are.
func TestFileLogging(t *testing.T) {
	t.Parallel()
	s, err := parse(t, "logging: {verbosity: 3, format: json, flushFrequency: 7s}\n")
	if err != nil {
		t.Fatal(err)
	}
	c := &s.log.Config
	if c.Verbosity != 3 || c.Format != "json" || c.FlushFrequency.Duration.Duration != 7*time.Second {
		t.Errorf("%+v", c)
	}
	s, err = parse(t, "logging: {verbosity: 3, vmodule: [{filePattern: a, verbosity: 7}]}\n", "--v=1")
	if err != nil {
		t.Fatal(err)
	}
	if c := &s.log.Config; c.Verbosity != 1 || len(c.VModule) != 1 {
		t.Errorf("%+v", c)
	}
	for file, want := range map[string]string{
		"logging: {format: xml}\n": `logging.format: Invalid value: "xml": Unsupported log format`,
		"logging: {format: json, vmodule: [{filePattern: a, verbosity: 7}]}\n":                             "logging.vmodule: Forbidden: Only supported for text log format",
		"logging: {flushFrequency: -1s}\n":                                                                 `logging.flushFrequency: Invalid value: "-1s": Must be greater than zero`,
		"logging: {options: {json: {splitStream: true}}}\n":                                                "logging.options.json.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled",
		"logging: {options: {json: {splitStream: true}}}\nfeatureGates: {AllAlpha: true, AllBeta: true}\n": "",
		"logging: {options: {text: {splitStream: true}}}\nfeatureGates: {LoggingAlphaOptions: true}\n":     "",
	} {
		switch _, err := parse(t, file); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", file, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}

// TestNodeImageFiles: what cloud images and kubeadm write starts a kubelet; what has no effect is named.
func TestNodeImageFiles(t *testing.T) {
	t.Parallel()
	s, err := parse(t, `syncFrequency: 0s
streamingConnectionIdleTimeout: 0s
volumeStatsAggPeriod: 0s
httpCheckFrequency: 0s
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
seccompDefault: true
podsPerCore: 1
protectKernelDefaults: true
hairpinMode: hairpin-veth
readOnlyPort: 0
tlsMinVersion: VersionTLS12
tlsCipherSuites: [TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305, TLS_RSA_WITH_AES_256_GCM_SHA384]
enableDebuggingHandlers: false
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.idle) > 0 || !s.file.ProtectKernelDefaults || !*s.file.SeccompDefault ||
		maxPods(s.file) > 110 || *s.file.EnableDebuggingHandlers {
		t.Errorf("%q, %+v", s.idle, s.file)
	}
	s, err = parse(t, "", "--seccomp-default", "--tls-min-version=VersionTLS13",
		"--tls-cipher-suites=TLS_AES_128_GCM_SHA256", "--enable-debugging-handlers=false", "--pods-per-core=2",
		"--node-status-max-images=7")
	if c := s.file; err != nil || !*c.SeccompDefault || c.TLSMinVersion != "VersionTLS13" ||
		len(c.TLSCipherSuites) != 1 || *c.EnableDebuggingHandlers || c.PodsPerCore != 2 || *c.NodeStatusMaxImages != 7 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestReferenceConfiguration: docs/reference has the fields of the configuration file as they are.
func TestReferenceConfiguration(t *testing.T) {
	t.Parallel()
	s, err := parse(t, "")
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]string{}
	for _, f := range idleFields(s.file) {
		effects[f.name] = "none: " + f.why
	}
	for _, f := range limitedFields(exampleOfLimits()) {
		effects[f.name] = "limited: " + f.why
	}
	referencetest.Configuration(t, "kubelet", "KubeletConfiguration of kubelet.config.k8s.io/v1beta1", "./cmd/kubelet",
		"The log names a field without effect (`none`) that is set to something else than its default.",
		referencetest.Fields(s.file, "json"), effects)
}
