// Package write is what the verbs that change objects share: --dry-run, --validate, the field manager, how results are
// shown, and the annotation in which apply keeps the configuration it applied last.
package write

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

// DryRun says how far a command goes.
type DryRun int

const (
	// DryRunNone does what was asked.
	DryRunNone DryRun = iota
	// DryRunClient only shows what would be sent.
	DryRunClient
	// DryRunServer sends it, and the server stores nothing.
	DryRunServer
)

// ParseDryRun reads the value of --dry-run; warning is what to tell the user about old values.
func ParseDryRun(value string) (dry DryRun, warning string, err error) {
	switch value {
	case "none", "":
		return DryRunNone, "", nil
	case "client":
		return DryRunClient, "", nil
	case "server":
		return DryRunServer, "", nil
	case noValue:
		return DryRunClient, "--dry-run is deprecated and can be replaced with --dry-run=client.", nil
	}
	on, err := strconv.ParseBool(value)
	switch {
	case err != nil:
		return DryRunNone, "", fmt.Errorf(`Invalid dry-run value (%s). Must be "none", "server", or "client".`, value)
	case on:
		return DryRunClient, "--dry-run=true is deprecated (boolean value) and can be replaced with --dry-run=client.",
			nil
	}
	return DryRunNone, "--dry-run=false is deprecated (boolean value) and can be replaced with --dry-run=none.", nil
}

// noValue is what pflag stores for --dry-run without a value.
const noValue = "unchanged"

// ParseValidation reads the value of --validate and returns the fieldValidation of requests.
func ParseValidation(value string) (string, error) {
	switch value {
	case "":
		return "", nil
	case "true", "strict":
		return metav1.FieldValidationStrict, nil
	case "warn":
		return metav1.FieldValidationWarn, nil
	case "false", "ignore":
		return metav1.FieldValidationIgnore, nil
	}
	return "", fmt.Errorf("invalid - validate option %q; must be one of: strict (or true), warn, ignore (or false)",
		value)
}

// Flags are -o and its like, --dry-run and, where a verb adds them, --field-manager, --validate and --save-config.
type Flags struct {
	Recorder

	Print *printers.Flags
	// Manager is the name under which the server records the fields this command sets.
	Manager    string
	SaveConfig bool

	// DryRun and Validation (the fieldValidation of requests, "" to leave it to the server) are set by Complete.
	DryRun     DryRun
	Validation string

	dryRun, validate string
}

// NewFlags returns the flags of a verb that writes as manager.
func NewFlags(manager string) *Flags {
	return &Flags{Print: printers.NewFlags(), Manager: manager, dryRun: "none"}
}

// AddFlags adds -o and the flags that go with it, and --dry-run.
func (f *Flags) AddFlags(set *pflag.FlagSet) {
	f.Print.AddFlags(set)
	f.AddDryRun(set)
}

// AddDryRun adds --dry-run alone.
func (f *Flags) AddDryRun(set *pflag.FlagSet) {
	set.StringVar(&f.dryRun, "dry-run", "none",
		`Must be "none", "server", or "client". If client strategy, only print the object that would be sent, without sending it. If server strategy, submit server-side request without persisting the resource.`)
	set.Lookup("dry-run").NoOptDefVal = noValue
}

// AddManager adds --field-manager.
func (f *Flags) AddManager(set *pflag.FlagSet) {
	set.StringVar(&f.Manager, "field-manager", f.Manager, "Name of the manager used to track field ownership.")
}

// AddValidate adds --validate, which is strict by default.
func (f *Flags) AddValidate(set *pflag.FlagSet) {
	set.StringVar(&f.validate, "validate", "strict",
		`Must be one of: strict (or true), warn, ignore (or false). "true" or "strict" will use a schema to validate the input and fail the request if invalid. "warn" will warn about unknown or duplicate fields without blocking the request. "false" or "ignore" will not perform any schema validation, silently dropping any unknown or duplicate fields.`)
	set.Lookup("validate").NoOptDefVal = "strict"
}

// AddSaveConfig adds --save-config.
func (f *Flags) AddSaveConfig(set *pflag.FlagSet) {
	set.BoolVar(&f.SaveConfig, "save-config", false,
		"If true, the configuration of current object will be saved in its annotation. Otherwise, the annotation will be unchanged. This flag is useful when you want to perform kubectl apply on this object in the future.")
}

// Complete reads what the flags say; warnings go to w.
func (f *Flags) Complete(w io.Writer) (err error) {
	var warning string
	if f.DryRun, warning, err = ParseDryRun(f.dryRun); err != nil {
		return err
	}
	if warning != "" {
		fmt.Fprintln(w, "Warning: "+warning)
	}
	f.Validation, err = ParseValidation(f.validate)
	return err
}

// Checks reports whether objects of files are to be checked before they are sent.
func (f *Flags) Checks() bool {
	return f.Validation == metav1.FieldValidationStrict || f.Validation == metav1.FieldValidationWarn
}

// Printer returns the printer of results: "pod/x created", "… created (dry run)", or what -o asks for.
func (f *Flags) Printer(operation string) (printers.Printer, error) {
	return f.Print.Printer(operation + f.Suffix())
}

// Suffix is what a result adds for --dry-run: " (dry run)", " (server dry run)" or nothing.
func (f *Flags) Suffix() string {
	switch f.DryRun {
	case DryRunClient:
		return " (dry run)"
	case DryRunServer:
		return " (server dry run)"
	}
	return ""
}

// ShowsObjects reports whether -o asks for more than a name.
func (f *Flags) ShowsObjects() bool {
	return f.Print.Output != "" && f.Print.Output != "name" || f.Print.Template != ""
}

func (f *Flags) dry() []string { return resource.DryRun(f.DryRun == DryRunServer) }

// CreateOptions are the options of a POST.
func (f *Flags) CreateOptions() metav1.CreateOptions {
	return metav1.CreateOptions{DryRun: f.dry(), FieldManager: f.Manager, FieldValidation: f.Validation}
}

// UpdateOptions are the options of a PUT.
func (f *Flags) UpdateOptions() metav1.UpdateOptions {
	return metav1.UpdateOptions{DryRun: f.dry(), FieldManager: f.Manager, FieldValidation: f.Validation}
}

// PatchOptions are the options of a PATCH.
func (f *Flags) PatchOptions() metav1.PatchOptions {
	return metav1.PatchOptions{DryRun: f.dry(), FieldManager: f.Manager, FieldValidation: f.Validation}
}
