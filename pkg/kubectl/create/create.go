// Package create is "kubectl create": objects from files, and generators that build common objects from flags.
package create

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// Options is one run of "kubectl create -f".
type Options struct {
	write.Base
	files    resource.Files
	selector string
	raw      string
}

// NewCommand makes the command with all its generators.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags("kubectl-create"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "create -f FILENAME",
		Short:   "Create a resource from a file or from stdin",
		Long:    "Create a resource from a file or from stdin.\n\n JSON and YAML formats are accepted.",
		Example: "  # Create a pod using the data in pod.json\n  kubectl create -f ./pod.json\n\n  # Create a pod based on the JSON passed into stdin\n  cat pod.json | kubectl create -f -",
		Args:    cobra.ArbitraryArgs,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.AddValidate(set)
	o.AddSaveConfig(set)
	o.files.AddFlags(set, "Filename, directory, or URL to files to use to create the resource")
	set.StringVarP(&o.selector, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	set.StringVar(&o.raw, "raw", "", "Raw URI to POST to the server.  Uses the transport specified by the kubeconfig file.")
	for _, k := range kinds() {
		cmd.AddCommand(newGenerator(f, streams, k))
	}
	cmd.AddCommand(newService(f, streams), newSecret(f, streams), newToken(f, streams))
	return cmd
}

// Complete checks the arguments and gets the client.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	if o.files.Empty() {
		if len(args) > 0 {
			return cli.UsageErrorf(cmd, "Unexpected args: %v", args)
		}
		return write.NoFiles()
	}
	if len(args) > 0 {
		return cli.UsageErrorf(cmd, "Unexpected args: %v", args)
	}
	return o.CompleteWith(f)
}

// Validate checks -o.
func (o *Options) Validate() error {
	if err := write.Raw(o.raw).Validate(o.Flags, o.files, map[string]bool{"--selector (-l)": o.selector != ""}); err != nil {
		return err
	}
	_, err := o.Printer("created")
	return err
}

// Run creates what the files hold, one after the other, and goes on after a refusal.
func (o *Options) Run(ctx context.Context) error {
	if o.raw != "" {
		return write.Raw(o.raw).Send(ctx, &o.Base, http.MethodPost, o.files)
	}
	o.files.Check = o.Checks()
	infos, err := o.Client.Resolve(ctx, resource.Request{
		Files: o.files, Namespace: o.Namespace, ExplicitNamespace: o.Explicit, LabelSelector: o.selector,
	})
	p, e := o.Printer("created")
	if e != nil {
		return e
	}
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	for _, i := range infos {
		if e := o.create(ctx, i); e != nil {
			errs = append(errs, e)
			continue
		}
		if e := p.Print(i.Object, o.Out); e != nil {
			return e
		}
	}
	if len(infos) == 0 && len(errs) == 0 {
		return errors.New("no objects passed to create")
	}
	return one(errs)
}

// one is the aggregate of errs, or the error itself if there is one.
func one(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return utilerrors.NewAggregate(errs)
}

func (o *Options) create(ctx context.Context, i *resource.Info) error {
	if o.SaveConfig {
		if err := write.SetLastApplied(i.Object); err != nil {
			return write.WithSource("creating", i.Source, err)
		}
	} else if err := o.UpdateLastApplied(i.Object); err != nil {
		return write.WithSource("creating", i.Source, err)
	}
	if o.DryRun == write.DryRunClient {
		return nil
	}
	return write.WithSource("creating", i.Source, i.Create(ctx, o.CreateOptions()))
}
