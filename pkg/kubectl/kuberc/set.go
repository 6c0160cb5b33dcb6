package kuberc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
)

// setOptions is one run of "kubectl kuberc set".
type setOptions struct {
	cli.IOStreams
	section, command, name, policy        string
	options, prepended, appended, allowed []string
	overwrite                             bool
	location                              Location
}

func newSet(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &setOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:     "set --section (defaults|aliases) --command COMMAND",
		Short:   "Set values in the kuberc configuration",
		Long:    "Set a command's defaults, an alias, or the policy for credential plug-ins.\n\n A command is named without resources (\"get\", \"set env\"); those of an alias are arguments of --prependarg and --appendarg.",
		Example: examples,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	set.StringVar(&o.section, "section", "", "Section to modify: 'defaults', 'aliases', or 'credentialplugin'")
	_ = cmd.MarkFlagRequired("section") // the flag was added above
	set.StringVar(&o.command, "command", "", "Command to configure (e.g., 'get', 'create', 'set env')")
	set.StringVar(&o.name, "name", "", "Alias name (required for --section=aliases)")
	set.StringArrayVar(&o.options, "option", []string{},
		"Flag option in the form flag=value (can be specified multiple times)")
	set.StringArrayVar(&o.prepended, "prependarg", []string{},
		"Argument to prepend to the command (can be specified multiple times, for aliases only)")
	set.StringArrayVar(&o.appended, "appendarg", []string{},
		"Argument to append to the command (can be specified multiple times, for aliases only)")
	set.StringVar(&o.policy, "policy", "",
		"Plugin policy to use for exec credential plugins, must be one of 'AllowAll', 'DenyAll' or 'Allowlist'")
	set.StringArrayVar(&o.allowed, "allowlist-entry", []string{},
		"Allowlist entry the form field=value (can be specified multiple times)")
	set.BoolVar(&o.overwrite, "overwrite", false, "Allow overwriting existing entries")
	return cmd
}

// Complete finds the file.
func (o *setOptions) Complete(f *cli.Factory, _ *cobra.Command, _ []string) (err error) {
	o.location, err = locate(f)
	return err
}

// Validate judges the flags together.
func (o *setOptions) Validate() error {
	switch {
	case !slices.Contains([]string{"defaults", "aliases", "credentialplugin"}, o.section):
		return fmt.Errorf(`--section must be "defaults", "aliases", or "credentialplugin", got: %s`, o.section)
	case o.section == "credentialplugin":
		return o.validatePolicy()
	case o.command == "":
		return errors.New("--command is required when --section=aliases or --section=defaults")
	case o.section == "aliases" && o.name == "":
		return errors.New("--name is required when --section=aliases")
	case o.section == "aliases":
		return nil
	case o.name != "":
		return errors.New("--name should not be specified when --section=defaults")
	case len(o.prepended)+len(o.appended) > 0:
		return errors.New("--prependarg and --appendarg are only valid for --section=aliases")
	}
	return nil
}

func (o *setOptions) validatePolicy() error {
	switch {
	case o.policy == "":
		return errors.New("--policy is required when --section=credentialplugin")
	case !slices.Contains([]string{"AllowAll", "DenyAll", "Allowlist"}, o.policy):
		return fmt.Errorf(` --policy must be  "AllowAll", "DenyAll", or "Allowlist", got: %s`, o.policy)
	case o.policy == "Allowlist" && len(o.allowed) == 0:
		return errors.New("--allowlist-entry is required when --section=credentialplugin and --policy=Allowlist")
	case o.policy != "Allowlist" && len(o.allowed) > 0:
		return errors.New("--allowlist-entry may only be used when --section=credentialplugin and --policy=Allowlist")
	}
	return nil
}

// Run changes the file; nothing is written that kubectl could not start with.
func (o *setOptions) Run(context.Context) error {
	p, err := Load(o.location, io.Discard) // of what is unknown, kubectl has warned when it started
	if err != nil {
		return Wrong(err)
	}
	if p == nil {
		p = empty()
	}
	p.place = place{} // what follows is not in the file
	switch o.section {
	case "defaults":
		err = o.setDefaults(p)
	case "aliases":
		err = o.setAlias(p)
	default:
		err = o.setPolicy(p)
	}
	if err != nil {
		return err
	}
	if err := p.validate(); err != nil {
		return err
	}
	if err := p.save(o.location.Path); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Updated %s\n", o.location.Path)
	return nil
}

func (o *setOptions) setDefaults(p *Preference) error {
	options, err := pairs(o.options)
	if err != nil {
		return err
	}
	d := Defaults{Command: o.command, Options: options}
	at := slices.IndexFunc(p.Defaults, func(d Defaults) bool { return d.Command == o.command })
	switch {
	case at < 0:
		p.Defaults = append(p.Defaults, d)
	case !o.overwrite:
		return fmt.Errorf("defaults for command %q already exist, use --overwrite to replace", o.command)
	default:
		p.Defaults[at] = d
	}
	return nil
}

func (o *setOptions) setAlias(p *Preference) error {
	options, err := pairs(o.options)
	if err != nil {
		return err
	}
	a := Alias{Name: o.name, Command: o.command, Prepended: o.prepended, Appended: o.appended, Options: options}
	at := slices.IndexFunc(p.Aliases, func(a Alias) bool { return a.Name == o.name })
	switch {
	case at < 0:
		p.Aliases = append(p.Aliases, a)
	case !o.overwrite:
		return fmt.Errorf("alias %q already exists, use --overwrite to replace", o.name)
	default:
		p.Aliases[at].merge(a)
	}
	return nil
}

// merge takes what other says and keeps the rest.
func (a *Alias) merge(other Alias) {
	a.Command = other.Command
	if len(other.Prepended) > 0 {
		a.Prepended = other.Prepended
	}
	if len(other.Appended) > 0 {
		a.Appended = other.Appended
	}
	if len(other.Options) > 0 {
		a.Options = other.Options
	}
}

func (o *setOptions) setPolicy(p *Preference) error {
	p.Policy, p.Allowed = o.policy, nil
	for _, text := range o.allowed {
		field, value, ok := strings.Cut(text, "=")
		switch {
		case !ok:
			return fmt.Errorf("improperly formatted allowlist entry: %q", text)
		case field == "name":
			return errors.New(`allowlist entry field "name" is deprecated, use "command" instead`)
		case field != "command":
			return fmt.Errorf("unrecognized allowlist entry field: %q", field)
		}
		p.Allowed = append(p.Allowed, Entry{Command: value})
	}
	return nil
}

// pairs reads the values of --option, in which a flag may have its dashes.
func pairs(texts []string) ([]Option, error) {
	var out []Option
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("invalid option format %q, expected flag=value", text)
		}
		out = append(out, Option{strings.TrimLeft(name, "-"), value})
	}
	return out, nil
}

// save writes the file at once, for its owner alone.
func (p *Preference) save(path string) error {
	data, err := printers.Document(p.filled())
	if err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link stays one
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".kuberc-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	// A file that is renamed before its content is on the disk may be empty after a power failure.
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // err says what is wrong
	}
	return err
}
